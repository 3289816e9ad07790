import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { test } from 'tap';
import { startGateway, testKey } from '../../support/gateway.js';
import { exchange, open } from '../../support/raw-client.js';
import {
  openClient,
  refusalOf,
  type SessionOptions,
  startRealtimeUpstream,
  upgradeRequest,
} from '../../support/realtime.js';

const keyProtocol = `openai-insecure-api-key.${testKey}`;

test('a request without the headers of an upgrade is answered 400 in JSON', async (t) => {
  const upstream = await startRealtimeUpstream(t);
  const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['realtime'] });
  const plain = `GET /v1/realtime?model=m HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\n`;
  for (const lines of ['', 'connection: upgrade\r\nupgrade: websocket\r\n', 'sec-websocket-key: short\r\n']) {
    const answer = await exchange(port, `${plain}${lines}\r\n`);
    t.equal(answer.status, 400, answer.body);
    t.match(JSON.parse(answer.body).error, { type: 'invalid_request_error', message: /sec-websocket-key/ });
  }
  t.equal(upstream.arrivals.length, 0);
});

test('a key is taken from the header or from the subprotocols, and 401 says where it belongs', async (t) => {
  const upstream = await startRealtimeUpstream(t);
  const { port, lines, line } = await startGateway(t, { upstreams: [upstream.url], protocols: ['realtime'] });
  const keyless: readonly SessionOptions[] = [
    { headers: {} },
    { headers: { authorization: 'Bearer wrong' } },
    { headers: {}, protocols: ['realtime'] },
    { headers: {}, protocols: ['realtime', 'openai-insecure-api-key.wrong'] },
  ];
  for (const options of keyless) {
    const { status, body } = await refusalOf(t, port, options);
    t.equal(status, 401, body);
    t.match(JSON.parse(body).error, { code: 'invalid_api_key' });
    t.notMatch(body, /wrong/);
  }
  const client = await openClient(t, port, {
    headers: {},
    protocols: ['realtime', keyProtocol, 'openai-beta.realtime-v1'],
  });
  t.equal(client.socket.protocol, 'realtime', 'the key is never echoed');
  const { request } = await upstream.arrival(0);
  t.match(request.headers, { authorization: 'Bearer upstream-key', 'openai-beta': 'realtime=v1' });
  t.notMatch(JSON.stringify(request.rawHeaders), new RegExp(testKey), 'nor sent to the upstream');
  client.socket.close();
  await line(({ status }) => status === 101);
  t.notMatch(JSON.stringify(lines), /insecure/, 'nor logged');
});

test('the model is the one named, or the default, and must be offered to the key', async (t) => {
  const upstream = await startRealtimeUpstream(t);
  const { port } = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['realtime'],
    alias: 'up stream/model',
  });
  const unknown = await refusalOf(t, port, { query: 'model=none' });
  t.equal(unknown.status, 404);
  t.match(JSON.parse(unknown.body).error, { code: 'model_not_found', param: 'model' });
  const missing = await refusalOf(t, port, { query: '' });
  t.equal(missing.status, 400);
  t.match(JSON.parse(missing.body).error, { param: 'model' });
  await openClient(t, port, { query: 'model=m&key=secret&intent=transcription' });
  t.equal(
    (await upstream.arrival(0)).request.url,
    '/v1/realtime?model=up%20stream%2Fmodel&intent=transcription',
    'a query goes along, but for a key',
  );
  const other = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['realtime'],
    config: { defaultModels: { realtime: 'm' } },
  });
  await openClient(t, other.port, { query: '' });
  t.equal((await upstream.arrival(1)).request.url, '/v1/realtime?model=m');
  await openClient(t, other.port, { query: 'call_id=c1' });
  t.equal((await upstream.arrival(2)).request.url, '/v1/realtime?call_id=c1', 'a call knows its model');
});

test("an upstream's refusal is the answer to the request", async (t) => {
  const error = JSON.stringify({ error: { message: 'slow down', type: 'rate_limit_error' } });
  const upstream = await startRealtimeUpstream(t, undefined, (request, socket) => {
    const status = /status=(\d+)/.exec(request.url ?? '')?.[1];
    socket.end(
      `HTTP/1.1 ${status} No\r\ncontent-type: application/json\r\nretry-after: 7\r\nset-cookie: a=b\r\n` +
        `content-length: ${error.length}\r\nconnection: close\r\n\r\n${error}`,
    );
    return true;
  });
  const { port, line } = await startGateway(t, { upstreams: [upstream.url], protocols: ['realtime'] });
  for (const status of [400, 404, 429, 500, 503]) {
    const answer = await refusalOf(t, port, { query: `model=m&status=${status}` });
    t.equal(answer.status, status);
    t.equal(answer.body, error);
    t.match(answer.headers, { 'retry-after': '7', 'content-type': 'application/json' });
    t.notOk(answer.headers['set-cookie']);
    t.match(await line((entry) => entry.status === status), { outcome: 'upstream_error' });
  }
  const ours = await refusalOf(t, port, { query: 'model=m&status=401' });
  t.equal(ours.status, 502, 'the key is the gateway’s');
  t.notMatch(ours.body, /slow down/);
  const odd = await refusalOf(t, port, { query: 'model=m&status=200' });
  t.equal(odd.status, 502);
  t.match(JSON.parse(odd.body).error, { code: 'upstream_error' });
});

