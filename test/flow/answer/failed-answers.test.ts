import { type Test, test } from 'tap';
import type { JsonObject } from '../../../src/wire/json.js';
import { openLedger } from '../../support/ledger.js';
import { startRouted } from '../../support/routed.js';
import { post, startTranslated, textProtocols } from '../../support/translated.js';
import { chunk, jsonAnswer, lastChunk, streamHead } from '../../support/upstream.js';

/*
 * Answers of status 200 in which an upstream says that the model's turn has failed: told as an error of the client's own
 * protocol, and what was used is noted.
 */

const hello = [{ role: 'user', content: 'hi' }];
const bodies = {
  chat: ['/v1/chat/completions', { messages: hello }],
  responses: ['/v1/responses', { input: 'hi' }],
  messages: ['/v1/messages', { messages: hello, max_tokens: 9 }],
  generateContent: ['/v1beta/models/m:generateContent', { contents: [{ parts: [{ text: 'hi' }] }] }],
} as const;

interface Told {
  readonly status: number;
  readonly text: string;
  /** How the line of the ledger ended that has the tokens, and these. */
  readonly used: readonly unknown[];
}

/** What clients of each protocol but the upstream's own are told. */
async function told(
  t: Test,
  kind: keyof typeof bodies,
  answer: string,
  stream: boolean,
): Promise<Record<string, Told>> {
  const isResponses = kind === 'responses';
  const { store, lines } = openLedger(t);
  const gateway = await startTranslated(t, {
    config: { store, usage: { ledger: true } },
    kind: isResponses ? 'chat' : kind,
    answer,
    target: isResponses ? { responses: 'only' } : {},
  });
  const results: Record<string, Omit<Told, 'used'> & { readonly id: string }> = {};
  for (const protocol of textProtocols) {
    if (protocol === kind) continue;
    const [path, given] = bodies[protocol];
    const asked =
      protocol === 'generateContent'
        ? [stream ? `${path.replace(':generate', ':streamGenerate')}?alt=sse` : path, given]
        : [path, { model: 'm', ...given, ...(stream ? { stream } : {}) }];
    const { status, head, body } = await post(gateway.port, asked[0] as string, asked[1] as object);
    const id = /^x-request-id: (\S+)/im.exec(head)?.[1] ?? '';
    results[protocol] = { status, text: body, id };
  }
  const records = await lines(3, ({ inputTokens }) => inputTokens > 0);
  return Object.fromEntries(
    Object.entries(results).map(([protocol, { status, text, id }]) => {
      const record = records.find(({ requestId }) => requestId === id);
      const { outcome, inputTokens, outputTokens, costNanoUsd } = record ?? {};
      return [protocol, { status, text, used: [outcome, inputTokens, outputTokens, costNanoUsd] }];
    }),
  );
}

const failed = {
  id: 'resp_1',
  object: 'response',
  status: 'failed',
  error: { code: 'server_error', message: 'the model has stumbled' },
  output: [],
  usage: { input_tokens: 70, output_tokens: 8, total_tokens: 78 },
};

