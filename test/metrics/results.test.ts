import { test } from 'tap';
import { resultOfFailure, resultOfStatus } from '../../src/metrics/results.js';

test('every failure has a result', async (t) => {
  t.equal(resultOfFailure('connect_failed'), 'refused');
  t.equal(resultOfFailure('idle_timeout'), 'timeout');
  t.equal(resultOfFailure('malformed_answer'), 'malformed');
  t.equal(resultOfFailure('unusable_answer'), 'malformed');
  t.equal(resultOfFailure('truncated'), 'truncated');
});

test('an answer is judged by its status', async (t) => {
  t.equal(resultOfStatus(200), 'ok');
  t.equal(resultOfStatus(307), 'ok');
  t.equal(resultOfStatus(400), 'status_4xx');
  t.equal(resultOfStatus(429), 'status_429');
  t.equal(resultOfStatus(500), 'status_5xx');
  t.equal(resultOfStatus(599), 'status_5xx');
});
