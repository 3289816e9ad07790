import { test } from 'tap';
import { upstreamError } from '../../../src/protocols/error-formats/upstream-error.js';

test('what the error of an upstream means', async (t) => {
  const cases: [unknown, string, string][] = [
    [{ message: 'x' }, 'upstream_error', 'x'],
    ['boom', 'upstream_error', 'boom'],
    [{ message: 'x', code: 429 }, 'rate_limit_exceeded', 'x'],
    [{ message: 'x', code: '429' }, 'rate_limit_exceeded', 'x'],
    [{ message: 'x', code: 'rate_limit_exceeded', type: 'tokens' }, 'rate_limit_exceeded', 'x'],
    [{ message: 'x', code: 1302, type: 'rate_limit_error' }, 'rate_limit_exceeded', 'x'],
    [{ message: 'x', code: 'too_many_requests' }, 'rate_limit_exceeded', 'x'],
    [{ message: 'x', code: 'RateLimitReached' }, 'rate_limit_exceeded', 'x'],
    [{ message: 'x', type: 'rate_limit_reached_error' }, 'rate_limit_exceeded', 'x'],
    [{ message: 'x', type: 'concurrency_limit' }, 'rate_limit_exceeded', 'x'],
    [{ message: 'x', code: 'Throttling.RateQuota' }, 'rate_limit_exceeded', 'x'],
    [{ message: 'x', code: 'limit_requests' }, 'rate_limit_exceeded', 'x'],
    [{ message: 'x', code: 'too_many_images' }, 'upstream_error', 'x'],
    [{ message: 'too_many_requests', param: 'rate_limit' }, 'upstream_error', 'too_many_requests'],
    [{ message: '' }, 'upstream_error', 'The upstream answered with an error.'],
    [{}, 'upstream_error', 'The upstream answered with an error.'],
  ];
  for (const [error, kind, message] of cases)
    t.match(upstreamError(error), { kind, message }, JSON.stringify(error));
});

test('an error that is not there is none', async (t) => {
  for (const error of [undefined, null, '', false, 0, []])
    t.equal(upstreamError(error), null, JSON.stringify(error) ?? 'undefined');
});
