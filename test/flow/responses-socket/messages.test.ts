import { once } from 'node:events';
import { type Test, test } from 'tap';
import { hashKey } from '../../../src/keys/secret.js';
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
