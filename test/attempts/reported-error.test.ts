import { test } from 'tap';
import { failureError, parseErrorBody, retryAfterMsOf } from '../../src/attempts/reported-error.js';
import { endedEarly } from '../../src/conversation/stream-rules.js';
import type { UpstreamFailureReason } from '../../src/errors.js';
import { parseHead } from '../../src/upstream/answer.js';

test('when an upstream wants to be asked again is read from either header, the more exact one first', async (t) => {
  const told = (...lines: readonly string[]) => toldWith('', ...lines);
  const toldWith = (body: string, ...lines: readonly string[]) => {
    const bytes = Buffer.from(['HTTP/1.1 429 Too Many Requests', ...lines, '', ''].join('\r\n'));
    const head = parseHead(bytes, 0, bytes.length, false);
    if (head === null || typeof head === 'string') throw new Error('no head');
    return retryAfterMsOf(head, parseErrorBody(Buffer.from(body)));
  };
  t.equal(told(), null);
  t.equal(told('retry-after: 7'), 7000);
  t.equal(told('retry-after-ms: 1500'), 1500);
  t.equal(told('retry-after: 2', 'retry-after-ms: 1500'), 1500);
  t.equal(told('retry-after: 2', 'retry-after-ms:'), 2000);
  t.equal(told('retry-after: 2', 'retry-after-ms: soon'), 2000);
  t.equal(told('retry-after-ms: 12.5'), 12.5);
  const google = (retryDelay: unknown) =>
    JSON.stringify({
      error: {
        code: 429,
        details: [{ '@type': 'x' }, { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay }],
      },
    });
  t.equal(toldWith(google('35s')), 35_000);
  t.equal(toldWith(`[${google('1.5s')}]`), 1500);
  t.equal(toldWith(google('35s'), 'retry-after: 2'), 2000);
  for (const odd of ['s', '-1s', '35', 35, null, '1e3s', '']) t.equal(toldWith(google(odd)), null, `${odd}`);
  for (const broken of ['{"retryDelay"', '{"error":{"details":{"retryDelay":"35s"}}}', '[]"retryDelay"'])
    t.equal(toldWith(broken), null, broken);
  for (const odd of ['-5', '0', '0.0', '0x10', '1e3', '+5', '1234567890123', 'Infinity']) {
    t.equal(told(`retry-after-ms: ${odd}`), null, odd);
    t.equal(told(`retry-after-ms: ${odd}`, 'retry-after: 2'), 2000, odd);
  }
});

test('the words of an answer that ends early are those by which agents tell that they may ask again, and fit any answer', async (t) => {
  const messageOf = (reason: UpstreamFailureReason): string =>
    failureError({ reason, detail: '', bytesSent: true, headSeen: true, sentMs: 0 }).message;
  const lost = /connection.?lost/i;
  for (const reason of ['reset', 'truncated'] as const) t.match(messageOf(reason), lost, reason);
  t.match(endedEarly().message, lost);
  t.match(messageOf('idle_timeout'), /^Response timed out\b/);
});
