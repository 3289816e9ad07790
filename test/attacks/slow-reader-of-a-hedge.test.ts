import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as after } from 'node:timers/promises';
import { test } from 'tap';
import { eventually } from '../support/eventually.js';
import { chatRequest } from '../support/raw-client.js';
import { startRouted } from '../support/routed.js';
import { type Answer, jsonAnswer } from '../support/upstream.js';

const size = 24 << 20;
/** Errors are taken whole, up to a megabyte: they leave in one piece, and wait with us. */
const errorSize = 1_000_000;
const sizeOf = (status: number): number => (status < 300 ? size : errorSize);
/** Bytes of large answers that their upstreams could get rid of. */
let taken = 0;
const large = (status: number): Answer => {
  const answer = Buffer.from(
    jsonAnswer(status, JSON.stringify({ error: { message: ''.padEnd(sizeOf(status), 'x'), code: 'own' } })),
  );
  return ({ socket }) => {
    let at = 0;
    const goOn = (): void => {
      while (at < answer.length) {
        const piece = answer.subarray(at, at + 65_536);
        at += piece.length;
        taken += piece.length;
        if (!socket.write(piece)) return;
      }
    };
    socket.on('drain', goOn);
    goOn();
  };
};
const slow = (behaviour: Answer, ms: number): Answer =>
  typeof behaviour === 'function'
    ? (request, index) => void setTimeout(() => behaviour(request, index), ms)
    : behaviour;

for (const [name, behaviours, hedgeMs, whole] of [
  ['the first answers well before a second is asked', [large(200), large(200)], 60_000, size],
  [
    'the first answers with an error that is the caller’s, before a second is asked',
    [large(400), large(200)],
    60_000,
    errorSize,
  ],
  ['the first answers with an error, and there is no second', [large(400)], 60_000, errorSize],
  ['the second overtakes the first', [() => {}, large(200)], 5, size],
  [
    'the second fails, and the first answers with an error',
    [slow(large(400), 150), large(500)],
    5,
    errorSize,
  ],
] as const) {
  test(`a large answer of a call that may be hedged reaches a slow reader whole: ${name}`, async (t) => {
    const routed = await startRouted(t, behaviours, {
      config: {
        models: {
          m: {
            protocols: ['chat'],
            targets: behaviours.map((_, priority) => ({ upstream: `u${priority}`, priority })),
            hedgeMs,
          },
        },
      },
    });
    const socket = connect(routed.gateway.port, '127.0.0.1');
    t.teardown(() => socket.destroy());
    await once(socket, 'connect');
    socket.pause();
    taken = 0;
    socket.write(chatRequest('{"model":"m","messages":[{"role":"user","content":"hi"}]}'));
    // Until the upstream is held back by a client that reads nothing.
    await routed.upstreams[0]?.request(0);
    for (let before = -1; before !== taken || taken === 0; ) {
      before = taken;
      await after(100);
    }
    if (whole === size) t.ok(taken < size, `${taken}`);
    let received = 0;
    socket.on('data', (data) => {
      received += data.length;
    });
    socket.resume();
    await eventually(() => received > whole, { what: 'the whole answer' });
  });
}
