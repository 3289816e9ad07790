import { pino } from 'pino';
import { type Test, test } from 'tap';
import { type Changed, type KeyDesk, keyRoutes } from '../../src/admin/keys.js';
import { startAdmin } from '../../src/admin/listener.js';
import type { ResolvedKey } from '../../src/config/resolve.js';
import { KeyBook } from '../../src/keys/key-book.js';
import { type FakeCall, fakeData, fakeStore, lost } from '../keys/fake-store.js';

const token = 'a-token-of-operators';
const tokens = { token, readToken: null, metricsToken: null };

const configured = (id: string): ResolvedKey => ({
  id,
  hash: 'c'.repeat(64),
  groups: ['default'],
  expiresAt: Date.parse('2100-01-01T00:00:00Z'),
  limits: null,
  budget: { usd: 5, per: 'day' },
  mayRoute: true,
});

/** The endpoints on a store of their own, and what asks them. */
async function start(
  t: Test,
  configIds: readonly string[] = ['fixed'],
  before: (call: FakeCall) => void = () => {},
) {
  const data = fakeData();
  const store = fakeStore({ data, before });
  const ids = [...configIds];
  const book = new KeyBook(store, { taken: (id) => ids.includes(id), ownedMs: () => 0 });
  const changed = async <Outcome>(work: Promise<Outcome>): Promise<Changed<Outcome>> => ({
    outcome: await work,
    inForce: true,
  });
  const desk: KeyDesk = {
    groups: () => new Set(['default', 'trial']),
    configKeys: () => ids.map(configured),
    configured: async (asked) =>
      new Map(ids.filter((id) => asked.includes(id)).map((id) => [id, configured(id)])),
    list: (cursor, limit) => book.list(cursor, limit),
    get: (id) => book.get(id),
    create: (input) => changed(book.create(input)),
    update: (id, changes, revision) => changed(book.update(id, changes, revision)),
    rotate: (id, graceMs, revision) => changed(book.rotate(id, graceMs, revision)),
    revoke: (id) => changed(book.revoke(id)),
  };
  const log = pino({ level: 'silent' });
  const listener = await startAdmin({ host: '127.0.0.1', port: 0 }, () => tokens, keyRoutes(desk), log);
  t.teardown(() => listener.close());
  const ask = async (method: string, path: string, body?: unknown) => {
    const answer = await fetch(`http://127.0.0.1:${listener.port}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, text, body: JSON.parse(text) as Record<string, unknown> };
  };
  return { ask, store, ids, url: `http://127.0.0.1:${listener.port}` };
}

test('a key is made and shown once; afterwards only what is said of it', async (t) => {
  const { ask, url } = await start(t);
  t.equal((await fetch(`${url}/keys`)).status, 401);
  const made = await ask('POST', '/keys', {
    id: 'team',
    label: 'The team',
    groups: ['default'],
    limits: { requestsPerMinute: 60 },
    budget: { usd: 10, per: 'month' },
    expiresAt: '2100-01-01T00:00:00+01:00',
  });
  t.equal(made.status, 201);
  const { key, createdAt, ...shown } = made.body;
  t.match(key, /^sk-[\w-]{43}$/);
  t.match(createdAt, /^\d{4}-\d\d-\d\dT/);
  const view = {
    id: 'team',
    source: 'managed',
    readOnly: false,
    label: 'The team',
    groups: ['default'],
    limits: { requestsPerMinute: 60, tokensPerMinute: null, concurrent: null },
    budget: { usd: 10, per: 'month' },
    mayRoute: false,
    expiresAt: '2099-12-31T23:00:00.000Z',
    revokedAt: null,
    formerKeys: 0,
    overridden: false,
  };
  t.strictSame(shown, { ...view, inForce: true });
  const one = await ask('GET', '/keys/team');
  const { revision } = one.body;
  t.type(revision, 'number');
  t.strictSame(one.body, { ...view, createdAt, revision });
  const all = await ask('GET', '/keys');
  t.strictSame((all.body.keys as unknown[])[1], { ...view, createdAt, revision });
  for (const { text } of [one, all]) {
    t.notOk(text.includes(String(key)));
    t.notMatch(text, /hash|[0-9a-f]{64}/);
  }
  t.equal((await ask('POST', '/keys', { id: 'team', groups: ['default'] })).status, 409);
});

test('a key is changed, rotated and revoked', async (t) => {
  const { ask } = await start(t);
  await ask('POST', '/keys', { id: 'team', groups: ['default'] });
  const { revision } = (await ask('GET', '/keys/team')).body;
  const changed = await ask('PATCH', '/keys/team', { groups: ['trial'], mayRoute: true, revision });
  t.equal(changed.status, 200);
  t.match(changed.body, { groups: ['trial'], mayRoute: true, inForce: true, revision: Number(revision) + 1 });
  const late = await ask('PATCH', '/keys/team', { label: 'x', revision });
  t.equal(late.status, 409);
  t.match(late.body, { error: { code: 'conflict' } });
  t.equal((await ask('POST', '/keys/team/rotate', { revision })).status, 409);
  const rotated = await ask('POST', '/keys/team/rotate', { graceMs: 60_000 });
  t.equal(rotated.status, 200);
  t.match(rotated.body, { key: /^sk-/, formerKeys: 1, inForce: true });
  t.match((await ask('GET', '/keys/team')).body, { formerKeys: 1 });
  t.match((await ask('POST', '/keys/team/rotate')).body, { formerKeys: 0 });
  const revoked = await ask('DELETE', '/keys/team');
  t.equal(revoked.status, 200);
  t.match(revoked.body, { id: 'team', revokedAt: /^\d{4}-/, inForce: true });
  t.equal((await ask('DELETE', '/keys/team')).status, 200);
  t.equal((await ask('POST', '/keys/team/rotate')).status, 409);
  t.match((await ask('GET', '/keys')).body, { keys: [{}, { id: 'team', revokedAt: /^\d{4}-/ }] });
});

test('keys of the config file are shown, and changed only there', async (t) => {
  const { ask } = await start(t);
  const view = {
    id: 'fixed',
    source: 'config',
    readOnly: true,
    label: '',
    groups: ['default'],
    limits: null,
    budget: { usd: 5, per: 'day' },
    mayRoute: true,
    expiresAt: '2100-01-01T00:00:00.000Z',
  };
  t.strictSame((await ask('GET', '/keys')).body, { keys: [view], damaged: [], next: null });
  t.strictSame((await ask('GET', '/keys/fixed')).body, view);
  for (const [method, path, body] of [
    ['DELETE', '/keys/fixed'],
    ['PATCH', '/keys/fixed', { label: 'x' }],
    ['POST', '/keys/fixed/rotate'],
  ] as const) {
    const refused = await ask(method, path, body);
    t.equal(refused.status, 409, `${method} ${path}`);
    t.match(refused.body, { error: { code: 'conflict', message: /config file.*reload/ } });
  }
  t.match(await ask('POST', '/keys', { id: 'fixed', groups: ['default'] }), {
    status: 409,
    body: { error: { param: 'id' } },
  });
});

test('what is wrong is said with its field', async (t) => {
  const { ask } = await start(t);
  await ask('POST', '/keys', { id: 'team', groups: ['default'] });
  const cases: readonly (readonly [string, string, unknown, string | null, RegExp])[] = [
    ['POST', '/keys', {}, 'groups', /^groups: is missing\.$/],
    ['POST', '/keys', { groups: ['default', 'none'] }, 'groups[1]', /there is no group "none"/],
    ['POST', '/keys', { groups: ['default'], limits: { concurrent: 0 } }, 'limits.concurrent', /above 0/],
    ['POST', '/keys', { groups: [], nonsense: 1 }, 'nonsense', /not known here; groups: must be a list/],
    ['POST', '/keys', { groups: ['default'], expiresAt: '2001-01-01T00:00:00Z' }, 'expiresAt', /future/],
    ['PATCH', '/keys/team', { id: 'other' }, 'id', /not known here/],
    ['PATCH', '/keys/team', { groups: ['none'] }, 'groups[0]', /there is no group/],
    ['PATCH', '/keys/team', { label: 'x', revision: 'one' }, 'revision', /number/],
    ['PATCH', '/keys/team', {}, null, /nothing to change/],
    ['POST', '/keys/team/rotate', { graceMs: -1 }, 'graceMs', /milliseconds/],
    ['POST', '/keys/team/rotate', { grace: 1 }, 'grace', /not known here/],
    ['GET', '/keys?limit=0', undefined, 'limit', /1 to 1000/],
    ['GET', '/keys?limit=many', undefined, 'limit', /1 to 1000/],
    ['GET', '/keys?cursor=x', undefined, 'cursor', /"next" of the page before/],
    ['GET', `/keys?cursor=${longCursor}`, undefined, 'cursor', /"next" of the page before/],
  ];
  for (const [method, path, body, param, message] of cases) {
    const refused = await ask(method, path, body);
    t.equal(refused.status, 400, `${method} ${path} ${JSON.stringify(body)}`);
    t.match(refused.body, { error: { param, message } });
  }
  for (const [method, path] of [
    ['GET', '/keys/nobody'],
    ['PATCH', '/keys/nobody'],
    ['DELETE', '/keys/nobody'],
    ['POST', '/keys/nobody/rotate'],
  ] as const) {
    t.equal((await ask(method, path, method === 'PATCH' ? { label: 'x' } : undefined)).status, 404);
  }
  t.equal((await ask('PUT', '/keys/team')).status, 405);
});

/** Longer than the keys of any store. */
const longCursor = Buffer.from(JSON.stringify({ source: 'managed', cursor: 'x'.repeat(2000) })).toString(
  'base64url',
);

test('pages of any size go through all keys once', async (t) => {
  const fixed = ['one', 'two', 'three'];
  const { ask } = await start(t, fixed);
  const wanted = [...fixed];
  for (let i = 0; i < 8; i++) {
    const { id } = (await ask('POST', '/keys', { groups: ['default'] })).body;
    wanted.push(String(id));
  }
  for (const limit of [1, 2, 3, 4, 7, 11, 100]) {
    const seen: string[] = [];
    let next: unknown = null;
    do {
      const cursor: string = next === null ? '' : `&cursor=${String(next)}`;
      const { body } = await ask('GET', `/keys?limit=${limit}${cursor}`);
      const ids = (body.keys as { id: string }[]).map(({ id }) => id);
      t.ok(ids.length <= limit);
      seen.push(...ids);
      next = body.next;
    } while (next !== null);
    t.strictSame(seen.slice(0, 3), fixed, `pages of ${limit}`);
    t.strictSame([...seen].sort(), [...wanted].sort(), `pages of ${limit}`);
  }
});

test('a managed key whose id the config has got is marked, and left alone', async (t) => {
  const { ask, ids } = await start(t, []);
  await ask('POST', '/keys', { id: 'team', groups: ['default'] });
  ids.push('team');
  t.match((await ask('GET', '/keys')).body, {
    keys: [{ source: 'config' }, { id: 'team', source: 'managed', overridden: true }],
  });
  t.equal((await ask('DELETE', '/keys/team')).status, 409);
});

test('a damaged record is listed, and revoking it removes it', async (t) => {
  const { ask, store } = await start(t);
  await store.create('managed-keys', 'broken', '{', 60_000);
  t.match((await ask('GET', '/keys')).body, { damaged: ['broken'] });
  t.equal((await ask('GET', '/keys/broken')).status, 404);
  t.strictSame((await ask('DELETE', '/keys/broken')).body, { id: 'broken', removed: true, inForce: true });
  t.match((await ask('GET', '/keys')).body, { damaged: [] });
});

test('a store that cannot be reached is said', async (t) => {
  const { ask } = await start(t, [], ({ name }) => {
    if (name === 'list' || name === 'get') throw lost();
  });
  for (const answer of [await ask('GET', '/keys'), await ask('DELETE', '/keys/a')]) {
    t.equal(answer.status, 503);
    t.match(answer.body, { error: { code: 'store_unavailable' } });
  }
});
