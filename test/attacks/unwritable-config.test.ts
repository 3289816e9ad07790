import { pino } from 'pino';
import { test } from 'tap';
import { parseConfig } from '../../src/config/load.js';
import { ConfigError } from '../../src/config/problem.js';
import { Gateway } from '../../src/gateway.js';
import { hasNoDotSegments } from '../../src/wire/head.js';
import { bytesOf, entryPoints, entryPointsConfig } from '../support/entry-points.js';
import { testConfig } from '../support/gateway.js';
import { halves, hostile } from '../support/head-fuzz.js';
import { ownLimits } from '../support/leases.js';
import { lineSink } from '../support/line-sink.js';
import { noManagedKeys } from '../support/managed-keys.js';
import { exchange } from '../support/raw-client.js';
import { buildSnapshot } from '../support/snapshot.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { jsonAnswer, startRawUpstream } from '../support/upstream.js';

const source = { directory: '.', environment: {}, created: 1 };

/** What is said of a config, by path. */
function problemsOf(config: object): readonly string[] {
  try {
    parseConfig(JSON.stringify(config), source);
    return [];
  } catch (fault) {
    if (fault instanceof ConfigError) return fault.problems.map(({ path }) => path);
    throw fault;
  }
}

const bad = [...hostile, ...halves.filter((_, at) => at % 97 === 0), 'é', '\u0085'];

/** A config with a text at one of the places that end in a head, and the path of that place. */
const places: readonly (readonly [string, (text: string) => object])[] = [
  ['upstreams.u0.headers.x-a', (text) => upstreamWith({ headers: { 'x-a': `a${text}b` } })],
  ['upstreams.u0.apiKeys[0]', (text) => upstreamWith({ apiKeys: [`a${text}b`] })],
  [
    'listen.cors.origins[0]',
    (text) =>
      testConfig({
        upstreams: ['http://a.test'],
        config: { listen: { cors: { origins: [`https://a${text}b`] } } },
      }),
  ],
];

function upstreamWith(upstream: Record<string, unknown>): object {
  return testConfig({ upstreams: ['http://a.test'], upstream });
}

test('a config whose values cannot be written into a head is refused with their path', async (t) => {
  for (const [path, configWith] of places) {
    t.strictSame(problemsOf(configWith('')), []);
    const taken = bad.filter((text) => problemsOf(configWith(text)).join() !== path);
    t.strictSame(taken, [], path);
  }
  for (const name of ['x\u010a', 'x\n', 'x é', 'x:', ''])
    t.equal(problemsOf(upstreamWith({ headers: { [name]: 'a' } })).length, 1, JSON.stringify(name));
});

test('whatever a base URL holds, its origin and path are printable', async (t) => {
  for (const text of [...bad, '/../..', '/%2e%2e/x', '\\..\\x', ' ', '"', '%']) {
    for (const baseUrl of [`http://a.test/v1${text}`, `http://a${text}b.test/v1`]) {
      let config: ReturnType<typeof parseConfig>;
      try {
        config = parseConfig(JSON.stringify(testConfig({ upstreams: [baseUrl] })), source);
      } catch (fault) {
        if (fault instanceof ConfigError) continue;
        throw fault;
      }
      const { origin, basePath } = buildSnapshot(config, { simulatorUrl: null }).upstreams.get('u0') ?? {};
      if (!/^[!-~]+$/.test(`${origin?.authority}${basePath}`) || !hasNoDotSegments(basePath ?? ''))
        t.fail(`${JSON.stringify(baseUrl)}: ${origin?.authority}${basePath}`);
    }
  }
  t.pass('every base URL');
});

test('a model’s name at an upstream that has it in its path leads to no other path', async (t) => {
  const named = (model: string, kind: string) =>
    testConfig({
      upstreams: ['http://a.test'],
      upstream: { kind },
      config: {
        models: { m: { protocols: ['chat'], targets: [{ upstream: 'u0', model }] } },
      },
    });
  for (const name of [
    '..',
    '.',
    '../a',
    'a/../b',
    'a//b',
    '/a',
    'a/',
    'a\\..\\b',
    'models/..',
    'a\ud800',
    'a\n',
  ]) {
    t.strictSame(
      problemsOf(named(name, 'generateContent')),
      ['models.m.targets[0].model'],
      JSON.stringify(name),
    );
  }
  for (const name of ['models/a', 'a?b#c', 'a%2e%2eb', 'ä', '..a', 'a\u010ab'])
    t.strictSame(problemsOf(named(name, 'generateContent')), [], JSON.stringify(name));
  t.strictSame(problemsOf(named('org//a', 'chat')), [], 'where it stands in a body alone');
  t.strictSame(problemsOf(named('a\ud800', 'chat')), ['models.m.targets[0].model']);
});

test('should a value get past every check, the call is refused in its protocol, and nothing is written', async (t) => {
  const upstream = await startRawUpstream(t, ({ socket }) =>
    socket.write(jsonAnswer(422, '{"error":{"message":"no"}}')),
  );
  const file = { ...testConfig({ upstreams: [] }), ...entryPointsConfig(upstream.url) };
  const folder = temporaryFolder(t);
  const config = parseConfig(JSON.stringify({ ...file, store: { kind: 'embedded', path: folder } }), source);
  const snapshot = buildSnapshot(config, { simulatorUrl: null });
  const own: [string, string] = ['x-own', 'own'];
  // Past the checks of the config: all of its upstreams have the one pair.
  for (const { headers } of snapshot.upstreams.values()) (headers as [string, string][])[0] = own;
  const { join } = ownLimits(t, config);
  const gateway = join(
    (sendLease) =>
      new Gateway({
        snapshot,
        log: pino({ level: 'silent' }),
        lines: lineSink(() => {}),
        sendLease,
        managedKeys: noManagedKeys(),
      }),
  );
  t.teardown(() => gateway.close());
  const port = await gateway.listen('127.0.0.1', 0);
  for (const value of ['a\u010d\u010ax-injected: 1', 'a\r\nx-injected: 1']) {
    own[1] = value;
    for (const { name, request } of entryPoints) {
      const answer = await exchange(port, bytesOf(request));
      t.equal(answer.status, 500, name);
      t.match(answer.body, /internal|INTERNAL|api_error|500/, name);
    }
  }
  t.equal(upstream.requests.length, 0);
  t.equal(upstream.sockets.size, 0, 'no connection was made for them');
  own[1] = 'mended';
  const { request } = entryPoints.find(({ name }) => name === 'realtime') as (typeof entryPoints)[number];
  for (let count = 0; count < 3; count++) t.equal((await exchange(port, bytesOf(request))).status, 422);
  const answer = await exchange(
    port,
    bytesOf(
      (entryPoints.find(({ name }) => name === 'chat -> messages') as (typeof entryPoints)[number]).request,
    ),
  );
  t.equal(answer.status, 422, 'and the target is well');
});
