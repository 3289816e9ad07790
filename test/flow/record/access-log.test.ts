import { pino } from 'pino';
import { test } from 'tap';
import { createAccessLog } from '../../../src/flow/record/access-log.js';
import { type CallRecord, none } from '../../../src/metrics/call-record.js';
import { callRecord } from '../../support/call-record.js';
import { startGateway, testKey } from '../../support/gateway.js';
import { lineSink } from '../../support/line-sink.js';
import { completion, jsonAnswer, startRawUpstream } from '../../support/upstream.js';

const body = '{"model":"m","messages":[{"role":"user","content":"hi"}]}';

function ask(url: string, forwardedFor: string): Promise<Response> {
  const headers = {
    authorization: `Bearer ${testKey}`,
    'content-type': 'application/json',
    'x-forwarded-for': forwardedFor,
    'x-forwarded-proto': 'https',
    'x-forwarded-host': 'api.example.com',
  };
  return fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body });
}

for (const { name, listen, client } of [
  {
    name: 'a line has no address of the client unless the config asks for it',
    listen: {},
    client: undefined,
  },
  {
    name: 'without trusted proxies a line has the address of the connection',
    listen: { trustedProxies: [] },
    client: '127.0.0.1',
  },
  {
    name: 'behind a trusted proxy a line has the address that the proxy names',
    listen: { trustedProxies: ['127.0.0.0/8', '10.0.0.0/8'] },
    client: '198.51.100.1',
  },
]) {
  test(`${name}, and upstreams never hear of it`, async (t) => {
    let sent = '';
    const upstream = await startRawUpstream(t, ({ socket, head }) => {
      sent = head;
      socket.write(jsonAnswer(200, completion));
    });
    const gateway = await startGateway(t, {
      upstreams: [upstream.url],
      config: { listen: { host: '127.0.0.1', port: 0, ...listen } },
    });
    t.equal((await ask(gateway.url, '6.6.6.6, 198.51.100.1, 10.0.0.7')).status, 200);
    const line = await gateway.line(({ msg }) => msg === 'request');
    t.equal(line.client, client);
    t.match(sent, /^POST /);
    t.notMatch(sent.toLowerCase(), /forwarded|198\.51\.100\.1/);
  });
}

/** The line of a call. */
function lineOf(call: CallRecord, at = 0): string {
  const lines: string[] = [];
  const log = createAccessLog(
    lineSink((line) => lines.push(line)),
    pino({}, { write() {} }),
    () => {},
  );
  log.add(call, at);
  return lines.join('');
}

test('a line has its members in their order, and those that there are', async (t) => {
  const at = Date.UTC(2026, 0, 2, 3, 4, 5, 67);
  const begin = { level: 'info', time: '2026-01-02T03:04:05.067Z', role: 'worker', pid: process.pid };
  const least = callRecord({ keyId: null, protocol: null, model: null, target: null, firstByteMs: none });
  t.equal(
    lineOf(least, at),
    `${JSON.stringify({
      ...begin,
      id: 'req_1',
      method: 'POST',
      path: '/v1/chat/completions',
      status: 200,
      outcome: 'complete',
      bytesIn: 100,
      bytesOut: 1000,
      durationMs: 250,
      retries: 0,
      msg: 'request',
    }).replace('"durationMs":250', '"durationMs":250.000')}\n`,
  );
  const most = {
    ...least,
    client: '::1',
    keyId: 'team-a',
    protocol: 'chat',
    model: 'm',
    target: 'up/m-1',
    error: 'upstream_error',
    cause: 'ECONNRESET',
    usage: {
      input: 5,
      output: 4,
      cached: 3,
      cacheWritten: 2,
      reasoning: 1,
      estimated: true,
      partial: true,
    } as const,
    givenUp: { input: 7, output: 6 },
    firstByteMs: 1.0625,
    durationMs: 1234.5678,
    retries: 2,
  };
  const line = JSON.parse(lineOf(most, at + 933)) as object;
  t.strictSame(Object.entries(line), [
    ...Object.entries({ ...begin, time: '2026-01-02T03:04:06.000Z' }),
    ['id', 'req_1'],
    ['client', '::1'],
    ['method', 'POST'],
    ['path', '/v1/chat/completions'],
    ['key', 'team-a'],
    ['protocol', 'chat'],
    ['model', 'm'],
    ['target', 'up/m-1'],
    ['status', 200],
    ['outcome', 'complete'],
    ['error', 'upstream_error'],
    ['cause', 'ECONNRESET'],
    ['bytesIn', 100],
    ['bytesOut', 1000],
    ['inputTokens', 5],
    ['outputTokens', 4],
    ['cachedTokens', 3],
    ['reasoningTokens', 1],
    ['tokensEstimated', true],
    ['tokensPartial', true],
    ['givenUpInputTokens', 7],
    ['givenUpOutputTokens', 6],
    ['firstByteMs', 1.063],
    ['durationMs', 1234.568],
    ['retries', 2],
    ['msg', 'request'],
  ]);
});

test('nothing that others have chosen breaks a line, or is obeyed by a terminal', async (t) => {
  const evil = 'a"}\n{"b\\\u0000\u001b[31m\u007f\u009b\u202e\u2028\u00e9\u4e2d\ud800\r';
  const call = callRecord({ method: evil, path: evil, cause: evil, model: evil, client: evil, keyId: evil });
  const line = lineOf(call);
  t.match(line, /^[ -~]+\n$/);
  const { method, path, cause, model, client, key } = JSON.parse(line) as Record<string, string>;
  t.strictSame([method, path, cause, model, client, key], Array(6).fill(evil));
});

test('lines that were dropped are told in the log and counted', async (t) => {
  const told: unknown[] = [];
  const log = pino({ base: null }, { write: (line: string) => told.push(JSON.parse(line)) });
  const dropped = [3, 0];
  let counted = 0;
  const sink = { ...lineSink(() => {}), takeDropped: () => dropped.shift() ?? 0 };
  const accessLog = createAccessLog(sink, log, (lines) => {
    counted += lines;
  });
  await accessLog.close();
  t.equal(counted, 3);
  t.match(told, [{ level: 40, dropped: 3, msg: 'access log lines dropped' }]);
});

test('a line has no more of a path than may be of use, and no key in it', async (t) => {
  const pathOf = (path: string, method = 'GET') =>
    JSON.parse(lineOf(callRecord({ path, method }))) as { readonly path: string; readonly method: string };
  t.equal(pathOf('/v1/chat/completions').path, '/v1/chat/completions');
  const long = lineOf(callRecord({ path: `/${'\u00ff'.repeat(20_000)}`, method: 'M'.repeat(5000) }));
  t.ok(long.length < 4096);
  for (const path of [
    '/v1beta/models/m:x%3Fkey=sk-secret',
    '/m%3fa=b&KEY=sk-secret',
    '/m%3Fkey%3Dsk-secret%26a',
  ])
    t.match(pathOf(path).path, /(?:key|KEY)=…|key=…/);
  for (const path of ['/a%3Fkey=sk-secret&b=1', '/a%3Fkey%3dsk-secret'])
    t.notMatch(pathOf(path).path, /secret/);
  t.match(pathOf('/a%3Fkey=sk-secret&b=1').path, /key=…&b=1$/);
});
