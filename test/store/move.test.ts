import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { createClient, createCluster } from 'redis';
import { type Test, test } from 'tap';
import type { StoreSettings } from '../../src/config/types.js';
import { createStore } from '../../src/store/create.js';
import { copyEmbedded } from '../../src/store/embedded-dump.js';
import { exportStore, importStore } from '../../src/store/move.js';
import type { RedisPlace } from '../../src/store/redis-dump.js';
import type { WholeStore } from '../../src/store/store.js';
import { allLines, allSums, ledgerBatch } from '../suites/ledger.js';
import { sumTable } from '../suites/ledger-sums.js';
import { postgresSettings } from '../suites/store.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { postgresFor, skipWithoutPostgres, standbyFor } from '../support/postgres.js';
import { noRedis, startRedis, startRedisCluster } from '../support/redis.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const dayMs = 24 * 60 * 60 * 1000;
const plenty = { owner: 10_000_000, all: 10_000_000 };
const oddIds = ['', 'a:b', 'ä€😀', ' \n\0\u0001', 'l'.repeat(5000), '\u0001sha256:x', '__proto__'];

const embeddedIn = (path: string) =>
  ({ kind: 'embedded', path, taskDays: 7 }) as const satisfies StoreSettings;

async function fill(store: WholeStore): Promise<void> {
  const numbers = Array.from({ length: 1200 }, (_, index) => `${index}`);
  await Promise.all(numbers.map((id) => store.create('many', id, `v${id}`, dayMs)));
  await Promise.all(oddIds.map((id, index) => store.create('odd', id, `${index} \0 ${id}`, dayMs + index)));
  await store.create('budgets', 'k', '{"version":1,"reserved":5}', dayMs);
  await store.create('odd', 'gone', '', 1);
  for (const owner of ['team', 'other'])
    await store.owned.keep(
      owner,
      oddIds.map((id) => ({ id, value: `${owner} \0 ${id}` })),
      dayMs,
      plenty,
    );
  const now = Date.now();
  const lines = Array.from({ length: 900 }, (_, index) => ({
    at: now - Math.floor(index / 3) * 60_000,
    value: `line ${index} \0`,
  }));
  const sums = sumTable(
    dayMs,
    oddIds
      .filter((id) => id.length < 100)
      .map((id, index) => ({ id, add: { calls: index + 1, ['__proto__']: 2 } })),
  );
  await store.append(
    'usage',
    ledgerBatch({ number: 1, lines: lines.slice(0, 500), lineTtlMs: 40 * dayMs, sums }),
  );
  await store.append(
    'usage',
    ledgerBatch({ number: 2, lines: lines.slice(500), lineTtlMs: 40 * dayMs, sums }),
  );
}

async function exported(source: StoreSettings | RedisPlace): Promise<string> {
  const output = new PassThrough();
  const read = text(output);
  await exportStore(source, output);
  output.end();
  return read;
}

/** What an export says, whatever its order but that of the lines of the ledger. */
function saying(dump: string): { readonly entries: string[]; readonly lines: string[] } {
  const all = dump.trimEnd().split('\n');
  const isLine = (each: string) => each.startsWith('{"type":"line"');
  return { entries: all.filter((each) => !isLine(each)).sort(), lines: all.filter(isLine) };
}

async function opened(t: Test, settings: StoreSettings): Promise<WholeStore> {
  const store = createStore(settings);
  t.teardown(() => store.close());
  return store;
}

