import { type Test, test } from 'tap';
import { type RunningGateway, startGateway } from '../support/gateway.js';
import { postJson } from '../support/post-json.js';
import { textProtocols } from '../support/translated.js';
import { jsonAnswer, type RawUpstream, startRawUpstream, streamHead } from '../support/upstream.js';

const azureKey = 'key-at-azure';
const safe = { hate: { filtered: false, severity: 'safe' }, violence: { filtered: false, severity: 'safe' } };
const promptFilters = [{ prompt_index: 0, content_filter_results: safe }];
const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };

/** What Azure says beside a chat completion (https://learn.microsoft.com/en-us/azure/foundry/openai/concepts/content-streaming). */
const completion = jsonAnswer(
  200,
  JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'gpt-4o-2024-08-06',
    system_fingerprint: 'fp_1',
    prompt_filter_results: promptFilters,
    choices: [
      {
        index: 0,
        finish_reason: 'stop',
        logprobs: null,
        content_filter_results: safe,
        message: { role: 'assistant', content: 'Hello there.', refusal: null },
      },
    ],
    usage,
  }),
);

function chunkOf(choices: readonly object[], more: object = {}): string {
  const named = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'gpt-4o-2024-08-06' };
  return `data: ${JSON.stringify({ ...named, choices, ...more })}\n\n`;
}

function choiceOf(delta: object, finish: string | null = null): object {
  return {
    index: 0,
    delta,
    finish_reason: finish,
    logprobs: null,
    content_filter_results: finish ? {} : safe,
  };
}

const offsets = { check_offset: 44, start_offset: 44, end_offset: 56 };
/** The first has no choice and no name; with the asynchronous filter some have no delta. */
const events =
  chunkOf([], { id: '', object: '', created: 0, model: '', prompt_filter_results: promptFilters }) +
  chunkOf([choiceOf({ role: 'assistant', content: '', refusal: null })]) +
  chunkOf([choiceOf({ content: 'Hello' })]) +
  chunkOf(
    [{ index: 0, finish_reason: null, content_filter_results: safe, content_filter_offsets: offsets }],
    {
      id: '',
      model: '',
    },
  ) +
  chunkOf([choiceOf({ content: ' there.' })]) +
  chunkOf([choiceOf({}, 'stop')]) +
  chunkOf([], { usage }) +
  'data: [DONE]\n\n';

const filtered = {
  error: {
    message:
      "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
    type: null,
    param: 'prompt',
    code: 'content_filter',
    status: 400,
    innererror: { code: 'ResponsibleAIPolicyViolation', content_filter_result: safe },
  },
};

async function startAzure(t: Test): Promise<RunningGateway & { readonly upstream: RawUpstream }> {
  const upstream = await startRawUpstream(t, ({ body }) => {
    const text = body.toString();
    if (text.includes('be filtered')) return jsonAnswer(400, JSON.stringify(filtered));
    if (!text.includes('"stream":true')) return completion;
    return `${streamHead}${Buffer.byteLength(events).toString(16)}\r\n${events}\r\n0\r\n\r\n`;
  });
  const gateway = await startGateway(t, {
    upstreams: [`${upstream.url.replace(/\/v1$/, '')}/openai/deployments/mine`],
    protocols: textProtocols,
    alias: 'mine',
    upstream: {
      kind: 'chat',
      apiKeys: [azureKey],
      keyHeader: 'api-key',
      query: { 'api-version': '2024-10-21' },
    },
  });
  return { ...gateway, upstream };
}

/** A text in the words of each protocol, and where its answers have theirs. */
const calls: Readonly<
  Record<string, readonly [path: string, body: (text: string) => object, textAt: RegExp]>
> = {
  chat: [
    '/v1/chat/completions',
    (content) => ({ model: 'm', messages: [{ role: 'user', content }] }),
    /"content":"([^"]*)"/g,
  ],
  responses: ['/v1/responses', (input) => ({ model: 'm', input }), /"(?:delta|text)":"([^"]*)"/g],
  messages: [
    '/v1/messages',
    (content) => ({ model: 'm', max_tokens: 9, messages: [{ role: 'user', content }] }),
    /"text":"([^"]*)"/g,
  ],
  generateContent: [
    '/v1beta/models/m',
    (text) => ({ contents: [{ role: 'user', parts: [{ text }] }] }),
    /"text":"([^"]*)"/g,
  ],
};

async function ask({ url }: RunningGateway, protocol: string, said: string, stream: boolean) {
  const [path, body] = calls[protocol] ?? ['', () => ({})];
  const isGoogle = protocol === 'generateContent';
  const operation = stream ? ':streamGenerateContent?alt=sse' : ':generateContent';
  const answer = await postJson(
    url + path + (isGoogle ? operation : ''),
    { ...body(said), ...(stream && !isGoogle ? { stream: true } : {}) },
    { 'anthropic-version': '2023-06-01' },
  );
  return { status: answer.status, text: await answer.text() };
}

for (const protocol of textProtocols) {
  test(`a deployment of Azure's serves ${protocol}, with what its filters say beside the answer`, async (t) => {
    const gateway = await startAzure(t);
    const textAt = calls[protocol]?.[2] ?? /$/g;
    const whole = await ask(gateway, protocol, 'hi', false);
    t.equal(whole.status, 200, whole.text);
    t.ok(whole.text.includes('"Hello there."'), 'whole');
    const stream = await ask(gateway, protocol, 'hi', true);
    t.equal(stream.status, 200, stream.text);
    const pieces = [...stream.text.matchAll(textAt)].map(([, text]) => text);
    t.ok(pieces.includes('Hello') && pieces.includes(' there.'), 'streamed');
    t.notMatch(stream.text, /"error":[^n]/);
    for (const { head } of gateway.upstream.requests) {
      t.match(head, /^POST \/openai\/deployments\/mine\/chat\/completions\?api-version=2024-10-21 HTTP/);
      t.match(head, /\r\napi-key: key-at-azure\r\n/);
      t.notMatch(head, /authorization/i);
    }
    const refused = await ask(gateway, protocol, 'be filtered', true);
    t.equal(refused.status, 400);
    t.match(refused.text, /content management policy/);
  });
}
