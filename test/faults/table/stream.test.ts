import { test } from 'tap';
import { startGateway } from '../../support/gateway.js';
import {
  chatEvent,
  chunk,
  doneEvent,
  jsonAnswer,
  lastChunk,
  startRawUpstream,
  streamHead,
} from '../../support/upstream.js';
import { ask, checkGood, streamedCalls } from './call-kinds.js';
import { broken, brokenBefore, type Fault, foreign, late, lateBefore, playFaults, shortMs } from './fault.js';
import { figuresOf } from './figures.js';
import { adding, answering, answerWell, ending, resetting } from './hostile.js';

const first = chatEvent({ role: 'assistant', content: 'hi' });
const errorEvent = 'data: {"error":{"message":"from the upstream","code":"own","type":"server_error"}}\n\n';
const limitEvent = 'data: {"error":{"message":"slow down","code":429}}\n\n';
const stream = (...events: readonly string[]): string => streamHead + chunk(events.join(''));

/** Faults of a stream before its first event: the client may still get a status, or another target's stream. */
const before: readonly Fault[] = [
  {
    name: 'a stream that is empty',
    upstream: answering(streamHead + lastChunk),
    asked: streamedCalls,
    ...brokenBefore,
    counted: 'malformed',
    seen: 1,
  },
  {
    name: 'a stream that ends before its first event',
    upstream: answering(stream(': welcome\n\n') + lastChunk),
    asked: streamedCalls,
    ...brokenBefore,
    counted: 'malformed',
    seen: 1,
  },
  {
    name: 'a stream that breaks off before its first event',
    upstream: ending(stream(': welcome\n\n')),
    asked: streamedCalls,
    ...brokenBefore,
    counted: 'truncated',
    seen: 1,
  },
  {
    name: 'a stream that hangs before its first event',
    upstream: answering(stream(': welcome\n\n')),
    asked: streamedCalls,
    timeouts: { idleMs: shortMs },
    ...lateBefore,
    counted: 'timeout',
    seen: 1,
  },
  {
    name: 'a first event that is no JSON',
    upstream: answering(stream('data: {"choices":[{\n\n') + lastChunk),
    asked: streamedCalls,
    ...brokenBefore,
    told: foreign,
    counted: 'malformed',
    seen: 1,
  },
  {
    name: 'a stream of another protocol',
    upstream: answering(stream('event: message_start\ndata: {"type":"message_start"}\n\n') + lastChunk),
    asked: streamedCalls,
    ...brokenBefore,
    told: foreign,
    counted: 'malformed',
    seen: 1,
  },
  {
    name: 'bytes that are no events',
    upstream: answering(stream('<html>It works</html>\n\n') + lastChunk),
    asked: streamedCalls,
    ...brokenBefore,
    counted: 'malformed',
    seen: 1,
  },
  {
    name: 'an error in place of the first event',
    upstream: answering(stream(errorEvent) + lastChunk),
    asked: streamedCalls,
    ...brokenBefore,
    counted: 'malformed',
    seen: 1,
  },
  {
    name: 'neither a stream nor JSON in place of a stream',
    upstream: answering(jsonAnswer(200, 'a word')),
    asked: streamedCalls,
    ...brokenBefore,
    told: foreign,
    counted: 'malformed',
    seen: 1,
  },
];

/** Nothing is retried once the client has a part of its stream. */
const brokenWithin = {
  asked: streamedCalls,
  told: broken,
  when: 'within',
  failsOver: false,
  breaker: 'opens',
} as const;

/** Faults of a stream after the client has received a part of it. */
const within: readonly Fault[] = [
  {
    name: 'a stream that is reset',
    upstream: resetting(stream(first)),
    ...brokenWithin,
    counted: 'reset',
    seen: 1,
  },
  {
    name: 'a stream that breaks off',
    upstream: ending(stream(first)),
    ...brokenWithin,
    counted: 'truncated',
    seen: 1,
  },
  {
    name: 'a stream that breaks off within an event',
    upstream: ending(stream(first, 'data: {"id":')),
    ...brokenWithin,
    counted: 'truncated',
    seen: 1,
  },
  {
    name: 'a stream that ends well on the wire, and not in its protocol',
    upstream: answering(stream(first) + lastChunk),
    ...brokenWithin,
    counted: 'malformed',
    seen: 1,
  },
  {
    name: 'a stream whose chunks become garbage',
    upstream: adding(stream(first), 'garbage\r\n'),
    ...brokenWithin,
    counted: 'malformed',
    seen: 1,
  },
  {
    name: 'a stream that hangs',
    upstream: answering(stream(first)),
    timeouts: { idleMs: shortMs },
    ...brokenWithin,
    told: late,
    counted: 'timeout',
    seen: 1,
  },
  {
    name: 'an event that is no JSON where the call is translated',
    upstream: answering(stream(first, 'data: {"choices":[{\n\n', doneEvent) + lastChunk),
    ...brokenWithin,
    asked: ['messages streamed', 'messages streamed'],
    told: foreign,
    counted: 'malformed',
    seen: 1,
  },
  {
    name: 'an error event',
    upstream: answering(stream(first, errorEvent) + lastChunk),
    ...brokenWithin,
    told: { status: 200, code: 'own', type: 'api_error' },
    counted: 'malformed',
    seen: 1,
  },
];

playFaults([...before, ...within]);

test('a limit in place of the first event is no illness, however often it comes', async (t) => {
  const limited = await startRawUpstream(t, stream(limitEvent) + lastChunk);
  const other = await startRawUpstream(t, answerWell);
  const gateway = await startGateway(t, {
    upstreams: [limited.url, other.url],
    config: { routing: { failures: 1 } },
  });
  for (let i = 0; i < 5; i++) checkGood(t, 'chat streamed', await ask(gateway.port, 'chat streamed'));
  const figures = figuresOf(gateway);
  const attempts = figures.sum('gateway_upstream_attempts_total', { target: 'u0/m', result: 'status_429' });
  t.equal(attempts, limited.requests.length);
  t.equal(figures.sum('gateway_retries_total', { target: 'u1/m' }), attempts);
  t.ok(['cooling', 'closed'].includes(figures.stateOf('u0/m') ?? ''));
});
