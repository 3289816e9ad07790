import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Server, Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { type Directive, headerDirectives } from './faults/directives.js';
import { applyFaults } from './faults/faults.js';
import { generateContentFormat } from './generate-content/answer.js';
import type { AnswerFormat, Reply, Route, SimulatorRequest } from './http/reply.js';
import { RequestError } from './http/request-error.js';
import { jsonReply, refusal } from './http/route.js';
import { openReply, send } from './http/send.js';
import { dashScopeFormat } from './images/dashscope.js';
import { resultPath } from './media/result.js';
import { messagesFormat } from './messages/route.js';
import { openaiFormat } from './openai/format.js';
import { routesOf } from './routes.js';
import { socketUpgrades } from './sockets/upgrades.js';
import { newVideoBook } from './video/task.js';
import { vendorjFormat } from './video/vendorj.js';
import { vendorkFormat } from './video/vendork.js';

const loopback = '127.0.0.1';
const largestBody = 256 * 1024 * 1024;
const maxCounted = 10_000;
const ownPath = '/__simulator/';

export interface SimulatorOptions {
  /** Default 0, which takes a free port. */
  readonly port?: number;
  /** Delay from the whole request to the head of the answer; default 0. */
  readonly latencyMs?: number;
  /** Pace of streams; default 0, which means no pacing. */
  readonly tokensPerSecond?: number;
  /** Called with every request once its body has arrived, before it is answered. */
  readonly onRequest?: (request: SimulatorRequest) => void;
  /** How long video tasks wait and then run, unless a directive says otherwise; default 500 and 1500 ms. */
  readonly videoPace?: { readonly queuedMs: number; readonly runningMs: number };
}

export interface SimulatorState {
  readonly openRequests: number;
  readonly totalRequests: number;
  /** Requests whose client disconnected before the end of the answer. */
  readonly cancelledRequests: number;
  /** Video tasks created, without those answered with an error or created before. */
  readonly videosMade: number;
  /** Polls of video tasks. */
  readonly polls: number;
  /** WebSockets open now, and in total. */
  readonly openSessions: number;
  readonly totalSessions: number;
}

export interface Simulator {
  readonly port: number;
  /** Base URL for SDKs, with `/v1`. */
  readonly url: string;
  state(): SimulatorState;
  /** @param method restricts the search to a method */
  lastRequest(method?: string): SimulatorRequest | null;
  /** Calls `onUnused` once no client has been connected for `ms`, starting now. */
  whenUnused(ms: number, onUnused: () => void): void;
  /** Stops listening and destroys all connections. */
  close(): Promise<void>;
}

/**
 * Starts the simulator on the loopback interface of this process.
 * @throws the error of `listen` if the port is taken.
 */
export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const settings = { latencyMs: options.latencyMs ?? 0, tokensPerSecond: options.tokensPerSecond ?? 0 };
  const spoiled = new WeakSet<Socket>();
  const counts = { openRequests: 0, totalRequests: 0, cancelledRequests: 0 };
  const book = newVideoBook(options.videoPace ?? { queuedMs: 500, runningMs: 1500 });
  const routes = routesOf(book);
  const isDue = directivesDue();
  let last: SimulatorRequest | null = null;
  const lastBy = new Map<string, SimulatorRequest>();

  const upgrades = socketUpgrades({
    pace: settings,
    isDue,
    onRequest(request) {
      last = request;
      options.onRequest?.(request);
    },
  });

  const state = (): SimulatorState => ({
    ...counts,
    ...upgrades.counts(),
    videosMade: book.made,
    polls: book.polls,
  });

  function own(path: string): Reply {
    const body =
      path === `${ownPath}state`
        ? state()
        : { ...last, body: last?.body.toString('base64') ?? null, directives: undefined };
    return jsonReply({ answerFormat: openaiFormat, directives: [] }, body);
  }

  async function onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const exchange = openReply(response, request.socket, spoiled);
    const target = request.url ?? '/';
    if (target.startsWith(ownPath) && !target.startsWith(resultPath)) {
      await send(exchange, own(target), { latencyMs: 0, tokensPerSecond: 0 });
      return;
    }
    counts.openRequests += 1;
    counts.totalRequests += 1;
    response.on('close', () => {
      counts.openRequests -= 1;
      counts.cancelledRequests += exchange.ended || response.writableFinished ? 0 : 1;
    });
    if (spoiled.has(request.socket)) {
      exchange.ended = true;
      request.socket.resetAndDestroy();
      return;
    }
    const body = await readBody(request);
    if (body === null || exchange.closed) {
      request.socket.destroy();
      return;
    }
    const header = request.headers['x-simulator-fault'];
    last = {
      method: request.method ?? 'GET',
      target,
      rawHeaders: request.rawHeaders,
      body,
      directives: headerDirectives(typeof header === 'string' ? header : undefined),
    };
    lastBy.set(last.method, last);
    options.onRequest?.(last);
    await send(exchange, await replyTo(routes, last, isDue), settings);
  }

  const server = createServer((request, response) => {
    onRequest(request, response).catch(() => response.destroy());
  });
  server.on('upgrade', upgrades.upgrade);
  // The client's pool decides how long it keeps a connection; closing it here would race with the next request.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port: options.port ?? 0, host: loopback, backlog: 4096 }, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    whenUnused: (ms, onUnused) => watchUse(server, ms, onUnused),
    url: `http://${loopback}:${port}/v1`,
    state,
    lastRequest: (method) => (method === undefined ? last : (lastBy.get(method) ?? null)),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
        upgrades.close();
      }),
  };
}

