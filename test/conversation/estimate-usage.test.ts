import { test } from 'tap';
import {
  answerTokens,
  bodyEstimate,
  estimatedUsage,
  inputEstimate,
  tokensOf,
} from '../../src/conversation/estimate-usage.js';
import type { ConversationRequest, UserPart } from '../../src/conversation/request.js';

const request = (...parts: readonly UserPart[]): ConversationRequest =>
  ({ turns: [{ role: 'user', parts }] }) as unknown as ConversationRequest;

test('a request is estimated by the length of its body, its media apart', async (t) => {
  const image: UserPart = {
    kind: 'image',
    source: { kind: 'data', mediaType: 'image/png', data: 'A'.repeat(1_000_000) },
    detail: null,
    name: null,
    at: '',
  };
  t.equal(inputEstimate(request({ kind: 'text', text: 'x' }), 400), 100);
  t.equal(inputEstimate(request(image), 1_000_400), 1600);
  const result: UserPart = {
    kind: 'toolResult',
    callId: '',
    name: '',
    content: [image],
    isError: false,
    at: '',
  };
  t.equal(inputEstimate(request(result), 1_000_400), 1600);
});

test('a body that nobody has read is estimated by samples of it', async (t) => {
  const words = 'Some words of a text. '.repeat(10_000);
  t.equal(bodyEstimate(Buffer.from('x'.repeat(400))), 100);
  t.equal(bodyEstimate(Buffer.from(words)), Math.ceil(words.length / 4));
  const foreign = '\u5b57'.repeat(50_000);
  t.equal(bodyEstimate(Buffer.from(foreign)), Math.ceil((3 * foreign.length) / 4));
  const image = JSON.stringify({ text: 'What is this?', image: 'iVBORw0KGgo'.repeat(200_000) });
  t.ok(bodyEstimate(Buffer.from(image)) < 150_000, `${bodyEstimate(Buffer.from(image))}`);
  const both = `${words}"${'A'.repeat(words.length)}"`;
  const estimate = bodyEstimate(Buffer.from(both));
  t.ok(estimate > 40_000 && estimate < 70_000, `${estimate}`);
});

test('a text is estimated as one, whatever it holds and however it is written', (t) => {
  const words = 'Some words of a text. '.repeat(40_000);
  const least = words.length / 4 / 2;
  const letters = 'iVBORw0KGgo'.repeat(20);
  // In each of the places that an even spread of samples would be in.
  const body = Buffer.from(JSON.stringify({ model: 'x', messages: [{ role: 'user', content: words }] }));
  const step = Math.floor((body.length - 64) / 15);
  for (let i = 0; i < 16; i++) body.write(letters, Math.min(body.length - 64, Math.max(0, i * step - 64)));
  t.ok(bodyEstimate(body) > least, `${bodyEstimate(body)}`);

  const joined = words.replaceAll(/[ .]+/g, '_');
  const call = { function: { name: 'f', arguments: JSON.stringify({ data: joined }) } };
  const texts: readonly object[] = [
    { messages: [{ role: 'user', content: joined }] },
    { messages: [{ role: 'user', content: [{ type: 'text', text: joined }] }] },
    { messages: [{ role: 'assistant', tool_calls: [call] }] },
    { input: joined },
    { input: [joined] },
    { instructions: joined, input: 'x' },
    { contents: [{ parts: [{ text: joined }] }] },
  ];
  for (const each of texts) {
    for (const space of [0, 1]) {
      const estimate = bodyEstimate(Buffer.from(JSON.stringify(each, null, space)));
      t.ok(estimate > joined.length / 4 / 2, `${estimate} ${JSON.stringify(each).slice(0, 60)}`);
    }
  }
  const url = `data:image/png;base64,${letters.repeat(5000)}`;
  const media: readonly object[] = [
    { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] },
    { input: [{ role: 'user', content: [{ type: 'input_image', image_url: url }] }] },
    { messages: [{ role: 'user', content: [{ type: 'image', source: { data: letters.repeat(5000) } }] }] },
    { contents: [{ parts: [{ inlineData: { data: letters.repeat(5000) } }] }] },
  ];
  for (const each of media) {
    const estimate = bodyEstimate(Buffer.from(JSON.stringify(each)));
    t.ok(estimate < url.length / 4 / 4, `${estimate} ${JSON.stringify(each).slice(0, 60)}`);
  }
  t.end();
});

test('an answer is estimated by the length of its texts and arguments', async (t) => {
  const call = { kind: 'toolCall', id: '', name: 'f', input: '{"a":123}', custom: false, at: '' } as const;
  const choice = {
    parts: [{ kind: 'text', text: 'abc' } as const, call],
    finish: 'stop' as const,
    stopSequence: null,
  };
  t.equal(answerTokens({ choices: [choice], usage: null }), 3);
  const foreign = { ...choice, parts: [{ kind: 'text', text: '漢字かな' } as const] };
  t.equal(answerTokens({ choices: [foreign], usage: null }), 4);
  t.equal(tokensOf(0), 0);
  t.strictSame(estimatedUsage(5, 6), {
    input: 5,
    output: 6,
    cached: 0,
    cacheWritten: 0,
    reasoning: 0,
    estimated: true,
  });
});
