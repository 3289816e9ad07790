import { test } from 'tap';
import type { StreamEvent } from '../../../src/conversation/answer.js';
import { fitHiddenReasoning } from '../../../src/conversation/fit/hidden-reasoning.js';
import type { ConversationRequest } from '../../../src/conversation/request.js';
import { tagSignature, untagSignature } from '../../../src/conversation/signature.js';
import { mostCarried, tagUnsigned, unsignedReasoning } from '../../../src/conversation/unsigned-reasoning.js';
import { chatCodec } from '../../../src/protocols/chat/index.js';
import { messagesCodec } from '../../../src/protocols/messages/index.js';
import { plain } from '../../protocols/messages/samples.js';
import { fittedBy } from './rules.js';

const reasoning = (show: boolean) => ({ effort: null, budget: null, show, summary: null });
const token = tagUnsigned('reasoning_content', 'm');
const fit = (changes: Partial<ConversationRequest>, { rules } = chatCodec) =>
  fittedBy(fitHiddenReasoning, { ...plain, from: 'messages', ...changes }, rules).restorer;

function restored(...events: readonly StreamEvent[]): StreamEvent[] {
  const out: StreamEvent[] = [];
  const restorer = fit({});
  for (const event of events) restorer?.event(event, out);
  return out;
}

const textIn = (event: StreamEvent | undefined) =>
  event?.kind === 'signature'
    ? unsignedReasoning({ kind: 'reasoning', text: '', signature: event.signature }, 'm')?.text
    : undefined;

test('a client that returns the text needs it in no token', async (t) => {
  t.equal(fit({ reasoning: reasoning(true) }), null);
  t.equal(fit({ from: 'responses', reasoning: reasoning(true) }), null);
  t.equal(fit({ from: 'chat' }), null);
  t.equal(fit({ reasoning: reasoning(true) }, messagesCodec), null);
  t.ok(fit({}));
  t.ok(fit({ reasoning: reasoning(false) }));
  t.ok(fit({ from: 'generateContent', reasoning: reasoning(true) }), 'its clients drop thoughts');
});

test('a streamed token has the text before it, of its own choice', async (t) => {
  const out = restored(
    { kind: 'reasoning', choice: 0, text: 'a' },
    { kind: 'reasoning', choice: 1, text: 'x' },
    { kind: 'reasoning', choice: 0, text: 'b' },
    { kind: 'signature', choice: 0, signature: token },
    { kind: 'text', choice: 0, text: 'so' },
    { kind: 'signature', choice: 1, signature: token },
    { kind: 'reasoning', choice: 0, text: 'c' },
    { kind: 'signature', choice: 0, signature: token },
  );
  t.strictSame(out.filter(({ kind }) => kind === 'signature').map(textIn), ['ab', 'x', 'c']);
  t.equal(out.length, 8);
});

test('a whole answer has it, too', async (t) => {
  const part = { kind: 'reasoning', text: 'hm', signature: token } as const;
  const foreign = {
    ...part,
    signature: tagSignature({ protocol: 'messages', model: 'm', value: 's', redacted: false }),
  };
  const answer = fit({})?.answer({
    choices: [{ parts: [part, foreign, { ...part, signature: null }], finish: 'stop', stopSequence: null }],
    usage: null,
  });
  const [own, ...others] = answer?.choices[0]?.parts ?? [];
  t.equal(own?.kind === 'reasoning' ? unsignedReasoning({ ...own, text: '' }, 'm')?.text : null, 'hm');
  t.strictSame(others, [foreign, { ...part, signature: null }]);
});

test('clients that do not return the words that a messages upstream signed carry them, whole or not at all', async (t) => {
  const signed = tagSignature({ protocol: 'messages', model: 'm', value: 'a.b=', redacted: false });
  const wordsOf = (text: string, changes: Partial<ConversationRequest>) => {
    const restorer = fit(changes, messagesCodec);
    const out: StreamEvent[] = [];
    restorer?.event({ kind: 'reasoning', choice: 0, text }, out);
    restorer?.event({ kind: 'signature', choice: 0, signature: signed }, out);
    const parts = [{ kind: 'reasoning', text, signature: signed } as const];
    const whole = fit(changes, messagesCodec)?.answer({
      choices: [{ parts, finish: 'stop', stopSequence: null }],
      usage: null,
    });
    const [part] = whole?.choices[0]?.parts ?? [];
    const tokens = [
      out[1]?.kind === 'signature' ? out[1].signature : null,
      part?.kind === 'reasoning' ? part.signature : null,
    ];
    return tokens.map((token) => {
      const { value, words, isWordless } = untagSignature(token) ?? {};
      t.equal(value, 'a.b=');
      return isWordless ? 'lost' : words;
    });
  };
  for (const changes of [
    { from: 'generateContent', reasoning: reasoning(true) },
    { from: 'chat', reasoning: reasoning(true) },
    { from: 'responses', reasoning: reasoning(false) },
    { from: 'responses' },
  ] as const) {
    t.strictSame(wordsOf('hm', changes), ['hm', 'hm']);
    t.strictSame(wordsOf('', changes), [undefined, undefined]);
    t.strictSame(wordsOf('x'.repeat(mostCarried + 1), changes), ['lost', 'lost']);
  }
  t.equal(fit({ from: 'responses', reasoning: reasoning(true) }, messagesCodec), null, 'it returns them');
});

test('no more text is carried than a bound', async (t) => {
  const piece = 'x'.repeat(mostCarried - 1);
  const out = restored(
    { kind: 'reasoning', choice: 0, text: piece },
    { kind: 'reasoning', choice: 0, text: 'yz' },
    { kind: 'signature', choice: 0, signature: token },
    { kind: 'reasoning', choice: 0, text: 'more' },
    { kind: 'signature', choice: 0, signature: token },
  );
  t.equal(textIn(out[2]), `${piece}y`);
  t.equal(textIn(out[4]), undefined);
});
