import { once } from 'node:events';
import { WebSocket } from 'ws';
import { type TextProtocolName, textProtocols } from '../../../src/conversation/request.js';
import { hashKey } from '../../../src/keys/secret.js';
import { parseObject } from '../../../src/wire/json.js';
import { loadKey, loadKeyHash } from '../load/request.js';
import { mediaKinds, mediaTable } from './media.js';
import type { CallPlan, OtherPlan, TextPlan } from './plan.js';
import { realtimeTariff, textTariff, videoTariff } from './tariffs.js';

/** Long enough that only a silent target is hedged, however busy the machine is. */
const hedgeMs = 8000;

/** Factor on the vendor's bill for the clients of one key. */
const resoldFactor = 2;
const resoldKey = 'sk-resold';

/** Returns what the client of a call is charged for each dollar that the vendor bills. */
export function factorOf(number: number): number {
  return isResold(number) ? resoldFactor : 1;
}

function isResold(number: number): boolean {
  return number % 3 === 0;
}

/** Makes a config in which the vendor at `origin` serves a model of each of its protocols, each with a price. */
export function pricedConfig(
  origin: string,
  store: Readonly<Record<string, unknown>>,
  adminToken: string,
): Record<string, unknown> {
  const places = ['first', 'second'] as const;
  const base = (place: string, kind: string): string =>
    `${origin}/${place}${kind === 'generateContent' ? '/v1beta' : '/v1'}`;
  const both = (kind: string) =>
    places.map((place, priority) => ({
      upstream: `${place}-${kind}`,
      model: 'real',
      priority,
      cost: textTariff.price,
      ...(kind === 'responses' ? { responses: 'only' } : {}),
    }));
  const one = (cost: object) => [{ upstream: 'first-chat', model: 'real', cost }];
  return {
    store,
    admin: { port: 0, token: adminToken },
    upstreams: Object.fromEntries(
      textProtocols.flatMap((kind) =>
        places.map((place) => [
          `${place}-${kind}`,
          {
            kind: kind === 'responses' ? 'chat' : kind,
            baseUrl: base(place, kind),
            apiKeys: ['upstream-key'],
          },
        ]),
      ),
    ),
    models: {
      ...Object.fromEntries(
        textProtocols.map((kind) => [
          `text-${kind}`,
          { protocols: textProtocols, targets: both(kind), price: textTariff.price },
        ]),
      ),
      ...Object.fromEntries(
        textProtocols.map((kind) => [
          `hedged-${kind}`,
          { protocols: textProtocols, targets: both(kind), hedgeMs, price: textTariff.price },
        ]),
      ),
      ...Object.fromEntries(
        mediaKinds.map((kind) => {
          const { protocol, tariff } = mediaTable[kind];
          return [kind, { protocols: [protocol], targets: one(tariff.price), price: tariff.price }];
        }),
      ),
      video: { protocols: ['video'], targets: one(videoTariff.price), price: videoTariff.price },
      realtime: {
        protocols: ['realtime'],
        targets: one(realtimeTariff.price),
        price: realtimeTariff.price,
      },
    },
    groups: { load: { models: ['*'] }, resold: { models: ['*'], priceFactor: resoldFactor } },
    keys: [
      { id: 'load', hash: loadKeyHash, groups: ['load'] },
      { id: 'resold', hash: hashKey(resoldKey), groups: ['resold'] },
    ],
  };
}

/** The result of a call at the client. */
export interface CallEnd {
  readonly number: number;
  /** HTTP status; 0 if the client left before the head arrived, or the connection broke. */
  readonly status: number;
  /** Null if no head arrived. */
  readonly requestId: string | null;
  /** The client left. */
  readonly hasLeft: boolean;
  /** Id of the created video task, which a correction of its charge has as well. */
  readonly taskId?: string | undefined;
}

/** Makes the call of a plan, and leaves as it says. @param baseUrl of the gateway */
export function makeCall(baseUrl: string, plan: CallPlan): Promise<CallEnd> {
  if (plan.kind === 'text') return makeTextCall(baseUrl, plan);
  if (plan.kind !== 'realtime') return makeOtherCall(baseUrl, plan);
  const { number, leaves } = plan;
  return makeSession(baseUrl, plan).catch(() => ({ number, status: 0, requestId: null, hasLeft: leaves }));
}

const filler = ' Please answer in a few words, as you always do.'.repeat(12);
const tool = { name: 'weather', description: 'The weather of a city.' };
const schema = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};

/** Returns path and body of the call in the client's protocol. */
const requests: Readonly<
  Record<TextProtocolName, (plan: TextPlan, text: string) => [path: string, body: object]>
