import { once } from 'node:events';
import { type Test, test } from 'tap';
import { SessionList } from '../../../src/flow/sockets/sessions.js';
import { hashKey } from '../../../src/keys/secret.js';
import { eventually } from '../../support/eventually.js';
import { startGateway, testKey } from '../../support/gateway.js';
import { connect, create } from '../../support/responses-socket.js';
import {
  chatEvent,
  chunk,
  doneEvent,
  lastChunk,
  type RawRequest,
  startRawUpstream,
  streamHead,
} from '../../support/upstream.js';

const answered = `${streamHead}${chunk(chatEvent({ content: 'hi' }) + chatEvent({}, 'stop') + doneEvent)}${lastChunk}`;
const question = create({ model: 'm', input: 'x' });

interface Options {
  readonly limits?: object;
  readonly sockets?: object;
  readonly onRequest?: (request: RawRequest) => void;
}

/** Opens a socket of a key to a gateway with an upstream for chat. */
async function start(t: Test, { limits = {}, sockets = {}, onRequest }: Options) {
  const upstream = await startRawUpstream(t, onRequest ?? (({ socket }) => socket.write(answered)));
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['responses'],
    config: { keys: [{ id: 'k', hash: hashKey(testKey), groups: ['default'], limits }], sockets },
  });
  const opened = await connect(t, gateway.url, { authorization: `Bearer ${testKey}` });
  return { gateway, upstream, ...opened };
}

test('a message beyond the limits of its key is refused before anything of it is read', async (t) => {
  const { send, answer } = await start(t, { limits: { requestsPerMinute: 1 } });
  send(question);
  t.equal((await answer()).at(-1)?.type, 'response.completed');
  for (const message of ['{', '{"type":"response.steer"}', question]) {
    send(message);
    t.match(await answer(), [{ type: 'error', status: 429, error: { code: 'rate_limit_exceeded' } }]);
  }
});

test('a message that is refused for its content counts as a request of its key', async (t) => {
  const { send, answer } = await start(t, { limits: { requestsPerMinute: 2 } });
  for (const message of ['{', '{"type":"response.steer"}']) {
    send(message);
    t.match(await answer(), [{ type: 'error', status: 400 }]);
  }
  send(question);
  t.match(await answer(), [{ type: 'error', status: 429 }]);
});

test('a socket on which too many messages are refused in a second ends', async (t) => {
  const { socket, send, answer } = await start(t, { limits: { requestsPerMinute: 1 } });
  let isClosed = false;
  const closed = once(socket, 'close').then(([code]) => {
    isClosed = true;
    return code as number;
  });
  for (let sent = 0; sent < 5000 && !isClosed; sent++) {
    send(question);
    await Promise.race([answer(), closed]);
  }
  t.ok(isClosed);
  if (isClosed) t.equal(await closed, 1008);
});

/** Sends a question that the upstream does not answer yet, and two that wait for it. */
async function startWaiting(t: Test, sockets: object) {
  const asked: RawRequest[] = [];
  const started = await start(t, { sockets, onRequest: (request) => asked.push(request) });
  for (let sent = 0; sent < 3; sent++) started.send(question);
  // Refused at once, behind those that wait.
  started.socket.send(Buffer.from('x'));
  t.match(await started.answer(), [{ type: 'error', error: { message: /Binary/ } }]);
  await eventually(() => asked.length === 1);
  const closed = once(started.socket, 'close');
  return {
    ...started,
    /** Answers the first question, and expects the end of the session. */
    async expectEnd(message: RegExp, code: number) {
      asked[0]?.socket.write(answered);
      t.equal((await started.answer()).at(-1)?.type, 'response.completed');
      const ids = new Set<string | undefined>();
      for (let waiting = 0; waiting < 2; waiting++) {
        const refused = await started.answer();
        t.match(refused, [{ type: 'error', status: 503, error: { message } }]);
        ids.add(refused[0]?.headers?.['x-request-id']);
      }
      t.equal(ids.size, 2, 'each has an id of its own');
      t.equal((await closed)[0], code);
      t.equal(asked.length, 1);
    },
  };
}

test('messages that wait when their session ends for its age are refused', async (t) => {
  const sessionMs = 2000;
  const { expectEnd } = await startWaiting(t, { sessionMs });
  const openedAt = performance.now();
  await eventually(() => performance.now() - openedAt > sessionMs);
  await expectEnd(/maximum duration/, 1001);
});

test('messages that wait when a drain begins are refused, and do not hold it up', async (t) => {
  const { drain } = SessionList.prototype;
  const begun = new Promise<void>((resolve) => {
    const value = function (this: SessionList): void {
      drain.call(this);
      resolve();
    };
    t.intercept(SessionList.prototype, 'drain', { value });
  });
  const { gateway, expectEnd } = await startWaiting(t, {});
  const drained = gateway.gateway.drain();
  await begun;
  await expectEnd(/shutting down/, 1012);
  await drained;
});
