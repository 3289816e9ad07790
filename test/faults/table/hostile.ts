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

/** A faulty upstream, until it is repaired. */
export interface Hostile {
  readonly url: string;
  /** Its own members in the config's `upstreams`. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Requests that have reached it completely. */
  seen(): number;
  /** Makes it healthy from now on; null if that is impossible. */
  readonly cure: (() => Promise<void>) | null;
}

/** Starts it. It ends with the test. */
export type StartHostile = (t: Test) => Promise<Hostile>;

/** Answers like a healthy chat upstream: a completion, or a stream of one, with the text `hi`. */
export function answerWell({ socket, body }: RawRequest): void {
  socket.write(isStreamed(body) ? streamHead + chunk(wholeStream) + lastChunk : jsonAnswer(200, completion));
}

const wholeStream = [
  chatEvent({ role: 'assistant', content: 'hi' }),
  chatEvent({}, 'stop'),
  usageEvent,
  doneEvent,
].join('');

/** Whether a request's body requests a stream. */
export function isStreamed(body: Buffer): boolean {
  return body.includes('"stream":true');
}

/** Answers each request with these bytes, or by the function. */
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

/** Answers with these bytes and a FIN, although more may be missing. */
export function ending(answer: string): StartHostile {
  return answering(({ socket }) => socket.end(answer, 'latin1'));
}

/** Answers with these bytes, and breaks the connection when they have been read. */
export function resetting(answer: string): StartHostile {
  return answering(({ socket }) => writeInTurn(socket, answer, () => socket.resetAndDestroy()));
}

/** Answers with these bytes, and with more when they have been read. */
export function adding(answer: string, more: string): StartHostile {
  return answering(({ socket }) => writeInTurn(socket, answer, () => socket.write(more, 'latin1')));
}

async function writeInTurn(socket: Socket, answer: string, next: () => unknown): Promise<void> {
  socket.write(answer, 'latin1');
  await untilRead(socket);
  next();
}

/** Does this with every connection, and reads no request. */
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

/** Nothing listens on its port. */
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

/** Its name has no address: the top-level domain is reserved for that (RFC 6761 section 6.4). */
export const nameless: StartHostile = async () => ({
  url: 'http://nowhere.invalid/v1',
  settings: {},
  seen: () => 0,
  cure: null,
});

/** It is behind a proxy that does this instead of opening a tunnel. */
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

/** Certificates of a server: `test/upstream/secure.test.ts` describes them. */
export const certificates = {
  good: { cert: pem('localhost.pem'), key: pem('localhost.key') },
  expired: { cert: pem('expired.pem'), key: pem('localhost.key') },
  selfSigned: { cert: ca, key: pem('ca.key') },
};

const trusting = { tls: { ca, serverName: 'localhost' } };

/**
 * It uses TLS with a certificate that is not valid.
 * @param settings its `tls` in the config. Default: its certificate authority and name
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
      // Only a certificate that the config trusts can replace it.
      cure: settings === trusting ? async () => raw.secure?.setSecureContext(certificates.good) : null,
    };
  };
}
