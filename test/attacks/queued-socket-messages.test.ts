import { performance } from 'node:perf_hooks';
import { test } from 'tap';
import { ResponseHistory } from '../../src/flow/responses-socket/socket.js';
import { SessionMemory } from '../../src/flow/sockets/session-memory.js';
import { eventually } from '../support/eventually.js';
import { startGateway, testKey } from '../support/gateway.js';
import { connect, create } from '../support/responses-socket.js';
import {
  chatEvent,
  chunk,
  doneEvent,
  lastChunk,
  type RawRequest,
  startRawUpstream,
  streamHead,
} from '../support/upstream.js';

const sockets = 10;
/** No message counts for longer than 100 ms of a turn, which is 500 ms long at most. */
const mostInTurn = 5;
const longMs = 110;

test('messages that wait on the sockets of a key are taken as those that come: so many in a turn', async (t) => {
  let turn = 0;
  const startedIn: number[] = [];
  const { begin } = ResponseHistory.prototype;
  const { turned } = SessionMemory.prototype;
  t.teardown(() => {
    ResponseHistory.prototype.begin = begin;
    SessionMemory.prototype.turned = turned;
  });
  ResponseHistory.prototype.begin = function (body, isKnown) {
    if (body.includes('heavy')) {
      startedIn.push(turn);
      for (const start = performance.now(); performance.now() - start < longMs; );
    }
    return begin.call(this, body, isKnown);
  };
  SessionMemory.prototype.turned = function (now) {
    turn++;
    turned.call(this, now);
  };
  const asked: RawRequest[] = [];
  const upstream = await startRawUpstream(t, (request) => asked.push(request));
  const gateway = await startGateway(t, { upstreams: [upstream.url], protocols: ['responses'] });
  for (let opened = 0; opened < sockets; opened++) {
    const { socket, send, answer } = await connect(t, gateway.url, { authorization: `Bearer ${testKey}` });
    send(create({ model: 'm', input: 'light' }));
    send(create({ model: 'm', input: 'heavy' }));
    // Refused at once, behind the one that waits.
    socket.send(Buffer.from('x'));
    t.match(await answer(), [{ type: 'error' }]);
  }
  await eventually(() => asked.length === sockets);
  t.equal(startedIn.length, 0);
  const answer = chunk(chatEvent({ content: 'hi' }) + chatEvent({}, 'stop') + doneEvent);
  for (const { socket } of asked) socket.write(`${streamHead}${answer}${lastChunk}`);
  await eventually(() => startedIn.length === sockets);
  for (const of of new Set(startedIn)) {
    const together = startedIn.filter((one) => one === of).length;
    t.ok(together <= mostInTurn, `${together} in one turn`);
  }
});
