import { test } from 'tap';
import { createCors } from '../../src/http/cors.js';
import { startGateway, testKey } from '../support/gateway.js';
import { completion, jsonAnswer, startRawUpstream } from '../support/upstream.js';

const origin = 'https://app.example.com';

test('a page of an origin that may call gets its preflight and its answer, errors too', async (t) => {
  const upstream = await startRawUpstream(t, jsonAnswer(200, completion));
  const config = { listen: { host: '127.0.0.1', port: 0, cors: { origins: [origin], maxAgeSeconds: 60 } } };
  const { url } = await startGateway(t, { upstreams: [upstream.url], config });
  const path = `${url}/v1/chat/completions`;
  const preflight = await fetch(path, {
    method: 'OPTIONS',
    headers: {
      origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization,content-type,x-stainless-lang',
    },
  });
  t.equal(preflight.status, 204);
  const said = Object.fromEntries(preflight.headers);
  t.match(said, {
    'access-control-allow-origin': origin,
    'access-control-allow-headers': 'authorization,content-type,x-stainless-lang',
    'access-control-max-age': '60',
  });
  t.match(said['access-control-allow-methods'], 'POST');
  const post = (headers: Record<string, string>) =>
    fetch(path, {
      method: 'POST',
      headers: { origin, 'content-type': 'application/json', ...headers },
      body: '{"model":"m","messages":[{"role":"user","content":"hi"}]}',
    });
  const answered = await post({ authorization: `Bearer ${testKey}` });
  t.equal(answered.status, 200);
  t.equal(answered.headers.get('access-control-allow-origin'), origin);
  t.match(answered.headers.get('access-control-expose-headers'), 'x-request-id');
  const refused = await post({});
  t.equal(refused.status, 401);
  t.equal(refused.headers.get('access-control-allow-origin'), origin);
  const stranger = await post({ origin: 'https://evil.example', authorization: `Bearer ${testKey}` });
  t.equal(stranger.headers.get('access-control-allow-origin'), null);
  t.equal(stranger.headers.get('vary'), 'origin');
});

test('without the setting, OPTIONS is a method like others', async (t) => {
  const { url } = await startGateway(t, { upstreams: ['http://127.0.0.1:1/v1'] });
  const asked = await fetch(`${url}/v1/chat/completions`, {
    method: 'OPTIONS',
    headers: { origin, 'access-control-request-method': 'POST' },
  });
  t.equal(asked.status, 405);
  t.equal(asked.headers.get('access-control-allow-origin'), null);
});

test('all origins, and header names that could end the line', (t) => {
  t.equal(createCors(null), null);
  const cors = createCors({ origins: ['*'], maxAgeSeconds: 5 });
  t.match(cors?.answerLines('https://any.example'), '\r\naccess-control-allow-origin: *\r\n');
  t.notMatch(cors?.preflightLines('x\r\nset-cookie: y'), 'set-cookie');
  t.match(
    cors?.preflightLines('authorization, x-api-key'),
    'access-control-allow-headers: authorization, x-api-key',
  );
  t.end();
});
