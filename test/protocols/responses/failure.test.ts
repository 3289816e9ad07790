import { test } from 'tap';
import { failureOf } from '../../../src/protocols/responses/failure.js';

test('a fault of the request is the caller’s, whatever status it came under', async (t) => {
  for (const code of ['invalid_prompt', 'context_length_exceeded', 'invalid_image_url', 'image_too_large']) {
    const error = failureOf({ type: 'response.failed', response: { error: { code, message: 'bad' } } });
    t.match(error, { kind: 'invalid_request', status: 400, code, message: 'bad', source: 'upstream' });
  }
  const typed = failureOf({ error: { type: 'invalid_request_error', message: 'bad', code: null } });
  t.match(typed, { kind: 'invalid_request', status: 400, code: null });
});

test('any other failure is the upstream’s', async (t) => {
  t.match(failureOf({ error: { code: 'server_error', message: 'x' } }), { status: 502 });
  t.match(failureOf({ error: { type: 'rate_limit_error' } }), { status: 429, source: 'upstream' });
  t.match(failureOf({ error: { code: { toString: 1 }, type: [], message: 5 } }), { status: 502 });
  t.match(failureOf({ error: 'text alone' }), { status: 502, message: 'text alone' });
});
