import { createHash } from 'node:crypto';
import type { Asked } from './embedded-calls.js';
import { countedBytes, type FoundOwned } from './owned.js';
import { expiryOf, nameKey, timeBytes } from './record-format.js';
import type { Bytes } from './records.js';

/**
 * The records of all owners. The five databases change together, so that they are consistent at any moment and after a
 * crash.
 */
export interface OwnedBase {
  /** By owner and name: expiry, counted bytes, value. */
  readonly values: Bytes;
  /** By owner, time and name. Without values. */
  readonly byOwner: Bytes;
  /** By time, owner and name. Without values. */
  readonly byTime: Bytes;
  /** By name and owner. Without values. Versions of the gateway without this database do not remove entries from it. */
  readonly byName: Bytes;
  /** Counted bytes of each owner. The sum of all is under `allKey`. */
  readonly sums: Bytes;
  /** Those that the current transaction has changed, in latin1 of their keys. */
  readonly changedSums: Map<string, { readonly key: Buffer; sum: number }>;
}

const ownerBytes = 32;
const timeLength = 8;
const headBytes = 16;
const nameLengthBytes = 2;
/** Shorter than the key of any owner. */
const allKey = Buffer.from([0]);
const nothing = Buffer.alloc(0);
/** Most records, and bytes, that one transaction removes beyond what has to make room for new records. */
const mostRemoved = 1000;
const mostFreed = 1024 * 1024;

interface Held {
  readonly owner: Buffer;
  /** `nameKey` of its id. */
  readonly name: Buffer;
  readonly expiresAt: number;
  readonly counted: number;
}

/** An entry of `values`. */
export interface HeldOwned extends Held {
  readonly value: Buffer;
}

/** Parses an entry of `values`. */
export function heldOwned(key: Buffer, bytes: Buffer): HeldOwned {
  return {
    owner: key.subarray(0, ownerBytes),
    name: key.subarray(ownerBytes),
    expiresAt: bytes.readDoubleBE(0),
    counted: bytes.readDoubleBE(timeLength),
    value: bytes.subarray(headBytes),
  };
}

/** Keys of recent owners: hashing took longer than looking up. Emptied when full. */
const ownerKeys = new Map<string, Buffer>();
const mostOwnerKeys = 1024;

/** Owners may be any text. Hashes all have the same length, so that a range of keys belongs to one owner. */
function ownerKey(owner: string): Buffer {
  let key = ownerKeys.get(owner);
  if (key === undefined) {
    key = createHash('sha256').update(owner).digest();
    if (ownerKeys.size >= mostOwnerKeys) ownerKeys.clear();
    ownerKeys.set(owner, key);
  }
  return key;
}

/**
 * Returns the prefix of a name's entries in `byName`. Since it includes the length of the name, no other name has it.
 */
function nameStart(name: Buffer): Buffer {
  const start = Buffer.alloc(nameLengthBytes + name.length);
  start.writeUInt16BE(name.length);
  name.copy(start, nameLengthBytes);
  return start;
}

function heldUnder(base: OwnedBase, owner: Buffer, name: Buffer): (Held & { readonly bytes: Buffer }) | null {
  const bytes = base.values.get(Buffer.concat([owner, name]));
  if (bytes === undefined) return null;
  return { owner, name, expiresAt: bytes.readDoubleBE(0), counted: bytes.readDoubleBE(timeLength), bytes };
}

/** Returns the sum of an owner, or of all, for changes of the current transaction. */
function sumAt(base: OwnedBase, key: Buffer): { readonly key: Buffer; sum: number } {
  const name = key.toString('latin1');
  let changed = base.changedSums.get(name);
  if (changed === undefined) {
    changed = { key, sum: base.sums.get(key)?.readDoubleBE(0) ?? 0 };
    base.changedSums.set(name, changed);
  }
  return changed;
}

/**
 * Does the work of a write transaction, and then writes the sums. A transaction with many records changes the same few
 * sums with each of them, which took as long as writing the records.
 */
export function changeOwned<T>(base: OwnedBase, work: () => T): T {
  base.changedSums.clear();
  const result = work();
  for (const { key, sum } of base.changedSums.values()) {
    if (sum > 0) void base.sums.put(key, timeBytes(sum));
    else void base.sums.remove(key);
  }
  return result;
}

/** Writes a record that does not exist yet. Must be called within `changeOwned`. */
export function putOwned(base: OwnedBase, held: Held, value: string): void {
  const bytes = Buffer.allocUnsafe(headBytes + Buffer.byteLength(value));
  bytes.write(value, headBytes);
  putBytes(base, held, bytes);
}

/** @param bytes the entry of `values`, whose head is written here */
function putBytes(base: OwnedBase, { owner, name, expiresAt, counted }: Held, bytes: Buffer): void {
  const time = timeBytes(expiresAt);
  bytes.writeDoubleBE(expiresAt);
  bytes.writeDoubleBE(counted, timeLength);
  void base.values.put(Buffer.concat([owner, name]), bytes);
  void base.byOwner.put(Buffer.concat([owner, time, name]), nothing);
  void base.byTime.put(Buffer.concat([time, owner, name]), nothing);
  void base.byName.put(Buffer.concat([nameStart(name), owner]), nothing);
  sumAt(base, owner).sum += counted;
  sumAt(base, allKey).sum += counted;
}

function take(base: OwnedBase, { owner, name, expiresAt, counted }: Held): void {
  const time = timeBytes(expiresAt);
  void base.values.remove(Buffer.concat([owner, name]));
  void base.byOwner.remove(Buffer.concat([owner, time, name]));
  void base.byTime.remove(Buffer.concat([time, owner, name]));
  void base.byName.remove(Buffer.concat([nameStart(name), owner]));
  sumAt(base, owner).sum -= counted;
  sumAt(base, allKey).sum -= counted;
}

