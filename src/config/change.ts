import type { Steps } from '../wire/steps.js';
import { WideMap } from '../wire/wide-map.js';
import type { ResolvedConfig, ResolvedKey, ResolvedModel } from './resolve.js';

/** Change of a list whose entries have unique names. */
interface ListChange<Entry> {
  /** Entries that are new or changed. */
  readonly put: readonly Entry[];
  /** Names of removed entries. */
  readonly removed: readonly string[];
}

/**
 * Difference between a config and the previous one. The keys and models, which may be many, contain only what has
 * changed. The rest is complete.
 */
export interface ConfigChange {
  readonly rest: ConfigRest;
  readonly models: ListChange<ResolvedModel>;
  readonly keys: ListChange<ResolvedKey>;
}

type ConfigRest = Omit<ResolvedConfig, 'keys' | 'models'>;

/** A part of a change, small enough to be written and read in one turn of the event loop. */
export type ConfigPart = Partial<ConfigChange>;

const idOf = ({ id }: ResolvedKey): string => id;
const nameOf = ({ name }: ResolvedModel): string => name;

/**
 * Computes the change from `before` to `next`.
 * @param before null if nothing is known
 */
export function* configChange(before: ResolvedConfig | null, next: ResolvedConfig): Steps<ConfigChange> {
  const { keys, models, ...rest } = next;
  return {
    rest,
    models: yield* listChange(before?.models ?? [], models, nameOf),
    keys: yield* listChange(before?.keys ?? [], keys, idOf),
  };
}

/**
 * Applies a change to a config. The order of its keys and models may differ from the original.
 * @param before null if nothing was known
 */
export function* changedConfig(
  before: ResolvedConfig | null,
  { rest, models, keys }: ConfigChange,
): Steps<ResolvedConfig> {
  return {
    ...rest,
    models: yield* changedList(before?.models ?? [], models, nameOf),
    keys: yield* changedList(before?.keys ?? [], keys, idOf),
  };
}

/** Entries in a part. A key is some hundred bytes of JSON, a model with many targets some thousand. */
const partEntries = 32;

/** Splits a change into parts. There is at least one part, which has `rest`. */
export function* configParts({ rest, models, keys }: ConfigChange): Generator<ConfigPart, void, undefined> {
  yield { rest };
  for (const part of listParts(models)) yield { models: part };
  for (const part of listParts(keys)) yield { keys: part };
}

function* listParts<Entry>({
  put,
  removed,
}: ListChange<Entry>): Generator<ListChange<Entry>, void, undefined> {
  for (let from = 0; from < Math.max(put.length, removed.length); from += partEntries)
    yield { put: put.slice(from, from + partEntries), removed: removed.slice(from, from + partEntries) };
}

/** Joins the parts of a change. The change is complete when all have been added. */
export class JoinedParts {
  #rest: ConfigRest | null = null;
  readonly #models = { put: [] as ResolvedModel[], removed: [] as string[] };
  readonly #keys = { put: [] as ResolvedKey[], removed: [] as string[] };

  add({ rest, models, keys }: ConfigPart): void {
    this.#rest = rest ?? this.#rest;
    this.#models.put.push(...(models?.put ?? []));
    this.#models.removed.push(...(models?.removed ?? []));
    this.#keys.put.push(...(keys?.put ?? []));
    this.#keys.removed.push(...(keys?.removed ?? []));
  }

  /** @throws Error if the first part is missing */
  change(): ConfigChange {
    if (this.#rest === null) throw new Error('a change of the config lacks its first part');
    return { rest: this.#rest, models: this.#models, keys: this.#keys };
  }
}

/** Compares two lists. Their common beginning and end need no map of entries. */
function* listChange<Entry>(
  before: readonly Entry[],
  next: readonly Entry[],
  nameOf: (entry: Entry) => string,
): Steps<ListChange<Entry>> {
  const put: Entry[] = [];
  const compare = (known: Entry | undefined, entry: Entry): void => {
    if (known === undefined || !isSame(known, entry)) put.push(entry);
  };
  const isAt = (one: number, other: number): boolean =>
    nameOf(before[one] as Entry) === nameOf(next[other] as Entry);
  const most = Math.min(before.length, next.length);
  let first = 0;
  for (; first < most && isAt(first, first); first++) {
    compare(before[first], next[first] as Entry);
    yield;
  }
  let [oldEnd, end] = [before.length, next.length];
  for (; oldEnd > first && end > first && isAt(oldEnd - 1, end - 1); oldEnd--, end--) {
    compare(before[oldEnd - 1], next[end - 1] as Entry);
    yield;
  }
  const left = yield* byName(before.slice(first, oldEnd), nameOf);
  for (const entry of next.slice(first, end)) {
    compare(left.get(nameOf(entry)), entry);
    left.delete(nameOf(entry));
    yield;
  }
  return { put, removed: [...left.keys()] };
}

function* byName<Entry>(entries: readonly Entry[], nameOf: (entry: Entry) => string): Steps<WideMap<Entry>> {
  const named = new WideMap<Entry>();
  for (const entry of entries) {
    named.set(nameOf(entry), entry);
    yield;
  }
  return named;
}

/**
 * Checks whether two values are the same JSON, in whatever order their members are. Takes a tenth of the time of
 * `isDeepStrictEqual`.
 */
function isSame(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const names = Object.keys(one);
  if (names.length !== Object.keys(other).length) return false;
  for (const name of names) {
    if (!Object.hasOwn(other, name) || !isSame(Reflect.get(one, name), Reflect.get(other, name)))
      return false;
  }
  return true;
}

function* changedList<Entry>(
  before: readonly Entry[],
  { put, removed }: ListChange<Entry>,
  nameOf: (entry: Entry) => string,
): Steps<readonly Entry[]> {
  if (put.length === 0 && removed.length === 0) return before;
  if (before.length === 0) return put;
  const changed = yield* byName(put, nameOf);
  const gone = new Set(removed);
  const entries: Entry[] = [];
  for (const entry of before) {
    const name = nameOf(entry);
    const now = changed.get(name);
    if (now !== undefined) changed.delete(name);
    if (now !== undefined || !gone.has(name)) entries.push(now ?? entry);
    yield;
  }
  for (const entry of changed.values()) {
    entries.push(entry);
    yield;
  }
  return entries;
}