/** Holds that a store has what `fill` has put into it. */
async function holds(t: Test, settings: StoreSettings): Promise<void> {
  const store = await opened(t, settings);
  for (const [index, id] of oddIds.entries())
    t.equal((await store.get('odd', id))?.value, `${index} \0 ${id}`);
  t.equal(await store.get('odd', 'gone'), null);
  const found = (await store.owned.find('team', oddIds, 1_000_000))?.values;
  t.strictSame(
    found,
    oddIds.map((id) => `team \0 ${id}`),
  );
  t.equal((await allLines(store, 'usage', { limit: 100 })).length, 900);
  t.strictSame((await allSums(store, 'usage')).get('a:b'), { calls: 4, ['__proto__']: 4 });
  // It goes on being a store: sums and bounds go on from what was moved.
  await store.append(
    'usage',
    ledgerBatch({ writer: 'new', sums: sumTable(dayMs, [{ id: 'a:b', add: { calls: 1 } }]) }),
  );
  t.match((await allSums(store, 'usage')).get('a:b'), { calls: 5 });
  const large = { id: 'large', value: 'x'.repeat(5000) };
  t.ok(await store.owned.keep('team', [large], 2 * dayMs, { owner: 6000, all: 10_000_000 }));
  t.strictSame((await store.owned.find('team', ['', 'large'], 1_000_000))?.values, [null, large.value]);
  t.strictSame((await store.owned.find('other', ['a:b'], 1_000_000))?.values, ['other \0 a:b']);
}

const skip = skipWithoutPostgres();

test('what an embedded store holds comes back from PostgreSQL as it was', { skip }, async (t) => {
  const server = await postgresFor(t);
  const folder = temporaryFolder(t);
  const [first, last] = [embeddedIn(join(folder, 'first')), embeddedIn(join(folder, 'last'))];
  const store = await opened(t, first);
  await fill(store);
  const dump = await exported(first);
  const postgres = postgresSettings(server.port);
  t.equal(await importStore(postgres, Readable.from([dump])), dump.trimEnd().split('\n').length - 2);
  const between = await exported(postgres);
  t.strictSame(saying(between), saying(dump));
  await importStore(last, Readable.from([between]));
  t.strictSame(saying(await exported(last)), saying(dump));
  await holds(t, postgres);
  await holds(t, last);
});

test('what PostgreSQL holds comes back from another schema as it was', { skip }, async (t) => {
  const server = await postgresFor(t);
  const [first, last] = ['first', 'last'].map((schema) => ({ ...postgresSettings(server.port), schema }));
  if (first === undefined || last === undefined) throw new Error('there are two');
  await fill(await opened(t, first));
  const dump = await exported(first);
  await importStore(last, Readable.from([dump]));
  t.strictSame(saying(await exported(last)), saying(dump));
  await holds(t, last);
});

test('an export of PostgreSQL changes nothing, be it of another release or of a standby', {
  skip,
}, async (t) => {
  const server = await postgresFor(t);
  const settings = postgresSettings(server.port);
  await t.rejects(exported(settings), /there is no store in this database/);
  t.equal(server.query("SELECT count(*) FROM pg_namespace WHERE nspname = 'gateway'"), '0');
  const store = await opened(t, settings);
  await store.create('plain', 'a', '1', dayMs);
  const dump = await exported(settings);

  const standby = await standbyFor(t, server.port);
  t.equal(await exported(postgresSettings(standby.port)), dump);
  const last = server.query('DELETE FROM gateway.migrations WHERE number >= 5 RETURNING number');
  t.ok(last.startsWith('5'));
  await t.rejects(
    exported(settings),
    /of form 4, .* export with the release that made them, or start this one first/,
  );
  t.equal(server.query('SELECT max(number) FROM gateway.migrations'), '4');
  server.query('INSERT INTO gateway.migrations (number) VALUES (99)');
  await t.rejects(
    exported(settings),
    /of form 99, and this gateway knows \d+: a later release .* export the store with that release and import it with this one/,
  );
});

test('an export of what is no store says so, and makes none', async (t) => {
  const folder = temporaryFolder(t);
  for (const path of [folder, join(folder, 'none')]) {
    const output = new PassThrough();
    await t.rejects(exportStore(embeddedIn(path), output), new Error(`there is no store in ${path}`));
    t.equal(output.read(), null, 'nothing is written');
  }
  t.strictSame(readdirSync(folder), []);
  const port = await freePort();
  await t.rejects(
    exported(postgresSettings(port)),
    new RegExp(`cannot connect to PostgreSQL at 127.0.0.1:${port}: connect ECONNREFUSED`),
  );
});