/** See `OwnedRecords.keep`. Must be called within `changeOwned`. */
export function keepOwned(base: OwnedBase, ...[of, records, ttlMs, most]: Asked<'keep'>): boolean {
  const owner = ownerKey(of);
  const expiresAt = expiryOf(ttlMs, Date.now());
  // If an id occurs several times, the last record is kept, as if they were written one after the other.
  const byId = new Map(records.map(({ id, value }) => [id, value]));
  const made = [...byId].map(([id, value]) => {
    const counted = countedBytes(id, Buffer.byteLength(value));
    const held: Held = { owner, name: nameKey(id), expiresAt, counted };
    return { held, value };
  });
  const total = made.reduce((sum, { held }) => sum + held.counted, 0);
  if (total > Math.min(most.owner, most.all)) return false;
  for (const { held } of made) {
    const old = heldUnder(base, owner, held.name);
    if (old !== null) take(base, old);
  }
  // Before the new records are written, so that these cannot displace each other.
  makeRoom(base, owner, { most: most.owner - total, came: total });
  makeRoom(base, allKey, { most: most.all - total, came: total });
  for (const { held, value } of made) putOwned(base, held, value);
  return true;
}

/**
 * Removes the oldest records of an owner, or of all, until at most `most` bytes are left, or one transaction has
 * removed as much as it may. If a bound was lowered, later calls of `keep` remove the rest, so that none blocks other
 * calls for long.
 * @param came bytes of the new records. At least as many are removed if necessary
 */
function makeRoom(
  base: OwnedBase,
  of: Buffer,
  { most, came }: { readonly most: number; readonly came: number },
): void {
  let freed = 0;
  for (let count = 0; sumAt(base, of).sum > most; count += 1) {
    if (freed >= came && (count >= mostRemoved || freed >= mostFreed)) return;
    const oldest = of === allKey ? oldestOfAll(base) : oldestOf(base, of);
    if (oldest === null) return;
    take(base, oldest);
    freed += oldest.counted;
  }
}

function oldestOf(base: OwnedBase, owner: Buffer): Held | null {
  const [key]: Buffer[] = [...base.byOwner.getKeys({ start: owner, limit: 1 })];
  if (key === undefined || !key.subarray(0, ownerBytes).equals(owner)) return null;
  return heldUnder(base, owner, key.subarray(ownerBytes + timeLength));
}

function oldestOfAll(base: OwnedBase): Held | null {
  const [key]: Buffer[] = [...base.byTime.getKeys({ limit: 1 })];
  return key === undefined ? null : heldByTime(base, key);
}

function heldByTime(base: OwnedBase, key: Buffer): Held | null {
  const nameAt = timeLength + ownerBytes;
  return heldUnder(base, key.subarray(timeLength, nameAt), key.subarray(nameAt));
}

/** See `OwnedRecords.find`. */
export function findOwned(base: OwnedBase, ...[of, ids, mostBytes]: Asked<'find'>): FoundOwned | null {
  const owner = ownerKey(of);
  const now = Date.now();
  let left = mostBytes;
  const values: (string | null)[] = [];
  for (const id of ids) {
    const held = heldUnder(base, owner, nameKey(id));
    const isLive = held !== null && held.expiresAt > now;
    if (isLive) left -= held.bytes.length - headBytes;
    if (left < 0) return null;
    values.push(isLive ? held.bytes.toString('utf8', headBytes) : null);
  }
  const ofOthers = ids.filter((id, index) => values[index] === null && isAnybodys(base, nameKey(id)));
  return { values, ofOthers };
}

function isAnybodys(base: OwnedBase, name: Buffer): boolean {
  const start = nameStart(name);
  const now = Date.now();
  for (const key of base.byName.getKeys({ start })) {
    if (!key.subarray(0, start.length).equals(start)) return false;
    const held = heldUnder(base, key.subarray(start.length), name);
    if (held !== null && held.expiresAt > now) return true;
  }
  return false;
}

/** See `OwnedRecords.renew`. Must be called within `changeOwned`. */
export function renewOwned(base: OwnedBase, ...[of, ids, ttlMs]: Asked<'renew'>): void {
  const owner = ownerKey(of);
  const now = Date.now();
  for (const id of ids) {
    const held = heldUnder(base, owner, nameKey(id));
    if (held === null || held.expiresAt <= now || held.expiresAt - now > ttlMs / 2) continue;
    // LMDB reuses the memory of what it has read.
    const bytes = Buffer.from(held.bytes);
    take(base, held);
    putBytes(base, { ...held, expiresAt: expiryOf(ttlMs, now) }, bytes);
  }
}

/**
 * Must be called within `changeOwned`.
 * @returns false if there was no such record
 */
export function dropOwned(base: OwnedBase, ...[of, id]: Asked<'drop'>): boolean {
  const held = heldUnder(base, ownerKey(of), nameKey(id));
  if (held === null) return false;
  take(base, held);
  return held.expiresAt > Date.now();
}

/**
 * Removes expired records. Must be called within `changeOwned`.
 * @param most maximum number of records to remove
 * @returns how many were removed; fewer than `most` if none is left
 */
export function sweepOwned(base: OwnedBase, most: number): number {
  const expired = [...base.byTime.getKeys({ end: timeBytes(Date.now() + 1), limit: most })];
  for (const key of expired) {
    const held = heldByTime(base, key);
    if (held !== null) take(base, held);
    else void base.byTime.remove(key);
  }
  return expired.length;
}
