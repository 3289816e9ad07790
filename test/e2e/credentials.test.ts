import { test } from 'tap';
import { startGateway } from '../support/gateway.js';

const key = 'sk-demo';
const version = { 'anthropic-version': '2023-06-01' };

/** The places where a key may be: headers, or the query. */
const places = {
  bearer: { headers: { authorization: `Bearer ${key}` }, query: '' },
  'x-api-key': { headers: { 'x-api-key': key }, query: '' },
  'api-key': { headers: { 'api-key': key }, query: '' },
  'x-goog-api-key': { headers: { 'x-goog-api-key': key }, query: '' },
  'x-vendorg-api-key': { headers: { 'x-vendorg-api-key': key }, query: '' },
  'key query': { headers: {}, query: `?key=${key}` },
  nothing: { headers: {}, query: '' },
} as const;
type Place = keyof typeof places;

const messages = [{ role: 'user', content: 'a' }];
const contents = [{ role: 'user', parts: [{ text: 'a' }] }];
const openai: readonly Place[] = ['bearer', 'api-key'];
const anthropic: readonly Place[] = ['bearer', 'x-api-key', 'api-key'];
const google: readonly Place[] = ['bearer', 'api-key', 'x-goog-api-key', 'x-vendorg-api-key', 'key query'];

/** Every endpoint that calls a model, a body for it, and the places of a key that it accepts. */
const endpoints: readonly (readonly [string, object, readonly Place[]])[] = [
  ['/v1/chat/completions', { model: 'sim-text', messages }, openai],
  ['/v1/responses', { model: 'sim-text', input: 'a' }, openai],
  ['/v1/responses/compact', { model: 'sim-text', input: 'a' }, openai],
  ['/v1/responses/input_tokens', { model: 'sim-text', input: 'a' }, openai],
  ['/v1/completions', { model: 'sim-text', prompt: 'a' }, openai],
  ['/v1/embeddings', { model: 'sim-embedding', input: 'a' }, openai],
  ['/v1/engines/sim-embedding/embeddings', { input: 'a' }, openai],
  ['/v1/rerank', { model: 'sim-rerank', query: 'a', documents: ['a'] }, openai],
  ['/v1/moderations', { input: 'a' }, openai],
  ['/v1/messages', { model: 'sim-text', max_tokens: 9, messages }, anthropic],
  ['/v1/messages/count_tokens', { model: 'sim-text', messages }, anthropic],
  ['/v1beta/models/sim-text:generateContent', { contents }, google],
  ['/v1beta/models/sim-text:streamGenerateContent', { contents }, google],
  ['/v1beta/models/sim-text:countTokens', { contents }, google],
  ['/v1/models/sim-text:generateContent', { contents }, google],
  ['/v1/models/sim-text:streamGenerateContent', { contents }, google],
  ['/v1/models/sim-text:countTokens', { contents }, google],
];

const errorForms: readonly (readonly [RegExp, object])[] = [
  [/^\/v1\/messages/, { type: 'error', error: { type: 'authentication_error' }, request_id: /^req_/ }],
  [/models\//, { error: { code: 401, status: 'UNAUTHENTICATED' } }],
  [/./, { error: { type: 'invalid_request_error', code: 'invalid_api_key' } }],
];

test('each endpoint accepts the key in its own places, and refuses it in its own form elsewhere', async (t) => {
  const { url, simulator } = await startGateway(t, { demo: 'simulator' });
  for (const [path, body, accepted] of endpoints) {
    for (const [place, { headers, query }] of Object.entries(places)) {
      const before = simulator.state().totalRequests;
      const response = await fetch(`${url}${path}${query}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...version, ...headers },
        body: JSON.stringify(body),
      });
      const answer: unknown = await response.json();
      if (accepted.includes(place as Place)) {
        t.equal(response.status, 200, `${path} takes ${place}`);
      } else {
        t.equal(response.status, 401, `${path} refuses ${place}`);
        t.match(answer, errorForms.find(([pattern]) => pattern.test(path))?.[1], path);
        t.equal(simulator.state().totalRequests, before);
      }
    }
  }
});

test('the messages endpoints want a version that is a date', async (t) => {
  const { url, simulator } = await startGateway(t, { demo: 'simulator' });
  const bodies = [
    ['/v1/messages', { model: 'sim-text', max_tokens: 9, messages }],
    ['/v1/messages/count_tokens', { model: 'sim-text', messages }],
  ] as const;
  for (const [path, body] of bodies) {
    const ask = (headers: Record<string, string>) =>
      fetch(`${url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-api-key': key, ...headers },
        body: JSON.stringify(body),
      });
    const accepted = [version, { 'anthropic-version': '2026-10-21' }, { 'vendorc-version': '2023-06-01' }];
    for (const headers of accepted) {
      t.equal((await ask(headers as Record<string, string>)).status, 200);
    }
    const before = simulator.state().totalRequests;
    for (const headers of [{}, { 'anthropic-version': 'latest' }]) {
      const response = await ask(headers as Record<string, string>);
      t.equal(response.status, 400);
      t.match(await response.json(), {
        type: 'error',
        error: { type: 'invalid_request_error', message: /version/ },
        request_id: response.headers.get('request-id'),
      });
    }
    t.equal(simulator.state().totalRequests, before);
  }
});

test('of two keys the one in the place of the protocol counts', async (t) => {
  const { url } = await startGateway(t, { demo: 'simulator' });
  const ask = async (path: string, body: object, headers: Record<string, string>) => {
    const response = await fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...version, ...headers },
      body: JSON.stringify(body),
    });
    await response.arrayBuffer();
    return response.status;
  };
  const bad = { authorization: 'Bearer sk-unknown' };
  const good = { authorization: `Bearer ${key}` };
  const message = { model: 'sim-text', max_tokens: 9, messages };
  t.equal(await ask('/v1/messages', message, { ...bad, 'x-api-key': key }), 200);
  t.equal(await ask('/v1/messages', message, { ...good, 'x-api-key': 'sk-unknown' }), 401);
  const path = '/v1beta/models/sim-text:generateContent';
  t.equal(await ask(path, { contents }, { ...bad, 'x-goog-api-key': key }), 200);
  t.equal(await ask(path, { contents }, { ...good, 'x-goog-api-key': 'sk-unknown' }), 401);
  const chat = { model: 'sim-text', messages };
  t.equal(await ask('/v1/chat/completions', chat, { ...good, 'x-api-key': 'sk-unknown' }), 200);
  t.equal(await ask('/v1/chat/completions', chat, { ...good, 'api-key': 'sk-unknown' }), 200);
  t.equal(await ask('/v1/chat/completions', chat, { ...bad, 'api-key': key }), 401);
});

test('no key of a client reaches an upstream', async (t) => {
  const { url, simulator } = await startGateway(t, { demo: 'simulator' });
  for (const [path, body, accepted] of endpoints) {
    for (const place of accepted) {
      const { headers, query } = places[place];
      const response = await fetch(`${url}${path}${query}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...version, 'api-key': key, ...headers },
        body: JSON.stringify(body),
      });
      await response.arrayBuffer();
      const sent = simulator.lastRequest();
      t.notOk(`${sent?.target} ${sent?.rawHeaders.join(' ')}`.includes(key), `${path} with ${place}`);
    }
  }
});