const errorIn: Readonly<Record<string, RegExp>> = {
  chat: /"error":\{"message":"the model has stumbled"/,
  messages: /"type":"error","error":\{"type":"api_error","message":"the model has stumbled"/,
  generateContent: /"error":\{"code":\d+,"message":"the model has stumbled"/,
};

test('a whole response that has failed is an error, and what it has used is noted', async (t) => {
  const results = await told(t, 'responses', jsonAnswer(200, JSON.stringify(failed)), false);
  t.same(Object.keys(results).sort(), ['chat', 'generateContent', 'messages']);
  for (const [protocol, { status, text, used }] of Object.entries(results)) {
    t.ok(status >= 500, `${protocol}: ${status}`);
    t.match(text, errorIn[protocol] as RegExp);
    t.same(used, ['attempt', 70, 8, 0], protocol);
  }
});

test('another target is asked where a response has failed', async (t) => {
  const good = { ...failed, status: 'completed', error: null, output: [] };
  const { ask, counts } = await startRouted(
    t,
    [failed, good].map((each) => jsonAnswer(200, JSON.stringify(each))),
    { target: { responses: 'only' } },
  );
  t.equal((await ask()).status, 200);
  t.same(counts(), [1, 1]);
});

const malformed = {
  candidates: [
    {
      content: {},
      finishReason: 'MALFORMED_FUNCTION_CALL',
      finishMessage: 'Malformed function call: print(f(',
      index: 0,
    },
  ],
  usageMetadata: { promptTokenCount: 70, candidatesTokenCount: 8, totalTokenCount: 78 },
};
const thought = {
  candidates: [{ content: { role: 'model', parts: [{ text: 'hm', thought: true }] }, index: 0 }],
};
const sse = (...blocks: readonly object[]): string =>
  streamHead + blocks.map((block) => chunk(`data: ${JSON.stringify(block)}\n\n`)).join('') + lastChunk;

const words = 'MALFORMED_FUNCTION_CALL): Malformed function call: print\\(f\\(';

test('a call that could not be written is an error, and not the end of the work', async (t) => {
  const results = await told(t, 'generateContent', jsonAnswer(200, JSON.stringify(malformed)), false);
  t.same(Object.keys(results).sort(), ['chat', 'messages', 'responses']);
  for (const [protocol, { status, text, used }] of Object.entries(results)) {
    t.equal(status, 502, protocol);
    t.match(text, new RegExp(words.replace(')', '\\)')), protocol);
    t.same(used, ['attempt', 70, 8, 0], protocol);
  }
});

test('so it is in a stream, before anything has left and behind what the model has thought', async (t) => {
  const first = await told(t, 'generateContent', sse(malformed), true);
  for (const [protocol, { status, used }] of Object.entries(first)) {
    t.equal(status, 502, protocol);
    t.same(used, ['attempt', 70, 8, 0], protocol);
  }
  const behind = await told(t, 'generateContent', sse(thought, malformed), true);
  const ends: Readonly<Record<string, RegExp>> = {
    chat: /data: \{"error":.*MALFORMED_FUNCTION_CALL/,
    responses: /"type":"response.failed".*MALFORMED_FUNCTION_CALL/,
    messages: /"type":"error".*MALFORMED_FUNCTION_CALL/,
  };
  for (const [protocol, { status, text, used }] of Object.entries(behind)) {
    t.equal(status, 200, protocol);
    t.match(text, ends[protocol] as RegExp, protocol);
    t.same(used, ['upstream_error', 70, 8, 0], protocol);
  }
});

test('another target is asked, and what stands before a call that could not be written passes', async (t) => {
  const good = { candidates: [{ content: { parts: [{ text: 'fine' }] }, finishReason: 'STOP' }] };
  const { ask, counts } = await startRouted(
    t,
    [malformed, good].map((each) => jsonAnswer(200, JSON.stringify(each))),
    { upstream: { kind: 'generateContent' } },
  );
  t.match((await ask()).body, '"content":"fine"');
  t.same(counts(), [1, 1]);
  const said = {
    candidates: [{ content: { parts: [{ text: 'I call it' }] }, finishReason: 'UNEXPECTED_TOOL_CALL' }],
  };
  const other = await startRouted(t, [jsonAnswer(200, JSON.stringify(said))], {
    upstream: { kind: 'generateContent' },
  });
  t.match(await other.ask(), { status: 200, body: /"content":"I call it"/ });
});

test('the mode that holds calls to their schemas is named where it is lost', async (t) => {
  const answer = jsonAnswer(
    200,
    '{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}]}',
  );
  const gateway = await startTranslated(t, { answer });
  const ask = async (mode: string) => {
    const { head, status } = await post(gateway.port, '/v1beta/models/m:generateContent', {
      contents: [{ parts: [{ text: 'hi' }] }],
      tools: [{ functionDeclarations: [{ name: 'f' }] }],
      toolConfig: { functionCallingConfig: { mode } },
    });
    const sent = JSON.parse(gateway.upstream.requests.at(-1)?.body.toString() ?? '{}') as JsonObject;
    return [status, /^x-gateway-left-out: (.*)$/im.exec(head)?.[1]?.trim(), sent.tool_choice];
  };
  t.same(await ask('VALIDATED'), [200, 'toolConfig.functionCallingConfig.mode', 'auto']);
  t.same(await ask('AUTO'), [200, undefined, 'auto']);
  t.same(await ask('ANY'), [200, undefined, 'required']);
});