test('an export of a store with a damaged page fails instead of leaving out what is behind it', async (t) => {
  const pageBytes = 4096;
  for (const [name, text] of [
    ['records', 'v600-marked'],
    ['ledgers', 'line 450 \0'],
  ] as const) {
    const settings = embeddedIn(temporaryFolder(t));
    const store = createStore(settings);
    await fill(store);
    await store.create('many', '600-marked', 'v600-marked', dayMs);
    await store.close();
    await exported(settings);
    const path = join(settings.path, name, 'data.mdb');
    const data = readFileSync(path);
    // A former version of the page may be there, too.
    for (let at = data.indexOf(text); at !== -1; at = data.indexOf(text, at))
      data.fill(0xa5, at - (at % pageBytes), at - (at % pageBytes) + pageBytes);
    writeFileSync(path, data);
    await t.rejects(exported(settings), /^a file of the store is damaged/, name);
  }
});

test('a store that holds something takes no import, and one that is damaged leaves nothing', {
  skip,
}, async (t) => {
  const server = await postgresFor(t);
  const folder = temporaryFolder(t);
  const full = embeddedIn(join(folder, 'full'));
  await fill(await opened(t, full));
  const dump = await exported(full);
  const postgres = postgresSettings(server.port);
  await t.rejects(importStore(full, Readable.from([dump])), /there is something in/);
  const lines = dump.split('\n');
  const damages: readonly (readonly [string, RegExp])[] = [
    ['', /cut off/],
    [dump.slice(0, dump.length / 2), /is no entry|cut off/],
    [lines.slice(0, -3).join('\n'), /cut off/],
    [lines.filter((_, index) => index !== 700).join('\n'), /entries are missing/],
    [`${dump}${lines[1]}\n`, /behind the end/],
    [dump.replace('"form":1', '"form":2'), /later version/],
    [dump.replace(/"expiresAt":\d+/, '"expiresAt":"soon"'), /line 2 is no entry/],
  ];
  for (const [damaged, problem] of damages) {
    for (const target of [postgres, embeddedIn(join(folder, 'target'))])
      await t.rejects(importStore(target, Readable.from([damaged])), problem);
  }
  const odd = [
    { type: 'sum', ledger: 'usage', id: 'a', values: [1], expiresAt: 1 },
    { type: 'line', ledger: 'usage', at: -1, value: '' },
    { type: 'line', ledger: 'a\u0000b', at: 1, value: '' },
    { type: 'record', collection: '', id: '', value: '', revision: 1, expiresAt: 1 },
    { type: 'owned', owner: 'a'.repeat(64), id: 'a', idHash: null, value: '', bytes: -9, expiresAt: 1 },
  ];
  for (const entry of odd) {
    const damaged = [lines[0], JSON.stringify(entry), '{"type":"end","entries":1}'].join('\n');
    for (const target of [postgres, embeddedIn(join(folder, 'target'))])
      await t.rejects(importStore(target, Readable.from([damaged])), /line 2 is no entry/);
  }
  t.strictSame(readdirSync(folder), ['full']);
  t.equal(server.query('SELECT count(*) FROM gateway.records'), '0');
  await importStore(postgres, Readable.from([dump]));
  await t.rejects(importStore(postgres, Readable.from([dump])), /there is something in/);
});

test('a copy of an embedded store that is written to all the while holds whole changes', async (t) => {
  const folder = temporaryFolder(t);
  const from = embeddedIn(join(folder, 'from'));
  const store = await opened(t, from);
  await fill(store);
  let isOver = false;
  let number = 2;
  const writing = (async () => {
    while (!isOver) {
      number += 1;
      const lines = [{ at: Date.now(), value: 'during' }];
      const sums = sumTable(dayMs, [{ id: 'during', add: { lines: 1 } }]);
      await store.append('usage', ledgerBatch({ number, lines, lineTtlMs: 40 * dayMs, sums }));
    }
  })();
  await copyEmbedded(join(folder, 'from'), join(folder, 'copy'));
  isOver = true;
  await writing;
  const copy = embeddedIn(join(folder, 'copy'));
  const copied = await opened(t, copy);
  const during = (await allLines(copied, 'usage', { limit: 500 })).filter(
    ({ value }) => value === 'during',
  ).length;
  t.equal((await allSums(copied, 'usage')).get('during')?.lines ?? 0, during);
  const isOld = (entry: string) => !entry.includes('during') && !entry.startsWith('{"type":"end"');
  t.strictSame(
    saying(await exported(copy)).entries.filter(isOld),
    saying(await exported(from)).entries.filter(isOld),
  );
  await t.rejects(copyEmbedded(join(folder, 'from'), join(folder, 'copy')), /copy already$/);
  mkdirSync(join(folder, 'left', 'import-1'), { recursive: true });
  await t.rejects(
    copyEmbedded(join(folder, 'from'), join(folder, 'left')),
    /already: import-1, which.* delete it$/,
  );
  await t.rejects(copyEmbedded(join(folder, 'none'), join(folder, 'new')), /there is no store/);
  writeFileSync(join(folder, 'copy', 'ledgers', 'data.mdb'), 'damaged');
  await t.rejects(copyEmbedded(join(folder, 'copy'), join(folder, 'part')));
  t.strictSame(
    readdirSync(folder).sort(),
    ['copy', 'from', 'left'],
    'a copy that cannot be whole leaves nothing',
  );
});

