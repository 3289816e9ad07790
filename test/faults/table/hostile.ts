import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { Test } from 'tap';
import { ownAddress } from '../../support/free-port.js';
import { startProxy, type TestProxy } from '../../support/proxy.js';
import { untilRead } from '../../support/until-read.js';
import {
  chatEvent,
  chunk,
  completion,
  doneEvent,
  jsonAnswer,
  lastChunk,
  type RawRequest,
  startRawUpstream,
  streamHead,
  usageEvent,
} from '../../support/upstream.js';

/** An upstream that is ill, until it is cured. */
export interface Hostile {
  readonly url: string;
  /** Of its own in the config's `upstreams`. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Requests that have reached it whole. */
  seen(): number;
  /** From now on it answers as it should; null where nothing can make it well. */
  readonly cure: (() => Promise<void>) | null;
}

/** Starts it; it ends with the test. */
export type StartHostile = (t: Test) => Promise<Hostile>;

/** What a chat upstream does that is well: a completion, or the stream of one, that says `hi`. */
export function answerWell({ socket, body }: RawRequest): void {
  socket.write(isStreamed(body) ? streamHead + chunk(wholeStream) + lastChunk : jsonAnswer(200, completion));
}

const wholeStream = [
  chatEvent({ role: 'assistant', content: 'hi' }),
  chatEvent({}, 'stop'),
  usageEvent,
  doneEvent,
].join('');

/** Whether a request's body asks for a stream. */
export function isStreamed(body: Buffer): boolean {
  return body.includes('"stream":true');
}

/** It answers each request with these bytes, or has the function answer. */
export function answering(answer: string | ((request: RawRequest) => void)): StartHostile {
  return async (t) => {
    let isIll = true;
    const raw = await startRawUpstream(t, (request) => {
      if (!isIll) answerWell(request);
      else if (typeof answer === 'string') request.socket.write(answer, 'latin1');
      else answer(request);
    });
    return {
      url: raw.url,
      settings: {},
      seen: () => raw.requests.length,
      cure: async () => {
        isIll = false;
      },
    };
  };
}

/** It answers with these bytes and says that this was all, which it may not be. */
export function ending(answer: string): StartHostile {
  return answering(({ socket }) => socket.end(answer, 'latin1'));
}

/** It answers with these bytes, and breaks the connection when they are read. */
export function resetting(answer: string): StartHostile {
  return answering(({ socket }) => writeInTurn(socket, answer, () => socket.resetAndDestroy()));
}

/** It answers with these bytes, and with more when they are read. */
export function adding(answer: string, more: string): StartHostile {
  return answering(({ socket }) => writeInTurn(socket, answer, () => socket.write(more, 'latin1')));
}

async function writeInTurn(socket: Socket, answer: string, next: () => unknown): Promise<void> {
  socket.write(answer, 'latin1');
  await untilRead(socket);
  next();
}

/** It does this with every connection, and reads no request. */
export function accepting(onConnection: (socket: Socket) => void, tls = false): StartHostile {
  return async (t) => {
    let isIll = true;
    const raw = await startRawUpstream(t, answerWell, {
      ...(tls ? { tls: certificates.good } : {}),
      onConnection: (socket) => {
        if (isIll) onConnection(socket);
        return isIll;
      },
    });
    return {
      url: raw.url,
      settings: tls ? trusting : {},
      seen: () => raw.requests.length,
      cure: async () => {
        isIll = false;
      },
    };
  };
}

/** Nothing listens at its port. */
export const refusing: StartHostile = async (t) => {
  const host = ownAddress;
  const raw = await startRawUpstream(t, answerWell, { host });
  const { port } = raw;
  await raw.close();
  let requests: readonly RawRequest[] = [];
  return {
    url: raw.url,
    settings: {},
    seen: () => requests.length,
    cure: async () => {
      ({ requests } = await startRawUpstream(t, answerWell, { host, port }));
    },
  };
};

/** Its name means no address: the top-level domain is reserved for that (RFC 6761 section 6.4). */
export const nameless: StartHostile = async () => ({
  url: 'http://nowhere.invalid/v1',
  settings: {},
  seen: () => 0,
  cure: null,
});

/** It is behind a proxy that does this in place of opening a tunnel. */
export function behindProxy(onRequest: TestProxy['answer']): StartHostile {
  return async (t) => {
    const raw = await startRawUpstream(t, answerWell);
    const proxy = await startProxy(t, onRequest);
    return {
      url: raw.url,
      settings: { proxy: proxy.url('user:pass') },
      seen: () => raw.requests.length,
      cure: async () => {
        proxy.answer = (request) => void request.open();
      },
    };
  };
}

const fixtures = new URL('../../../../test/fixtures/tls/', import.meta.url);
const pem = (name: string) => readFileSync(new URL(name, fixtures), 'utf8');
const ca = pem('ca.pem');

/** What a server may show: see `test/upstream/secure.test.ts` for what they are. */
export const certificates = {
  good: { cert: pem('localhost.pem'), key: pem('localhost.key') },
  expired: { cert: pem('expired.pem'), key: pem('localhost.key') },
  selfSigned: { cert: ca, key: pem('ca.key') },
};

const trusting = { tls: { ca, serverName: 'localhost' } };

/**
 * It speaks TLS with a certificate that does not hold.
 * @param settings its `tls` in the config; its certificate authority and name unless given
 */
export function showing(
  certificate: { cert: string; key: string },
  settings: object = trusting,
): StartHostile {
  return async (t) => {
    const raw = await startRawUpstream(t, answerWell, { tls: certificate });
    return {
      url: raw.url,
      settings: { ...settings },
      seen: () => raw.requests.length,
      // Only what the config trusts can be shown in its place.
      cure: settings === trusting ? async () => raw.secure?.setSecureContext(certificates.good) : null,
    };
  };
}
