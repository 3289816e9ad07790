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

test('a page may read what is left of its key’s limits, in the words of each family', async (t) => {
  const upstream = await startRawUpstream(t, jsonAnswer(200, completion));
  const { url } = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['messages'],
    config: {
      listen: { host: '127.0.0.1', port: 0, cors: { origins: [origin] } },
      groups: { default: { models: ['*'], limits: { requestsPerMinute: 100, tokensPerMinute: 100_000 } } },
      vendors: { vendorc: ['maker'] },
    },
  });
  const answer = await fetch(`${url}/v1/messages`, {
    method: 'POST',
    headers: {
      origin,
      'x-api-key': testKey,
      'maker-version': '2023-06-01',
      'content-type': 'application/json',
    },
    body: '{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}',
  });
  t.equal(answer.status, 200);
  const exposed = answer.headers.get('access-control-expose-headers')?.split(', ') ?? [];
  const told = [...answer.headers.keys()].filter((name) => name.includes('-ratelimit-'));
  t.equal(told.length, 6);
  for (const name of told) t.ok(exposed.includes(name), name);
  for (const name of ['x-ratelimit-limit-requests', 'x-ratelimit-reset-tokens'])
    t.ok(exposed.includes(name), name);
});

test('all origins, and header names that could end the line', (t) => {
  t.equal(createCors(null), null);
  const cors = createCors({ origins: ['*'], maxAgeSeconds: 5, exposed: [] });
  t.match(cors?.answerLines('https://any.example'), '\r\naccess-control-allow-origin: *\r\n');
  t.notMatch(cors?.preflightLines('x\r\nset-cookie: y'), 'set-cookie');
  t.match(
    cors?.preflightLines('authorization, x-api-key'),
    'access-control-allow-headers: authorization, x-api-key',
  );
  t.end();
});
