import { test } from 'tap';
import { upstreamError } from '../../../src/protocols/responses/upstream-error.js';

test('a fault of the request is the caller’s, whatever status it came under', async (t) => {
  for (const code of ['invalid_prompt', 'context_length_exceeded', 'invalid_image_url', 'image_too_large']) {
    const error = upstreamError({ type: 'response.failed', response: { error: { code, message: 'bad' } } });
    t.match(error, { kind: 'invalid_request', status: 400, code, message: 'bad', source: 'upstream' });
  }
  const typed = upstreamError({ error: { type: 'invalid_request_error', message: 'bad', code: null } });
  t.match(typed, { kind: 'invalid_request', status: 400, code: null });
});

test('any other failure is the upstream’s', async (t) => {
  t.match(upstreamError({ error: { code: 'server_error', message: 'x' } }), { status: 502 });
  t.match(upstreamError({ error: { type: 'rate_limit_error' } }), { status: 429, source: 'upstream' });
  t.match(upstreamError({ error: { code: { toString: 1 }, type: [], message: 5 } }), { status: 502 });
  t.match(upstreamError({ error: 'text alone' }), { status: 502, message: 'text alone' });
});
