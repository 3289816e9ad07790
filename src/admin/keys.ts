import type { ResolvedKey } from '../config/resolve.js';
import { GatewayError } from '../errors.js';
import type { BookedKey, IssuedKey, KeyPage } from '../keys/key-book.js';
import {
  type Checked,
  checkGraceMs,
  checkKeyUpdate,
  checkNewKey,
  type KeyRules,
  type KeyUpdate,
  type NewKey,
} from '../keys/key-input.js';
import type { ManagedKey } from '../keys/managed-key.js';
import { parseObject } from '../wire/json.js';
import {
  type AdminAnswer,
  dateTime,
  decodeCursor,
  json,
  readLimit,
  readObject,
  wrong,
  wrongCursor,
} from './answer.js';
import { type AdminRequest, type AdminRoute, route } from './routes.js';

/** Outcome of a change. */
export interface Changed<Outcome> {
  readonly outcome: Outcome;
  /** Whether every worker of this gateway has it in force already. */
  readonly inForce: boolean;
}

/** The operators' access to keys. Promises reject as those of `KeyBook` do. */
export interface KeyDesk {
  /** Names of the groups that a key may have. */
  groups(): ReadonlySet<string>;
  /** Keys of the config file, which are changed only there. */
  configKeys(): readonly ResolvedKey[];
  /** Keys of the config file with one of these ids. */
  configured(ids: readonly string[]): Promise<ReadonlyMap<string, ResolvedKey>>;
  list(cursor: string | null, limit: number): Promise<KeyPage>;
  get(id: string): Promise<BookedKey>;
  create(input: NewKey): Promise<Changed<IssuedKey>>;
  update(id: string, changes: KeyUpdate, revision: number | null): Promise<Changed<BookedKey>>;
  rotate(id: string, graceMs: number, revision: number | null): Promise<Changed<IssuedKey>>;
  revoke(id: string): Promise<Changed<BookedKey | null>>;
}

const path = '/keys';
const pathOfOne = '/keys/{id}';
const usualPage = 100;
const longestPage = 1000;

/** Routes for the management of keys. */
export function keyRoutes(desk: KeyDesk): readonly AdminRoute[] {
  return [
    route('GET', path, (request) => list(desk, request)),
    route('POST', path, (request) => create(desk, request)),
    route('GET', pathOfOne, (request) => show(desk, request)),
    route('PATCH', pathOfOne, (request) => update(desk, request)),
    route('DELETE', pathOfOne, (request) => revoke(desk, request)),
    route('POST', `${pathOfOne}/rotate`, (request) => rotate(desk, request)),
  ];
}

/** Lists keys. Those of the config file come first, in its order. */
async function list(desk: KeyDesk, { query }: AdminRequest): Promise<AdminAnswer> {
  const limit = readLimit(query, usualPage, longestPage);
  const position = readPosition(query.get('cursor'));
  const all = desk.configKeys();
  const configured = position.source === 'config' ? all.slice(position.at, position.at + limit) : [];
  const room = limit - configured.length;
  if (position.source === 'config' && room === 0) {
    const next = writePosition({ source: 'config', at: position.at + limit });
    return json({ keys: configured.map(configKeyView), damaged: [], next });
  }
  const page = await desk.list(position.source === 'managed' ? position.cursor : null, room);
  const taken = await desk.configured(page.keys.map(({ record }) => record.id));
  const managed = page.keys.map((key) => managedKeyView(key, taken.has(key.record.id)));
  return json({
    keys: [...configured.map(configKeyView), ...managed],
    damaged: page.damaged,
    next: page.next === null ? null : writePosition({ source: 'managed', cursor: page.next }),
  });
}

async function create(desk: KeyDesk, { request }: AdminRequest): Promise<AdminAnswer> {
  const input = valid(checkNewKey(await readObject(request), rulesOf(desk)));
  const { outcome, inForce } = await desk.create(input);
  return json({ key: outcome.key, ...managedKeyView(outcome, false), inForce }, 201);
}

async function show(desk: KeyDesk, { params }: AdminRequest): Promise<AdminAnswer> {
  const id = idOf(params);
  const configured = (await desk.configured([id])).get(id);
  if (configured !== undefined) return json(configKeyView(configured));
  return json(managedKeyView(await desk.get(id), false));
}

async function update(desk: KeyDesk, { request, params }: AdminRequest): Promise<AdminAnswer> {
  const id = await idOfManaged(desk, params);
  const { revision, ...settings } = await readObject(request);
  const changes = valid(checkKeyUpdate(settings, rulesOf(desk)));
  const expected = readRevision(revision);
  if (Object.keys(changes).length === 0) {
    throw new GatewayError('invalid_request', 'The body contains nothing to change.');
  }
  const { outcome, inForce } = await desk.update(id, changes, expected);
  return json({ ...managedKeyView(outcome, false), inForce });
}