function watchUse(server: Server, ms: number, onUnused: () => void): void {
  let usedAt = performance.now();
  const timer = setInterval(() => {
    server.getConnections((_error, open) => {
      if (open > 0) usedAt = performance.now();
      if (performance.now() - usedAt < ms) return;
      clearInterval(timer);
      onUnused();
    });
  }, ms / 10).unref();
}

function route(routes: readonly Route[], request: SimulatorRequest): Reply | Promise<Reply> {
  const path = request.target.split('?', 1)[0] ?? '';
  const found = routes.filter((one) =>
    typeof one.path === 'string' ? one.path === path : one.path.test(path),
  );
  const match = found.find((one) => one.method === request.method);
  if (match !== undefined) {
    return match.handle(request);
  }
  const error =
    found.length > 0
      ? new RequestError(405, `${request.method} is not allowed on ${path}.`)
      : new RequestError(404, `Unknown request URL: ${request.method} ${path}.`, null, 'unknown_url');
  return refusal(error, formatOf(path));
}

const formatsOfVendors: readonly (readonly [
  prefix: string,
  answerFormat: (digest: string) => AnswerFormat,
])[] = [
  ['/vendork/', vendorkFormat],
  ['/vendorj', vendorjFormat],
  ['/api/v1/', dashScopeFormat],
];

/** The format of the error for a request without a route, by the protocol of its path. */
function formatOf(path: string): AnswerFormat {
  for (const [prefix, answerFormat] of formatsOfVendors) {
    if (path.startsWith(prefix)) {
      return answerFormat(createHash('sha256').update(path).digest('hex'));
    }
  }
  if (path.startsWith('/v1beta/') || path.startsWith('/v1alpha/') || /^\/v1\/models\/.+:/.test(path)) {
    return generateContentFormat(null);
  }
  return /^\/v1\/messages(?:\/|$)/.test(path) ? messagesFormat(null) : openaiFormat;
}

/** Reads the whole body; null if it is too large or does not arrive. */
async function readBody(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > largestBody) {
        return null;
      }
      chunks.push(chunk);
    }
  } catch {
    return null;
  }
  return Buffer.concat(chunks, size);
}

/** @returns a function that decides whether a directive still applies: one with `times=N` applies N times */
function directivesDue(): (directive: Directive) => boolean {
  const fired = new Map<string, number>();
  return (directive) => {
    const times = Number(directive.options.get('times') ?? Infinity);
    if (times === Infinity) {
      return true;
    }
    const before = fired.get(directive.source) ?? 0;
    if (fired.size > maxCounted) {
      fired.clear();
    }
    fired.set(directive.source, before + 1);
    return before < times;
  };
}

async function replyTo(
  routes: ReturnType<typeof routesOf>,
  request: SimulatorRequest,
  isDue: (directive: Directive) => boolean,
): Promise<Reply> {
  const reply = await route(routes, request);
  try {
    const faulty = await applyFaults(reply, reply.directives.filter(isDue));
    if (faulty.status < 400) {
      faulty.effect?.();
    }
    return faulty;
  } catch (error) {
    if (error instanceof RequestError) return refusal(error, reply.answerFormat);
    throw error;
  }
}
