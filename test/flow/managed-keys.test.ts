import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { type Test, test } from 'tap';
import { createManagedKeySet } from '../../src/keys/key-set.js';
import { hashKey } from '../../src/keys/secret.js';
import { atOnce } from '../../src/wire/steps.js';
import { managedKey } from '../keys/samples.js';
import { eventually } from '../support/eventually.js';
import { startGateway } from '../support/gateway.js';
import { openClient, startRealtimeUpstream } from '../support/realtime.js';
import { connect } from '../support/responses-socket.js';
import { startHttpUpstream } from '../support/upstream.js';

const secret = 'sk-managed';
const headers = { authorization: `Bearer ${secret}` };
const managed = managedKey({ id: 'team', hash: hashKey(secret).slice('sha256:'.length) });

/** Managed keys of which there is one. */
function oneKey() {
  const set = createManagedKeySet();
  set.apply({ whole: true, put: [managed], removed: [], more: false });
  return set;
}

/** An upstream whose answers the test writes. It ends with the test. */
async function startUpstream(t: Test) {
  const answers: ServerResponse[] = [];
  const { origin } = await startHttpUpstream(t, (request, response) => {
    request.resume();
    answers.push(response);
  });
  return { url: `${origin}/v1`, next: () => eventually(() => answers.shift()) };
}

test('a managed key lets in until it is revoked, whatever becomes of the config', async (t) => {
  const managedKeys = createManagedKeySet();
  const upstreams = ['http://127.0.0.1:9/v1'];
  const { url, gateway, snapshot } = await startGateway(t, { upstreams, managedKeys });
  const ask = (key: string) => fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  const early = await ask(secret);
  t.equal(early.status, 503);
  t.equal(early.headers.get('retry-after'), '1');
  t.match(await early.json(), { error: { code: 'store_unavailable' } });
  t.equal((await ask('sk-test')).status, 200);
  managedKeys.apply({ whole: true, put: [managed], removed: [], more: false });
  t.equal((await ask(secret)).status, 200);
  t.equal((await ask('sk-unknown')).status, 401);
  atOnce(gateway.swapSteps(snapshot));
  t.equal((await ask(secret)).status, 200);
  atOnce(gateway.swapSteps({ ...snapshot, groups: [] }));
  t.strictSame(await (await ask(secret)).json(), { object: 'list', data: [] });
  atOnce(gateway.swapSteps(snapshot));
  managedKeys.apply({ whole: false, put: [], removed: ['team'], more: false });
  t.equal((await ask(secret)).status, 401);
});

test('a call that began before its key was revoked comes to its end', async (t) => {
  const upstream = await startUpstream(t);
  const managedKeys = oneKey();
  const { url, gateway } = await startGateway(t, { upstreams: [upstream.url], managedKeys });
  const called = fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }),
  });
  const answer = await upstream.next();
  managedKeys.apply({ whole: false, put: [], removed: ['team'], more: false });
  gateway.onKeysChanged();
  answer.setHeader('content-type', 'application/json').end('{"choices":[]}');
  t.equal((await called).status, 200);
});

test('a realtime session whose key is revoked ends on both sides; one of another key goes on', async (t) => {
  const upstream = await startRealtimeUpstream(t, ({ socket }) =>
    socket.on('message', (data) => socket.send(data)),
  );
  const managedKeys = oneKey();
  const { port, gateway } = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['realtime'],
    managedKeys,
  });
  const [client, other] = [await openClient(t, port, { headers }), await openClient(t, port)];
  managedKeys.apply({
    whole: false,
    put: [{ ...managed, groups: ['default', 'more'] }],
    removed: [],
    more: false,
  });
  gateway.onKeysChanged();
  client.socket.send('a');
  await client.until(1);
  managedKeys.apply({ whole: false, put: [], removed: ['team'], more: false });
  gateway.onKeysChanged();
  t.match(await client.closed, { code: 1008, reason: /revoked/ });
  t.match(JSON.parse(String(client.received[1])), { type: 'error', error: { code: 'invalid_api_key' } });
  t.equal((await (await upstream.arrival(0)).closed).code, 1001);
  other.socket.send('b');
  await other.until(1);
  await t.rejects(openClient(t, port, { headers }), { message: /^401 / });
});

test('a session whose key is revoked while it is opened ends at once', async (t) => {
  const managedKeys = oneKey();
  const upstream = await startRealtimeUpstream(t, undefined, () => {
    managedKeys.apply({ whole: false, put: [], removed: ['team'], more: false });
    gateway.onKeysChanged();
    return false;
  });
  const { port, gateway } = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['realtime'],
    managedKeys,
  });
  const client = await openClient(t, port, { headers });
  t.equal((await client.closed).code, 1008);
});

test('a socket of responses ends at once when its key is revoked, with the call that is under way', async (t) => {
  const upstream = await startUpstream(t);
  const managedKeys = oneKey();
  const { url, gateway } = await startGateway(t, {
    upstreams: [upstream.url],
    managedKeys,
    config: {
      models: { m: { protocols: ['responses'], targets: [{ upstream: 'u0', responses: true }] } },
    },
  });
  const [busy, idle] = [await connect(t, url, headers), await connect(t, url, headers)];
  busy.send({ type: 'response.create', model: 'm', input: 'hi' });
  const answer = await upstream.next();
  answer.setHeader('content-type', 'text/event-stream');
  const event = (type: string, number: number) =>
    answer.write(
      `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number, response: { id: 'resp_1', output: [] } })}\n\n`,
    );
  event('response.created', 0);
  const gone = once(answer, 'close');
  const closed = [busy, idle].map(({ socket }) => once(socket, 'close'));
  managedKeys.apply({ whole: false, put: [], removed: ['team'], more: false });
  gateway.onKeysChanged();
  for (const each of closed) t.equal((await each)[0], 1008);
  t.match((await busy.answer()).at(-1), { type: 'error', status: 401, error: { code: 'invalid_api_key' } });
  await gone;
});
