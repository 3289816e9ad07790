import { test } from 'tap';
import { chatRateLines, durationText, messagesRateLines, scarcer } from '../../src/limits/rate-headers.js';

const requests = { limit: 600, remaining: 599, resetMs: 59_900 };
const tokens = { limit: 1000, remaining: 0, resetMs: 360_000 };

test('the chat family reads limits as durations', (t) => {
  t.equal(
    chatRateLines({ requests, tokens }),
    '\r\nx-ratelimit-limit-requests: 600\r\nx-ratelimit-remaining-requests: 599\r\nx-ratelimit-reset-requests: 1m0s' +
      '\r\nx-ratelimit-limit-tokens: 1000\r\nx-ratelimit-remaining-tokens: 0\r\nx-ratelimit-reset-tokens: 6m0s',
  );
  t.equal(chatRateLines({ requests: null, tokens: null }), '');
  t.end();
});

test('the messages family reads limits as times', (t) => {
  t.equal(
    messagesRateLines({ requests, tokens: null }, Date.UTC(2026, 0, 2, 3, 4, 5, 1), 'anthropic'),
    '\r\nanthropic-ratelimit-requests-limit: 600\r\nanthropic-ratelimit-requests-remaining: 599' +
      '\r\nanthropic-ratelimit-requests-reset: 2026-01-02T03:05:05Z',
  );
  t.end();
});

test('a duration is written as the largest units that it fills', (t) => {
  const texts = [0, 0.2, 20, 999, 1000, 8640, 59_999, 60_000, 72_500, 3_600_000, 5_400_001].map(durationText);
  t.strictSame(texts, [
    ...['0s', '1ms', '20ms', '999ms', '1s', '8.64s', '1m0s', '1m0s', '1m13s'],
    ...['1h0m0s', '1h30m1s'],
  ]);
  t.end();
});

test('of several limits, the one is shown that is met first', (t) => {
  t.equal(scarcer(requests, tokens), tokens);
  t.equal(scarcer(tokens, requests), tokens);
  t.equal(scarcer(null, requests), requests);
  t.end();
});
