import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { Test } from 'tap';
import { WebSocketServer } from 'ws';
import type { TextProtocolName } from '../../../src/conversation/request.js';
import { isObject, parseObject } from '../../../src/wire/json.js';
import { outputAtStart, vendorAnswers } from './answers.js';
import { factorOf } from './calls.js';
import { mediaTable } from './media.js';
import { type CallPlan, type OtherPlan, type TextPlan, tokensOf } from './plan.js';
import {
  nanoUsdOf,
  noUnits,
  realtimeTariff,
  type Tariff,
  textTariff,
  type Units,
  videoTariff,
} from './tariffs.js';

/** A vendor's bill for one request. */
export interface BillLine {
  /** Number of the plan. */
  readonly number: number;
  readonly requestId: string;
  /** When it was written, by `performance.now()`. */
  readonly at: number;
  readonly units: Units;
  readonly nanoUsd: number;
  /** What the client of the request should be charged. */
  readonly chargeNanoUsd: number;
  readonly end: BillEnd;
}

/**
 * How an answer broke off: nobody read it any more, so that its usage was never reported, or by the vendor's fault.
 */
type BillEnd = 'whole' | 'cut' | 'failed';

export interface BillingUpstream {
  /** Origin, without a path. */
  readonly origin: string;
  readonly bill: readonly BillLine[];
  /** Number of requests in progress. */
  readonly open: number;
}

/** Pause between the pieces of a stream, so that clients can leave within it. */
const pieceMs = 5;
const silenceMs = 12_000;

/**
 * A vendor of every kind that does what the plan of a call says, and keeps its own bill: a whole answer is billed as
 * it reports, an answer that nobody reads any more as far as it was written, and a failed one if its usage was
 * reported before. A text of the request names the plan as `call NUMBER.`. The base URLs are `/first` and `/second`;
 * plans fail at the first one.
 */
