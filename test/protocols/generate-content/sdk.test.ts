import { type Test, test } from 'tap';
import type { StreamEvent } from '../../../src/conversation/answer.js';
import { tokenAsBytes } from '../../../src/conversation/signature.js';
import { GatewayError } from '../../../src/errors.js';
import { generateContentCodec } from '../../../src/protocols/generate-content/index.js';
import { createClient, sdks } from '../../support/sdks/genai.js';
import { context, encodeEvents, usage } from './samples.js';

const events: readonly StreamEvent[] = [
  { kind: 'start', usage: { ...usage, output: 0 } },
  { kind: 'reasoning', choice: 0, text: 'hm' },
  { kind: 'text', choice: 0, text: 'Hel' },
  { kind: 'text', choice: 0, text: 'lo' },
  { kind: 'signature', choice: 0, signature: 'gw1.s' },
  { kind: 'callStart', choice: 0, call: 0, id: 'x', name: 'f', custom: false },
  { kind: 'callArguments', choice: 0, call: 0, text: '{"a":1}' },
  { kind: 'callEnd', choice: 0, call: 0 },
  { kind: 'finish', choice: 0, reason: 'toolCalls', stopSequence: null },
  { kind: 'usage', usage },
  { kind: 'end' },
];

for (const sdk of sdks) {
  const question = { model: 'm', contents: 'hi' };
  /** A client whose calls are all answered with this text. */
  const clientOf = (t: Test, body: string, type: string) => {
    const { fetch } = globalThis;
    globalThis.fetch = async () => new Response(body, { headers: { 'content-type': type } });
    t.teardown(() => {
      globalThis.fetch = fetch;
    });
    return createClient(sdk, { url: 'http://gateway.test' });
  };

  test(`${sdk.name} puts together what a stream says`, async (t) => {
    const client = clientOf(t, encodeEvents(events), 'text/event-stream');
    let text = '';
    const parts: unknown[] = [];
    let last: { finishReason: unknown; total: unknown } | null = null;
    for await (const chunk of await client.models.generateContentStream(question)) {
      text += chunk.text ?? '';
      const [candidate] = chunk.candidates ?? [];
      parts.push(...(candidate?.content?.parts ?? []));
      last = { finishReason: candidate?.finishReason, total: chunk.usageMetadata?.totalTokenCount };
    }
    t.equal(text, 'Hello');
    t.match(parts, [
      { text: 'hm', thought: true },
      {},
      {},
      { functionCall: { id: 'x', name: 'f', args: { a: 1 } }, thoughtSignature: tokenAsBytes('gw1.s') },
    ]);
    t.same(last, { finishReason: 'STOP', total: 3 });
  });

  // Version 1 hands it on as an empty chunk.
  if (sdk.raisesMidStream) {
    test(`${sdk.name} raises an error in the middle of a stream`, async (t) => {
      const error: StreamEvent = { kind: 'error', error: new GatewayError('overloaded', 'full') };
      const client = clientOf(t, encodeEvents([...events.slice(0, 3), error]), 'text/event-stream');
      const read = async () => {
        for await (const _chunk of await client.models.generateContentStream(question));
      };
      await t.rejects(read(), sdk.module.ApiError);
    });
  }

  test(`${sdk.name} reads a whole answer`, async (t) => {
    const encoded = generateContentCodec.encodeAnswer(
      {
        choices: [
          {
            parts: [
              { kind: 'text', text: 'Hello' },
              { kind: 'toolCall', id: 'x', name: 'f', input: '{"a":1}', custom: false, at: '' },
            ],
            finish: 'toolCalls',
            stopSequence: null,
          },
        ],
        usage,
      },
      context,
    );
    const answer = await clientOf(t, encoded, 'application/json').models.generateContent(question);
    t.match(answer.functionCalls, [{ id: 'x', name: 'f', args: { a: 1 } }]);
    t.match(answer.candidates, [{ finishReason: 'STOP', content: { parts: [{ text: 'Hello' }, {}] } }]);
    t.equal(answer.responseId, 'r');
  });
}
