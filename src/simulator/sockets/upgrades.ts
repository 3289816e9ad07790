import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { WebSocketServer } from 'ws';
import { type Directive, headerDirectives } from '../faults/directives.js';
import { applyFaults } from '../faults/faults.js';
import type { Pace } from '../http/pace.js';
import type { Reply, SimulatorRequest } from '../http/reply.js';
import { RequestError } from '../http/request-error.js';
import { refusal } from '../http/route.js';
import { openReply, send } from '../http/send.js';
import { openaiFormat } from '../openai/format.js';
import { wishedNumber } from '../realtime/faults.js';
import { serveRealtime } from '../realtime/route.js';
import { serveResponses } from '../responses/socket.js';
import { SocketLine } from './line.js';

const largestMessage = 64 * 1024 * 1024;
/** Directives about the session, which do not refuse it. */
const wordsOfSessions = ['latency', 'rate'];

interface UpgradeParts {
  readonly pace: Pace;
  /** Called with every upgrade request before it is answered. */
  onRequest(request: SimulatorRequest): void;
  isDue(directive: Directive): boolean;
}

/** The WebSocket side of the simulator. */
interface Upgrades {
  /** Handler of the server's event of that name. */
  upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void;
  counts(): { readonly openSessions: number; readonly totalSessions: number };
  /** Ends every WebSocket and every pending upgrade. */
  close(): void;
}

/** Upgrades `GET /v1/realtime` and `GET /v1/responses`, and refuses all other upgrades. */
export function socketUpgrades(parts: UpgradeParts): Upgrades {
  const connections = new Set<Socket>();
  const counts = { openSessions: 0, totalSessions: 0 };
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: largestMessage,
    clientTracking: false,
    handleProtocols: (offered) => (offered.has('realtime') ? 'realtime' : false),
  });

  function open(request: IncomingMessage, connection: Socket, head: Buffer, pace: Pace): void {
    server.handleUpgrade(request, connection, head, (socket) => {
      counts.openSessions += 1;
      counts.totalSessions += 1;
      socket.on('close', () => {
        counts.openSessions -= 1;
      });
      const line = new SocketLine(socket, connection);
      const { isDue } = parts;
      const { pathname, searchParams } = urlOf(request);
      if (pathname === '/v1/responses') {
        serveResponses({ line, pace, isDue });
        return;
      }
      const model = searchParams.get('model');
      const { headers } = request;
      serveRealtime({ line, headers, model, number: counts.totalSessions, pace, isDue });
    });
  }

  async function take(request: IncomingMessage, connection: Socket, head: Buffer): Promise<void> {
    const asked = wishesOf(request).filter(parts.isDue);
    const pace: Pace = {
      latencyMs: wishedNumber(asked, 'latency', 0),
      tokensPerSecond: wishedNumber(asked, 'rate', parts.pace.tokensPerSecond),
    };
    if (!isKnown(request)) {
      const message = `Unknown request URL: ${request.method} ${urlOf(request).pathname}.`;
      const error = new RequestError(404, message, null, 'unknown_url');
      await answer(request, connection, refusal(error, openaiFormat));
      return;
    }
    if (asked.some(({ name }) => !wordsOfSessions.includes(name))) {
      const usual = refusal(
        new RequestError(400, 'The simulator was asked to refuse the upgrade.'),
        openaiFormat,
      );
      await answer(request, connection, await applyFaults(usual, asked));
      return;
    }
    if (pace.latencyMs > 0) {
      await new Promise((resolve) => setTimeout(resolve, pace.latencyMs));
    }
    open(request, connection, head, { ...pace, latencyMs: parts.pace.latencyMs });
  }

  return {
    upgrade(request, connection, head) {
      connections.add(connection);
      connection.on('close', () => connections.delete(connection));
      connection.on('error', () => undefined);
      parts.onRequest({
        method: request.method ?? 'GET',
        target: request.url ?? '/',
        rawHeaders: request.rawHeaders,
        body: Buffer.alloc(0),
        directives: headerWishes(request),
      });
      take(request, connection, head)
        .catch((error) => {
          if (!(error instanceof RequestError)) throw error;
          return answer(request, connection, refusal(error, openaiFormat));
        })
        .catch(() => connection.destroy());
    },
    counts: () => ({ ...counts }),
    close() {
      for (const connection of connections) {
        connection.destroy();
      }
    },
  };
}

function urlOf(request: IncomingMessage): URL {
  return new URL(request.url ?? '/', 'http://simulator');
}

function isKnown(request: IncomingMessage): boolean {
  const isSocket = request.method === 'GET' && request.headers.upgrade?.toLowerCase() === 'websocket';
  return isSocket && ['/v1/realtime', '/v1/responses'].includes(urlOf(request).pathname);
}

function headerWishes({ headers }: IncomingMessage): Directive[] {
  const header = headers['x-simulator-fault'];
  return headerDirectives(typeof header === 'string' ? header : undefined);
}

/** The directives of an upgrade, from the header or, if no gateway passes that, from the model's name. */
function wishesOf(request: IncomingMessage): Directive[] {
  const model = urlOf(request).searchParams.get('model') ?? '';
  const status = /^refuse-(\d{3})$/.exec(model)?.[1];
  const byModel = status === undefined ? (/^(?:hang|reset)$/.exec(model)?.[0] ?? '') : `status=${status}`;
  return [...headerWishes(request), ...headerDirectives(byModel)];
}

/** Answers in HTTP on a connection that Node's server has detached, and ends it. */
async function answer(request: IncomingMessage, connection: Socket, reply: Reply): Promise<void> {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(connection);
  response.on('finish', () => connection.destroySoon());
  // Nothing else reads the connection, and without reading its end would not be noticed.
  connection.resume();
  const exchange = openReply(response, connection, new WeakSet());
  await send(exchange, reply, { latencyMs: 0, tokensPerSecond: 0 });
}