export async function startBillingUpstream(
  t: Pick<Test, 'teardown'>,
  planOf: (number: number) => CallPlan,
): Promise<BillingUpstream> {
  const bill: BillLine[] = [];
  const videos = new Map<string, OtherPlan>();
  let open = 0;
  const note = (plan: CallPlan, request: IncomingMessage, units: Units, end: BillEnd = 'whole'): void => {
    bill.push({
      number: plan.number,
      requestId: String(request.headers['x-request-id']),
      at: performance.now(),
      units,
      nanoUsd: nanoUsdOf(tariffOf(plan), units),
      chargeNanoUsd: end === 'failed' ? 0 : nanoUsdOf(tariffOf(plan), units, factorOf(plan.number)),
      end,
    });
  };
  const onBody = async (request: IncomingMessage, response: ServerResponse, body: string): Promise<void> => {
    const path = request.url ?? '';
    const video = /\/videos\/(video_\d+)$/.exec(path)?.[1];
    if (video !== undefined) {
      tellVideo(response, video, videos.get(video));
      return;
    }
    const plan = planOf(Number(/call (\d+)\./.exec(body)?.[1]));
    if (plan.kind !== 'text') {
      note(plan, request, plan.failure === null ? plan.units : noUnits);
      serveOther(plan, response, videos);
    } else await serveText({ plan, path, body, response, note: (...line) => note(plan, request, ...line) });
  };
  const server = createServer((request, response) => {
    open++;
    response.on('close', () => open--);
    response.on('error', () => {});
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('error', () => {});
    request.on('end', () => void onBody(request, response, Buffer.concat(pieces).toString()));
  });
  const sockets = new WebSocketServer({ server });
  sockets.on('connection', (socket, request) => {
    socket.on('error', () => {});
    socket.on('message', (data: Buffer) => {
      const number = /call (\d+)\./.exec(data.toString())?.[1];
      if (number === undefined) return;
      const plan = planOf(Number(number));
      note(plan, request, plan.units);
      const usage = sessionUsage(plan.units);
      const answer = { object: 'realtime.response', id: `resp_${number}`, status: 'completed', output: [] };
      socket.send(
        JSON.stringify({ type: 'response.created', response: { ...answer, status: 'in_progress' } }),
      );
      socket.send(JSON.stringify({ type: 'response.done', response: { ...answer, usage } }));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    sockets.close();
    server.close();
    server.closeAllConnections();
  });
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bill,
    get open() {
      return open;
    },
  };
}

interface TextService {
  readonly plan: TextPlan;
  readonly path: string;
  readonly body: string;
  readonly response: ServerResponse;
  note(units: Units, end?: BillEnd): void;
}

async function serveText(service: TextService): Promise<void> {
  const { plan, path, body, response, note } = service;
  if (path.startsWith('/first/') && plan.failure !== null) {
    await fail(service);
    return;
  }
  const protocol = protocolOf(path);
  const asked = parseObject(body) ?? {};
  const options = asked.stream_options;
  const answer = vendorAnswers[protocol](plan, isObject(options) && options.include_usage === true);
  const isStream = asked.stream === true || path.includes(':streamGenerateContent');
  const units = plan.isUntold ? ofTexts(plan, body) : billed(plan, protocol);
  if (!isStream) {
    // A model that has been called finishes its work, whether or not anybody waits.
    await pause(pieceMs);
    note(units, response.destroyed ? 'cut' : 'whole');
    sendJson(response, 200, answer.whole);
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of answer.head) response.write(event);
  for (const [index, event] of answer.texts.entries()) {
    await pause(pieceMs);
    if (response.destroyed) {
      const output = tokensOf(plan.pieces.slice(0, index).join(''));
      note({ ...units, output }, 'cut');
      return;
    }
    response.write(event);
  }
  await pause(pieceMs);
  note(units, response.destroyed ? 'cut' : 'whole');
  response.end(answer.tail.join(''));
}

/** Kinds of tokens that a protocol does not have count as ordinary input. */
function billed({ units }: TextPlan, protocol: TextProtocolName): Units {
  return protocol === 'messages' ? units : { ...units, cacheWritten: 0, cacheWrittenHour: 0 };
}

/** What a vendor counts without reporting it: the texts of request and answer. */
function ofTexts({ pieces }: TextPlan, body: string): Units {
  const prompt = /call \d+\.[^"]*/.exec(body)?.[0] ?? '';
  return { ...noUnits, fresh: tokensOf(prompt), output: tokensOf(pieces.join('')) };
}

function tariffOf({ kind }: CallPlan): Tariff {
  if (kind === 'text') return textTariff;
  if (kind === 'video') return videoTariff;
  return kind === 'realtime' ? realtimeTariff : mediaTable[kind].tariff;
}

function sessionUsage({ fresh, cached, output, audioInput, cachedAudio, audioOutput }: Units): object {
  const input = fresh + cached + audioInput + cachedAudio;
  return {
    input_tokens: input,
    input_token_details: {
      text_tokens: fresh + cached,
      audio_tokens: audioInput + cachedAudio,
      cached_tokens: cached + cachedAudio,
      cached_tokens_details: { text_tokens: cached, audio_tokens: cachedAudio },
    },
    output_tokens: output + audioOutput,
    output_token_details: { text_tokens: output, audio_tokens: audioOutput },
    total_tokens: input + output + audioOutput,
  };
}

async function fail({ plan, response, note }: TextService): Promise<void> {
  switch (plan.failure) {
    case 'status 500':
      sendJson(response, 500, { error: { message: 'An error of ours.', type: 'server_error' } });
      return;
    case 'status 429':
      sendJson(response, 429, { error: { message: 'Slow down.', type: 'rate_limit_error' } });
      return;
    case 'hangs up':
      response.destroy();
      return;
    case 'breaks off':
    case 'falls silent':
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(vendorAnswers.messages(plan, false).head[0]);
      note({ ...plan.units, output: outputAtStart, searches: 0 }, 'failed');
      await pause(plan.failure === 'breaks off' ? pieceMs : silenceMs);
      response.destroy();
      return;
    default:
      await pause(silenceMs);
      response.destroy();
  }
}

function serveOther(plan: OtherPlan, response: ServerResponse, videos: Map<string, OtherPlan>): void {
  if (plan.failure === 'refused') {
    sendJson(response, 400, { error: { message: 'Not that.', type: 'invalid_request_error' } });
    return;
  }
  if (plan.kind === 'video') {
    const id = `video_${plan.number}`;
    videos.set(id, plan);
    sendJson(response, 200, { ...videoOf(id, plan), status: 'queued', progress: 0 });
    return;
  }
  if (plan.kind === 'realtime') return;
  const { type, body } = mediaTable[plan.kind].answer(plan);
  response.writeHead(200, { 'content-type': type, 'content-length': Buffer.byteLength(body) });
  response.end(body);
}

function videoOf(id: string, { units }: OtherPlan): object {
  return {
    id,
    object: 'video',
    model: 'real',
    created_at: 1,
    seconds: `${units.seconds}`,
    size: units.variant,
  };
}

function tellVideo(response: ServerResponse, id: string, plan: OtherPlan | undefined): void {
  if (plan === undefined) {
    sendJson(response, 404, { error: { message: 'No such video.', type: 'invalid_request_error' } });
    return;
  }
  const end =
    plan.failure === null
      ? { status: 'completed', progress: 100 }
      : { status: 'failed', error: { code: 'broken', message: 'It came to nothing.' } };
  sendJson(response, 200, { ...videoOf(id, plan), ...end });
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
  });
  response.end(text);
}

function protocolOf(path: string): TextProtocolName {
  if (path.includes('/chat/completions')) return 'chat';
  if (path.includes('/responses')) return 'responses';
  return path.includes('/messages') ? 'messages' : 'generateContent';
}