> = {
  chat: (plan, content) => [
    '/v1/chat/completions',
    {
      ...shared(plan),
      messages: [{ role: 'user', content }],
      ...(plan.tool ? { tools: [{ type: 'function', function: { ...tool, parameters: schema } }] } : {}),
    },
  ],
  responses: (plan, input) => [
    '/v1/responses',
    {
      ...shared(plan),
      // A stored response is never sent to a second target.
      store: false,
      input,
      ...(plan.tool ? { tools: [{ type: 'function', ...tool, parameters: schema, strict: false }] } : {}),
    },
  ],
  messages: (plan, content) => [
    '/v1/messages',
    {
      ...shared(plan),
      max_tokens: 5000,
      messages: [{ role: 'user', content }],
      ...(plan.tool ? { tools: [{ ...tool, input_schema: schema }] } : {}),
    },
  ],
  generateContent: (plan, text) => [
    `/v1beta/models/${modelOf(plan)}:${plan.stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    {
      contents: [{ role: 'user', parts: [{ text }] }],
      ...(plan.tool
        ? {
            tools: [
              {
                functionDeclarations: [
                  { ...tool, parameters: { ...schema, additionalProperties: undefined } },
                ],
              },
            ],
          }
        : {}),
    },
  ],
};

function modelOf({ upstream, failure, number }: TextPlan): string {
  const isSilent = failure === 'silence' || failure === 'falls silent';
  return `${isSilent || number % 4 === 0 ? 'hedged' : 'text'}-${upstream}`;
}

function shared(plan: TextPlan): object {
  return { model: modelOf(plan), stream: plan.stream };
}

function authorization(number: number): string {
  return `Bearer ${isResold(number) ? resoldKey : loadKey}`;
}

function headers(number: number): Record<string, string> {
  return {
    authorization: authorization(number),
    'content-type': 'application/json',
    'anthropic-version': '2023-06-01',
  };
}

async function makeTextCall(baseUrl: string, plan: TextPlan): Promise<CallEnd> {
  const { number, leave } = plan;
  const [path, body] = requests[plan.protocol](plan, `call ${number}.${filler}`);
  const leaving = new AbortController();
  if (leave === 'before the answer') setTimeout(() => leaving.abort(), 3 + (number % 4));
  let status = 0;
  let requestId: string | null = null;
  try {
    const answer = await fetch(baseUrl + path, {
      method: 'POST',
      headers: headers(number),
      body: JSON.stringify(body),
      signal: leaving.signal,
    });
    status = answer.status;
    requestId = answer.headers.get('x-request-id');
    await readUntil(answer, awaitedText(plan), leaving);
  } catch {
    // The client has left, or the connection broke. The ledger has to record either.
  }
  return { number, status, requestId, hasLeft: leaving.signal.aborted };
}

/**
 * Returns the piece of the text that a client still awaits before it leaves within the answer; null for any other.
 */
function awaitedText({ leave, pieces }: TextPlan): string | null {
  if (leave === 'within the answer') return pieces[0] ?? null;
  return leave === 'after the text' ? (pieces.at(-1) ?? null) : null;
}

/** Reads to the end, or leaves after the last piece of the awaited text. */
async function readUntil(answer: Response, awaited: string | null, leaving: AbortController): Promise<void> {
  if (awaited === null) {
    await answer.text();
    return;
  }
  const decoder = new TextDecoder();
  const mark = JSON.stringify(awaited).slice(1, -1);
  let seen = '';
  // Some versions of fetch never end a read after the abort if the answer's end has arrived.
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  while (!seen.includes(mark)) {
    const { done, value } = await reader.read();
    if (done) return;
    seen += decoder.decode(value, { stream: true });
  }
  leaving.abort();
}

async function makeOtherCall(baseUrl: string, plan: OtherPlan): Promise<CallEnd> {
  const { number, kind, leaves } = plan;
  const [path, body] = requestOf(plan, `call ${number}.`);
  const isForm = body instanceof FormData;
  const leaving = new AbortController();
  if (leaves) setTimeout(() => leaving.abort(), 2 + (number % 8));
  let requestId: string | null = null;
  let status = 0;
  let taskId: string | undefined;
  try {
    const answer = await fetch(baseUrl + path, {
      method: 'POST',
      headers: isForm ? { authorization: authorization(number) } : headers(number),
      body: isForm ? body : JSON.stringify(body),
      signal: leaving.signal,
    });
    status = answer.status;
    requestId = answer.headers.get('x-request-id');
    const { id } = parseObject(await answer.text()) ?? {};
    if (kind === 'video' && typeof id === 'string') taskId = id;
  } catch {
    // The client has left, or the connection broke.
  }
  return { number, status, requestId, hasLeft: leaving.signal.aborted, taskId };
}

function requestOf(plan: OtherPlan, text: string): [path: string, body: object | FormData] {
  const { kind, units } = plan;
  if (kind === 'realtime') throw new Error('sessions are no requests');
  if (kind !== 'video') return mediaTable[kind].request(plan, text);
  return ['/v1/videos', { model: kind, prompt: text, seconds: `${units.seconds}`, size: units.variant }];
}

async function makeSession(baseUrl: string, { number, leaves }: OtherPlan): Promise<CallEnd> {
  const url = `${baseUrl.replace('http', 'ws')}/v1/realtime?model=realtime`;
  const socket = new WebSocket(url, { headers: { authorization: authorization(number) } });
  let requestId: string | null = null;
  socket.on('upgrade', (answer) => {
    requestId = String(answer.headers['x-request-id'] ?? '') || null;
  });
  socket.on('error', () => {});
  const closed = once(socket, 'close');
  socket.on('open', () => {
    const part = { type: 'input_text', text: `call ${number}.` };
    const item = { type: 'message', role: 'user', content: [part] };
    socket.send(JSON.stringify({ type: 'conversation.item.create', item }));
  });
  socket.on('message', (data: Buffer) => {
    const isEnd = data.toString().includes('"response.done"');
    if (isEnd) socket.close();
    else if (leaves && data.toString().includes('"response.created"')) socket.terminate();
  });
  await closed;
  return { number, status: 101, requestId, hasLeft: leaves };
}