test('a backup goes into the folder that is meant, or says why there can be none', async (t) => {
  const folder = temporaryFolder(t);
  const from = join(folder, 'from');
  await fill(await opened(t, embeddedIn(from)));
  await copyEmbedded(from, `${join(folder, 'with', 'slash')}/`);
  t.ok(existsSync(join(folder, 'with', 'slash', 'records', 'data.mdb')));
  writeFileSync(join(folder, 'file'), '');
  await t.rejects(copyEmbedded(from, join(folder, 'file')), /file is no folder$/);
  await t.rejects(copyEmbedded(from, join(folder, 'file', 'below')), { code: 'ENOTDIR', syscall: 'mkdir' });
  // Node's own recursive mkdir never comes back from there.
  if (process.platform === 'linux')
    await t.rejects(copyEmbedded(from, '/proc/backup'), { code: 'ENOENT', syscall: 'mkdir' });
  t.strictSame(readdirSync(folder).sort(), ['file', 'from', 'with']);
  t.strictSame(readdirSync(join(folder, 'with')), ['slash']);
});

test('an empty folder that exists stays, since it may be a mount point', async (t) => {
  const folder = temporaryFolder(t);
  const from = embeddedIn(join(folder, 'from'));
  await fill(await opened(t, from));
  const dump = await exported(from);
  const places = ['imported', 'copied'].map((name) => join(folder, name));
  for (const place of places) mkdirSync(join(place, 'lost+found'), { recursive: true });
  const before = places.map((place) => statSync(place).ino);
  const [imported = '', copied = ''] = places;
  // What a process of the same id has left, as in a container.
  const left = join(imported, `import-${process.pid}`);
  mkdirSync(left);
  writeFileSync(join(left, 'left'), '');
  await importStore(embeddedIn(imported), Readable.from([dump]));
  await copyEmbedded(from.path, copied);
  t.strictSame(
    places.map((place) => statSync(place).ino),
    before,
  );
  for (const place of places) {
    t.strictSame(saying(await exported(embeddedIn(place))), saying(dump));
    const names = readdirSync(place).filter((name) => !name.startsWith('claims'));
    t.strictSame(names.sort(), ['ledgers', 'lost+found', 'owned', 'records']);
  }
  t.strictSame(readdirSync(folder).sort(), ['copied', 'from', 'imported']);
});

test('a store that a gateway begins during an import stays, and the import is refused', async (t) => {
  const folder = temporaryFolder(t);
  const from = embeddedIn(join(folder, 'from'));
  await fill(await opened(t, from));
  const dump = await exported(from);
  for (const isThere of [false, true]) {
    const to = embeddedIn(join(folder, `to-${isThere}`));
    if (isThere) mkdirSync(to.path);
    const input = new PassThrough();
    const importing = importStore(to, input);
    input.write(dump.slice(0, dump.length / 2));
    await eventually(() => readdirSync(isThere ? to.path : folder).some((name) => /import-/.test(name)));
    const gateway = await opened(t, to);
    await gateway.create('odd', 'of the gateway', '', dayMs);
    input.end(dump.slice(dump.length / 2));
    await t.rejects(importing, /there is something in/);
    t.match(await gateway.get('odd', 'of the gateway'), { value: '' });
    t.ok(existsSync(join(to.path, 'records', 'data.mdb')));
    t.notOk([...readdirSync(to.path), ...readdirSync(folder)].some((name) => /import-/.test(name)));
  }
});

