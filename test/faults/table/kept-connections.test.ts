import type { Socket } from 'node:net';
import t, { type Test, test } from 'tap';
import { startGateway } from '../../support/gateway.js';
import { exchange } from '../../support/raw-client.js';
import { postBytes } from '../../support/translated.js';
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
} from '../../support/upstream.js';
import { figuresOf } from './figures.js';
import { isStreamed } from './hostile.js';

t.jobs = 8;

/** Returns the whole answer to one request, which it names. */
function answerTo({ body }: RawRequest): string {
  const { user } = JSON.parse(body.toString()) as { user: string };
  const named = completion.replace('"hi"', JSON.stringify(`for ${user}`));
  if (!isStreamed(body)) return jsonAnswer(200, named);
  return (
    streamHead + chunk(chatEvent({ content: `for ${user}` }) + chatEvent({}, 'stop') + doneEvent) + lastChunk
  );
}

const stray = jsonAnswer(200, completion.replace('"hi"', '"for nobody"'));
const laterMs = 100;

/** What follows a whole answer, or replaces one, so that the rest of it looks like another answer. */
const poisons: readonly (readonly [name: string, write: (socket: Socket, answer: string) => unknown])[] = [
  ['another answer in the same packet', (socket, answer) => socket.write(answer + stray)],
  ['a line feed in the same packet', (socket, answer) => socket.write(`${answer}\r\n`)],
  ['garbage in the same packet', (socket, answer) => socket.write(`${answer}\0\xff garbage`, 'latin1')],
  ['the start of another answer', (socket, answer) => socket.write(`${answer}HTTP/1.1 200 OK\r\nx-a: `)],
  [
    'another answer a moment later',
    async (socket, answer) => {
      socket.write(answer);
      await untilRead(socket);
      socket.write(stray);
    },
  ],
];

interface Asked {
  readonly user: string;
  readonly stream?: boolean;
}

async function start(t: Test, answer: (request: RawRequest, index: number) => void, maxConnections = 8) {
  const upstream = await startRawUpstream(t, answer);
  const gateway = await startGateway(t, { upstreams: [upstream.url], upstream: { maxConnections } });
  const ask = ({ user, stream = false }: Asked) =>
    exchange(
      gateway.port,
      postBytes('/v1/chat/completions', {
        model: 'm',
        user,
        stream,
        messages: [{ role: 'user', content: 'hi' }],
      }),
    );
  return { upstream, gateway, ask };
}

for (const [name, write] of poisons) {
  for (const stream of [false, true]) {
    test(`${name}, behind ${stream ? 'a stream' : 'an answer'}, reaches nobody`, async (t) => {
      const { upstream, gateway, ask } = await start(t, (request, index) => {
        if (index === 0) write(request.socket, answerTo(request));
        else request.socket.write(answerTo(request));
      });
      t.match((await ask({ user: 'a', stream })).body, '"for a"');
      await (await upstream.request(0)).closed;
      for (const user of ['b', 'c']) t.match((await ask({ user })).body, `"for ${user}"`);
      const [first, second, third] = upstream.requests;
      t.not(second?.socket, first?.socket, 'the connection is not used again');
      t.equal(third?.socket, second?.socket, 'one that is clean is');
      const figures = figuresOf(gateway);
      t.equal(figures.sum('gateway_upstream_attempts_total', { result: 'ok' }), 3);
      t.equal(figures.stateOf('u0/m'), 'closed', 'each call was answered well');
    });
  }
}

test('a call that waits for the only connection does not get what was behind the answer before', async (t) => {
  const { upstream, ask } = await start(
    t,
    (request, index) => {
      if (index > 0) request.socket.write(answerTo(request));
      else setTimeout(() => request.socket.write(answerTo(request) + stray), laterMs);
    },
    1,
  );
  const users = ['a', 'b', 'c'];
  const answers = await Promise.all(users.map((user) => ask({ user })));
  for (const [index, user] of users.entries()) t.match(answers[index]?.body, `"for ${user}"`);
  t.not(upstream.requests[1]?.socket, upstream.requests[0]?.socket);
});

test('a body that is longer than its length is cut there, and its rest reaches nobody', async (t) => {
  const { upstream, ask } = await start(t, (request, index) => {
    const answer = answerTo(request);
    request.socket.write(index === 0 ? answer.replace(/content-length: \d+/, 'content-length: 20') : answer);
  });
  const cut = await ask({ user: 'a' });
  t.equal(cut.body.length, 20);
  t.match((await ask({ user: 'b' })).body, '"for b"');
  t.not(upstream.requests[1]?.socket, upstream.requests[0]?.socket);
});

test('an answer without a body has none, whatever follows', async (t) => {
  for (const status of [204, 304]) {
    const { upstream, ask } = await start(t, (request, index) => {
      if (index > 0) request.socket.write(answerTo(request));
      else request.socket.write(`HTTP/1.1 ${status} X\r\ncontent-length: 5\r\n\r\nhello`);
    });
    t.notMatch((await ask({ user: 'a' })).body, 'hello');
    t.match((await ask({ user: 'b' })).body, '"for b"');
    t.not(upstream.requests[1]?.socket, upstream.requests[0]?.socket);
  }
});

test('a kept connection that dies as it is used again costs nobody anything', async (t) => {
  const { upstream, gateway, ask } = await start(t, (request, index) => {
    if (index === 1) request.socket.resetAndDestroy();
    else request.socket.write(answerTo(request));
  });
  for (const user of ['a', 'b']) t.match((await ask({ user })).body, `"for ${user}"`);
  t.equal(upstream.requests.length, 3);
  const figures = figuresOf(gateway);
  t.equal(figures.sum('gateway_upstream_attempts_total', { result: 'ok' }), 2);
  t.equal(figures.sum('gateway_upstream_attempts_total'), 2, 'it is one attempt all the same');
  t.equal(figures.sum('gateway_retries_total'), 0);
});

test('a connection that breaks behind a whole stream is not held against the target', async (t) => {
  const { gateway, ask } = await start(t, (request) => {
    const answer = answerTo(request);
    if (isStreamed(request.body)) request.socket.end(answer.slice(0, -lastChunk.length));
    else request.socket.write(answer);
  });
  for (let i = 0; i < 6; i++) t.match((await ask({ user: 'a', stream: true })).body, /\[DONE\]\n\n$/);
  const figures = figuresOf(gateway);
  t.equal(figures.sum('gateway_upstream_attempts_total', { result: 'ok' }), 6);
  t.equal(figures.sum('gateway_requests_total', { outcome: 'complete' }), 6);
  t.equal(figures.stateOf('u0/m'), 'closed');
});