async function rotate(desk: KeyDesk, { request, params }: AdminRequest): Promise<AdminAnswer> {
  const id = await idOfManaged(desk, params);
  const { graceMs, revision, ...rest } = await readObject(request);
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) throw wrong(unknown, 'is not known here');
  const { outcome, inForce } = await desk.rotate(id, valid(checkGraceMs(graceMs)), readRevision(revision));
  return json({ key: outcome.key, ...managedKeyView(outcome, false), inForce });
}

async function revoke(desk: KeyDesk, { params }: AdminRequest): Promise<AdminAnswer> {
  const id = await idOfManaged(desk, params);
  const { outcome, inForce } = await desk.revoke(id);
  return json({ ...(outcome === null ? { id, removed: true } : managedKeyView(outcome, false)), inForce });
}

function rulesOf(desk: KeyDesk): KeyRules {
  return { groups: desk.groups(), now: Date.now() };
}

function idOf(params: AdminRequest['params']): string {
  return params.id ?? '';
}

/** Rejects with a {@link GatewayError} `conflict` for a key of the config file. */
async function idOfManaged(desk: KeyDesk, params: AdminRequest['params']): Promise<string> {
  const id = idOf(params);
  if (!(await desk.configured([id])).has(id)) return id;
  throw new GatewayError(
    'conflict',
    'This key is in the config file: change or remove it there, then reload (SIGHUP or POST /reload).',
  );
}

function readRevision(value: unknown): number | null {
  if (value === undefined || value === null) return null;
  if (Number.isSafeInteger(value)) return value as number;
  throw wrong('revision', 'must be the number that the key was shown with');
}

/** @throws {GatewayError} with every problem. Its parameter is the field of the first one. */
function valid<Value>(checked: Checked<Value>): Value {
  if (checked.ok) return checked.value;
  const said = checked.problems.map(({ field, message }) =>
    field === '' ? message : `${field}: ${message}`,
  );
  throw new GatewayError('invalid_value', `${said.join('; ')}.`, {
    param: checked.problems[0]?.field || null,
  });
}

/** Start of a page in the list of keys: in the config file or, after all of its keys, in the store. */
type KeyPosition =
  | { readonly source: 'config'; readonly at: number }
  | { readonly source: 'managed'; readonly cursor: string | null };

/** Encodes a position as a text that needs no escapes in a URL. */
function writePosition(position: KeyPosition): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url');
}

/**
 * Reads the output of `writePosition`. Without a text, returns the start of the list.
 * @throws {GatewayError} `invalid_value` for any other text
 */
function readPosition(text: string | null): KeyPosition {
  if (text === null || text === '') return { source: 'config', at: 0 };
  const value = parseObject(decodeCursor(text));
  if (value !== null) {
    const { source, at, cursor } = value;
    if (source === 'config' && Number.isSafeInteger(at) && (at as number) >= 0)
      return { source, at: at as number };
    if (source === 'managed' && (cursor === null || typeof cursor === 'string')) return { source, cursor };
  }
  throw wrongCursor();
}

/* A key as operators see it, without the key itself and its hash. Times are RFC 3339. */

/** Shows a key of the config file, which is changed only there. */
export function configKeyView(key: ResolvedKey) {
  return { id: key.id, source: 'config' as const, readOnly: true, label: '', ...settingsOf(key) };
}

/**
 * Shows a managed key.
 * @param isOverridden the config file has a key with the same id
 */
export function managedKeyView(
  { record, revision }: { readonly record: ManagedKey; readonly revision?: number },
  isOverridden: boolean,
) {
  const end = Math.min(
    record.expiresAt ?? Number.POSITIVE_INFINITY,
    record.revokedAt ?? Number.POSITIVE_INFINITY,
  );
  return {
    id: record.id,
    source: 'managed' as const,
    readOnly: false,
    label: record.label,
    ...settingsOf(record),
    createdAt: dateTime(record.createdAt),
    revokedAt: record.revokedAt === null ? null : dateTime(record.revokedAt),
    // Former keys that still work, because the grace period of a rotation has not ended.
    formerKeys: record.former.filter(({ until }) => Math.min(until, end) > Date.now()).length,
    overridden: isOverridden,
    // Omitted if the store has not reported it.
    ...(revision === undefined ? {} : { revision }),
  };
}

function settingsOf({ groups, limits, budget, mayRoute, expiresAt }: ResolvedKey | ManagedKey) {
  return { groups, limits, budget, mayRoute, expiresAt: expiresAt === null ? null : dateTime(expiresAt) };
}