/** Sends commands to a server, or to a cluster by the key that each names. */
async function redisClient(
  t: Test,
  urls: readonly string[],
): Promise<(...command: string[]) => Promise<unknown>> {
  const [url = ''] = urls;
  if (urls.length === 1) {
    const client = createClient({ url });
    await client.connect();
    t.teardown(() => client.destroy());
    return (...command) => client.sendCommand(command);
  }
  const cluster = createCluster({ rootNodes: urls.map((each) => ({ url: each })) });
  await cluster.connect();
  t.teardown(() => cluster.destroy());
  return (...command) => cluster.sendCommand(command[1], false, command);
}

const keepers = [
  ['Redis', async () => [await startRedis()]],
  ['a cluster of Redis', startRedisCluster],
] as const;

for (const [keeper, start] of keepers)
  test(`what earlier versions kept in ${keeper} is exported`, async (t) => {
    const servers = (await start()) ?? [null];
    const urls = servers.flatMap((server) => server?.url ?? []);
    if (urls.length === 0) return t.fail(noRedis);
    t.teardown(() => Promise.all(servers.map((server) => server?.stop())));
    const send = await redisClient(t, urls);
    const soon = Date.now() + dayMs;
    await send('SADD', 'gw:collections', 'tasks');
    await send('ZADD', 'gw:index:tasks', `${soon}`, 'a', `${soon}`, 'gone', `${soon}`, 'ü b');
    await send('SET', 'gw:record:tasks:a', '7:{"x":"1:2"}', 'PX', `${dayMs}`);
    await send('SET', 'gw:record:tasks:ü b', '8:\0', 'PX', `${dayMs}`);
    const tag = 'gw:ledger:{usage}';
    await send('SADD', 'gw:ledgers', 'usage');
    await send('SET', `${tag}:retention`, `${dayMs}`);
    const now = Date.now();
    const mark = '0123456789abcdef';
    await send('ZADD', `${tag}:lines`, `${now}`, `${mark}00000000one`, `${now}`, `${mark}00000001two`);
    await send('ZADD', `${tag}:lines`, `${now - 2 * dayMs}`, `${mark}00000002old`);
    await send('ZADD', `${tag}:sums`, '0', 's', '0', 'gone');
    await send('HSET', `${tag}:sum:s`, 'calls', '3', 'cost', '-4');
    await send('PEXPIRE', `${tag}:sum:s`, `${dayMs}`);
    const dump = await exported({ urls, prefix: 'gw' });
    const entries = dump
      .trimEnd()
      .split('\n')
      .map((line): Record<string, unknown> => JSON.parse(line));
    const isSoon = ({ expiresAt }: Record<string, unknown>) => Math.abs(Number(expiresAt) - soon) < 60_000;
    t.ok(entries.filter(({ type }) => type === 'record' || type === 'sum').every(isSoon));
    t.match(entries, [
      { type: 'model-gateway store' },
      { type: 'record', collection: 'tasks', id: 'a', value: '{"x":"1:2"}', revision: 7 },
      { type: 'record', collection: 'tasks', id: 'ü b', value: '\0', revision: 8 },
      { type: 'ledger', ledger: 'usage', lineTtlMs: dayMs },
      { type: 'line', at: now, value: 'one' },
      { type: 'line', at: now, value: 'two' },
      { type: 'sum', id: 's', values: { calls: 3, cost: -4 } },
      { type: 'end', entries: 6 },
    ]);
    t.equal(entries.length, 8);
    const folder = temporaryFolder(t);
    const target = embeddedIn(join(folder, 'target'));
    t.equal(await importStore(target, Readable.from([dump])), 6);
    const store = await opened(t, target);
    t.match(await store.get('tasks', 'a'), { value: '{"x":"1:2"}', revision: 7 });
    t.strictSame([...(await allSums(store, 'usage'))], [['s', { calls: 3, cost: -4 }]]);
  });