test('an upstream that cannot be reached is 502, one that is silent 504, and the next target is asked', async (t) => {
  const nobody = 'http://127.0.0.1:1/v1';
  const silent = await startRealtimeUpstream(t, undefined, () => true);
  const upstream = await startRealtimeUpstream(t);
  const refused = await startGateway(t, { upstreams: [nobody], protocols: ['realtime'] });
  t.equal((await refusalOf(t, refused.port)).status, 502);
  const config = { timeouts: { firstByteMs: 1500 } };
  const late = await startGateway(t, {
    upstreams: [silent.url],
    protocols: ['realtime'],
    config: { ...config },
  });
  t.equal((await refusalOf(t, late.port)).status, 504);
  const third = await startGateway(t, {
    upstreams: [nobody, silent.url, upstream.url],
    protocols: ['realtime'],
    config: { ...config },
  });
  const client = await openClient(t, third.port);
  client.socket.close();
  t.match(await third.line(({ status }) => status === 101), { retries: 2, target: 'u2/m' });
});

test('a key may have so many sessions open, and no more', async (t) => {
  const upstream = await startRealtimeUpstream(t);
  const { port } = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['realtime'],
    config: { sockets: { perKey: 2 } },
  });
  const first = await openClient(t, port);
  await openClient(t, port);
  const askedAt = performance.now();
  const refused = await refusalOf(t, port);
  const took = performance.now() - askedAt;
  t.equal(refused.status, 429);
  const [, parsing] = /parse;dur=([\d.]+)/.exec(String(refused.headers['server-timing'])) ?? [];
  t.ok(Number(parsing) <= took, `parsing took ${parsing} of ${took} ms: there is no body that it waited for`);
  t.match(JSON.parse(refused.body).error, { code: 'rate_limit_exceeded' });
  t.ok(refused.headers['retry-after']);
  first.socket.close();
  await first.closed;
  await (await upstream.arrival(0)).closed;
  await openClient(t, port);
});

test('a client that leaves while the upstream is asked cancels that, and holds no place', async (t) => {
  let isFirst = true;
  let tell: (socket: Duplex) => void = () => {};
  const asked = new Promise<Duplex>((resolve) => {
    tell = resolve;
  });
  const upstream = await startRealtimeUpstream(t, undefined, (_request, socket) => {
    if (!isFirst) return false;
    isFirst = false;
    socket.resume();
    tell(socket);
    return true;
  });
  const { port, line } = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['realtime'],
    config: { sockets: { perKey: 1 } },
  });
  const client = await open(port, upgradeRequest());
  const socket = await asked;
  t.equal((await refusalOf(t, port)).status, 429, 'what is being opened counts');
  client.destroy();
  await once(socket, 'end');
  t.match(await line(({ outcome }) => outcome === 'client_gone'), { key: 'test', model: 'm' });
  await openClient(t, port);
});

test('the upgrade has the headers that the rules of its target leave, set and add', async (t) => {
  const upstream = await startRealtimeUpstream(t);
  const rules = {
    headers: { set: { 'x-title': 'ours' }, drop: ['baggage'], pass: ['x-app'] },
    betas: { add: ['b=1'] },
  };
  const { port } = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['realtime'],
    target: { rules },
    upstream: { headers: { 'user-agent': 'gateway' } },
  });
  const authorization = `Bearer ${testKey}`;
  const client = await openClient(t, port, {
    headers: { authorization, 'user-agent': 'theirs', baggage: 'a=b', 'x-app': 'cli', 'x-other': 'y' },
  });
  const { request } = await upstream.arrival(0);
  const told = { 'user-agent': 'gateway', 'x-title': 'ours', 'x-app': 'cli', 'openai-beta': 'b=1' };
  t.match(request.headers, told);
  t.equal(request.headers.baggage, undefined);
  t.equal(request.headers['x-other'], undefined);
  t.equal(request.rawHeaders.filter((name) => name.toLowerCase() === 'user-agent').length, 1);
  client.socket.close();
});
