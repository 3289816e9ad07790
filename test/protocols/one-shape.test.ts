import { setFlagsFromString } from 'node:v8';
import { test } from 'tap';
import type { TextProtocolName } from '../../src/conversation/request.js';
import { textEndpoints } from '../../src/protocols/text.js';
import type { JsonObject } from '../../src/wire/json.js';
import { createSealer } from '../../src/wire/seal.js';
import { plainSource } from '../conversation/plain.js';

setFlagsFromString('--allow-natives-syntax');
/** Whether V8 keeps both objects in the same layout, by which compiled code finds their members. */
const haveOneShape = new Function('one', 'other', 'return %HaveSameMap(one, other)') as (
  one: object,
  other: object,
) => boolean;

const sealer = createSealer('a secret of the tests');
const question = { role: 'user', content: 'hi' };
const bodies: Readonly<Record<TextProtocolName, JsonObject>> = {
  chat: { model: 'm', max_tokens: 256, temperature: 0.2, messages: [question] },
  responses: { model: 'm', max_output_tokens: 256, temperature: 0.2, input: 'hi' },
  messages: { model: 'm', max_tokens: 256, temperature: 0.2, messages: [question] },
  generateContent: {
    generationConfig: { maxOutputTokens: 256, temperature: 0.2 },
    contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
  },
};

// V8 gives up on a literal that begins with a spread and goes on with members that the spread has not: after some hundred
// of them each object has a layout of its own, and a translated call takes twice its time.
for (const [protocol, body] of Object.entries(bodies)) {
  test(`requests that ${protocol} clients make are of one shape, however many have come`, async (t) => {
    const { codec } = textEndpoints[protocol as TextProtocolName].translation;
    const decode = () => codec.decodeRequest(structuredClone(body), false, sealer);
    let last = decode();
    for (let calls = 0; calls < 2000; calls++) last = decode();
    t.ok(haveOneShape(last, decode()));
  });
}

/** Whole answers as vendors write them, with their usage. */
const answers: Readonly<Record<TextProtocolName, JsonObject>> = {
  chat: {
    choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
  },
  responses: {
    status: 'completed',
    output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'hi' }] }],
    usage: { input_tokens: 3, output_tokens: 4, total_tokens: 7 },
  },
  messages: {
    type: 'message',
    role: 'assistant',
    content: [{ type: 'text', text: 'hi' }],
    stop_reason: 'end_turn',
    usage: { input_tokens: 3, output_tokens: 4 },
  },
  generateContent: {
    candidates: [{ content: { role: 'model', parts: [{ text: 'hi' }] }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 4, totalTokenCount: 7 },
  },
};

for (const [protocol, answer] of Object.entries(answers)) {
  test(`what ${protocol} upstreams have used is of one shape, however many have answered`, async (t) => {
    const { codec } = textEndpoints[protocol as TextProtocolName].translation;
    const decode = () =>
      codec.decodeAnswer(structuredClone(answer), { ...plainSource, model: 'm', searches: false }).usage ??
      {};
    let last = decode();
    for (let calls = 0; calls < 2000; calls++) last = decode();
    t.match(last, { input: 3, output: 4 });
    t.ok(haveOneShape(last, decode()));
  });
}
