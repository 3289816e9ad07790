import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { chatManner, chatRoutes, errorReply } from './chat.js';
import { type Directive, DirectiveError, headerDirectives } from './directives.js';
import { applyFaults } from './faults.js';
import { OpenAiError } from './openai-error.js';
import { bodyReply, type Reply, type Route, type SimulatorRequest } from './reply.js';
import { openExchange, send } from './send.js';

const loopback = '127.0.0.1';
const largestBody = 256 * 1024 * 1024;
const mostCounted = 10_000;
const ownPath = '/__simulator/';

export interface SimulatorOptions {
  /** 0, the default, takes a free one. */
  readonly port?: number;
  /** From the whole request to the head of the answer; 0 by default. */
  readonly latencyMs?: number;
  /** Pace of streams; 0, the default, is no pacing. */
  readonly tokensPerSecond?: number;
  /** Hears of every request once its body is there, before it is answered. */
  readonly onRequest?: (request: SimulatorRequest) => void;
}

export interface SimulatorState {
  readonly openRequests: number;
  readonly totalRequests: number;
  /** Requests whose client left before its answer was whole. */
  readonly cancelledRequests: number;
}

export interface Simulator {
  readonly port: number;
  /** Base URL as an SDK takes it, with `/v1`. */
  readonly url: string;
  state(): SimulatorState;
  lastRequest(): SimulatorRequest | null;
  /** Stops listening and destroys what is open. */
  close(): Promise<void>;
}

/**
 * Starts the simulator on the loopback interface of this process.
 * @throws what `listen` says when the port is taken.
 */
export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const settings = { latencyMs: options.latencyMs ?? 0, tokensPerSecond: options.tokensPerSecond ?? 0 };
  const spoiled = new WeakSet<Socket>();
  const fired = new Map<string, number>();
  const counts = { openRequests: 0, totalRequests: 0, cancelledRequests: 0 };
  let last: SimulatorRequest | null = null;

  /** Whether a directive still counts: one with `times=N` does so N times. */
  function isDue(directive: Directive): boolean {
    const times = Number(directive.options.get('times') ?? Infinity);
    if (times === Infinity) {
      return true;
    }
    const before = fired.get(directive.source) ?? 0;
    if (fired.size > mostCounted) {
      fired.clear();
    }
    fired.set(directive.source, before + 1);
    return before < times;
  }

  async function replyTo(request: SimulatorRequest): Promise<Reply> {
    const reply = route(request);
    try {
      return await applyFaults(reply, reply.directives.filter(isDue));
    } catch (error) {
      if (error instanceof DirectiveError) {
        return errorReply(new OpenAiError(400, error.message, null, 'unknown_fault'));
      }
      throw error;
    }
  }

  function own(path: string): Reply {
    const body =
      path === `${ownPath}state`
        ? { ...counts }
        : { ...last, body: last?.body.toString('base64') ?? null, directives: undefined };
    return bodyReply({ status: 200, body: JSON.stringify(body), manner: chatManner });
  }

  async function onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const exchange = openExchange(response, request.socket, spoiled);
    const target = request.url ?? '/';
    if (target.startsWith(ownPath)) {
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
    options.onRequest?.(last);
    await send(exchange, await replyTo(last), settings);
  }

  const server = createServer((request, response) => {
    onRequest(request, response).catch(() => response.destroy());
  });
  // A pool in front decides how long it keeps a connection; a close from here would race with its next request.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port: options.port ?? 0, host: loopback, backlog: 4096 }, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://${loopback}:${port}/v1`,
    state: () => ({ ...counts }),
    lastRequest: () => last,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Every route of the simulator; each protocol brings its own. */
const routes: readonly Route[] = [...chatRoutes];

function route(request: SimulatorRequest): Reply {
  const path = request.target.split('?', 1)[0];
  const found = routes.filter((one) => one.path === path);
  const match = found.find((one) => one.method === request.method);
  if (match !== undefined) {
    return match.handle(request);
  }
  return errorReply(
    found.length > 0
      ? new OpenAiError(405, `${request.method} is not allowed on ${path}.`)
      : new OpenAiError(404, `Unknown request URL: ${request.method} ${path}.`, null, 'unknown_url'),
  );
}

/** The whole body, or null when it is too large or does not arrive. */
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
