/**
 * Caches the addresses of upstreams' names. The system's resolver runs two lookups at a time (libuv uses half of its
 * threads for them), and queries the network for each. Without a cache, the connections of a burst would wait for each
 * other past their deadlines. A single name whose servers do not respond would block the lookups of all other names.
 */

import { ADDRCONFIG } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { performance } from 'node:perf_hooks';
import { errorCode } from '../errors.js';
import { type Resolver, systemResolver } from './address.js';

/**
 * How long an answer is used, in milliseconds. The resolver does not report the time to live; services that move use 30
 * s or more.
 */
const keepMs = 15_000;
/** Age of an open query, in milliseconds, beyond which new callers do not wait for it: a second query is started. */
const joinMs = 5000;
/** Maximum number of open queries for one name. Each occupies a thread of the resolver. */
const mostOpen = 2;
/** Milliseconds after which an open query's callers get the name's earlier addresses, if any (RFC 8767 section 5). */
const patienceMs = 500;
/** How long after they were resolved earlier addresses may be used, in milliseconds. */
const staleMs = 24 * 60 * 60 * 1000;
/** Maximum number of names in the cache. The one queried longest ago is dropped first. */
const maxNames = 1024;

type Done = Parameters<LookupFunction>[2];
type Address = Parameters<Parameters<Resolver>[2]>[1][number];

export interface NameCache {
  /**
   * Lookup for `connect`. Never calls back before it returns. A name that no longer resolves keeps its earlier
   * addresses, unless the resolver reports that the name does not exist. Other failures go to all waiting callers, and
   * are not cached.
   */
  readonly lookup: LookupFunction;
  /** Called when a connection has failed. The next lookup of the name starts a new query. */
  forget(name: string): void;
}

/** Notified of names for which earlier addresses are used: once when that begins, and once when it ends. */
export interface StaleNames {
  /** @param code code of the resolver's error, or `ETIMEDOUT` if it did not answer in time */
  onStale(name: string, code: string): void;
  onResolved(name: string): void;
}

interface Addresses {
  readonly first: readonly Address[];
  readonly others: readonly Address[];
}

interface Question {
  /** By performance.now, like all times in this file. */
  readonly askedAt: number;
  waiting: { readonly all: boolean; readonly done: Done }[];
  /** Fires when the waiting callers are given the name's earlier addresses. */
  patience: NodeJS.Timeout | null;
}

interface Entry {
  readonly name: string;
  /** Addresses of the last successful answer. */
  addresses: Addresses | null;
  answeredAt: number;
  /** Until when the addresses are used without a new query. */
  freshUntil: number;
  /** How often the addresses have been used. */
  uses: number;
  /** The newest query, while it is open. */
  question: Question | null;
  open: number;
  /** True while earlier addresses are returned without waiting, until there is a new answer. */
  isStale: boolean;
}

const nobody: StaleNames = { onStale() {}, onResolved() {} };

/** @param resolve replaces the system's resolver, which reads `/etc/hosts` */
export function createNameCache(
  resolve: Resolver = systemResolver,
  listener: StaleNames = nobody,
): NameCache {
  const entries = new Map<string, Entry>();

  function entryOf(name: string): Entry {
    const known = entries.get(name);
    if (known !== undefined) return known;
    const first = { addresses: null, answeredAt: 0, freshUntil: 0, uses: 0 };
    return { name, ...first, question: null, open: 0, isStale: false };
  }

  function ask(entry: Entry, question: Question): void {
    const { name } = entry;
    entries.delete(name);
    if (entries.size >= maxNames) {
      const [oldest] = entries.keys();
      if (oldest !== undefined) entries.delete(oldest);
    }
    entries.set(name, entry);
    entry.question = question;
    entry.open++;
    // The same hints that `connect` uses.
    resolve(name, { all: true, hints: ADDRCONFIG }, (error, found) => {
      entry.open--;
      if (entry.question === question) entry.question = null;
      if (question.patience !== null) clearTimeout(question.patience);
      if (error === null && found.length > 0) accept(entry, found);
      else refuse(entry, question, error);
      const { addresses } = entry;
      if (addresses !== null) giveAll(entry, addresses, question);
    });
  }

  function accept(entry: Entry, found: readonly Address[]): void {
    const family = found[0]?.family;
    entry.addresses = {
      first: found.filter((address) => address.family === family),
      others: found.filter((address) => address.family !== family),
    };
    entry.answeredAt = performance.now();
    entry.freshUntil = entry.answeredAt + keepMs;
    if (entry.isStale) listener.onResolved(entry.name);
    entry.isStale = false;
  }

  /** Handles a failed query. A null error means that the name has no address. */
  function refuse(entry: Entry, question: Question, error: Error | null): void {
    const cause = error ?? Object.assign(new Error('the name has no address'), { code: 'ENOTFOUND' });
    if (errorCode(cause) !== 'ENOTFOUND' && isUsable(entry)) {
      entry.freshUntil = performance.now() + keepMs;
      beginStale(entry, errorCode(cause));
      return;
    }
    entry.addresses = null;
    if (entry.question === null && entries.get(entry.name) === entry) entries.delete(entry.name);
    const { waiting } = question;
    question.waiting = [];
    for (const { done } of waiting) done(cause, '', 0);
  }

  function beginStale(entry: Entry, code: string): void {
    if (entry.isStale) return;
    entry.isStale = true;
    listener.onStale(entry.name, code);
  }

  return {
    lookup(name, options, done) {
      const all = options.all === true;
      const now = performance.now();
      const entry = entryOf(name);
      const { addresses, question } = entry;
      if (addresses !== null && now < entry.freshUntil) {
        process.nextTick(give, entry, addresses, all, done);
        return;
      }
      const asked: Question =
        question !== null && (now - question.askedAt < joinMs || entry.open >= mostOpen)
          ? question
          : { askedAt: now, waiting: [], patience: null };
      const former = isUsable(entry) ? addresses : null;
      if (former !== null && entry.isStale) process.nextTick(give, entry, former, all, done);
      else {
        asked.waiting.push({ all, done });
        if (former !== null)
          asked.patience ??= setTimeout(() => {
            beginStale(entry, 'ETIMEDOUT');
            giveAll(entry, former, asked);
          }, patienceMs);
      }
      if (asked !== question) ask(entry, asked);
    },
    forget(name) {
      const entry = entries.get(name);
      if (entry !== undefined) entry.freshUntil = 0;
    },
  };
}

/** Whether the name has earlier addresses that may be used while the resolver fails. */
function isUsable({ addresses, answeredAt }: Entry): boolean {
  return addresses !== null && performance.now() - answeredAt < staleMs;
}

function giveAll(entry: Entry, addresses: Addresses, question: Question): void {
  const { waiting } = question;
  question.waiting = [];
  for (const { all, done } of waiting) give(entry, addresses, all, done);
}

/** Rotates the addresses with each use, as resolvers do with each answer. The preferred family stays first. */
function give(entry: Entry, { first, others }: Addresses, all: boolean, done: Done): void {
  const turn = entry.uses++ % first.length;
  const chosen = first[turn];
  if (all || chosen === undefined) done(null, [...first.slice(turn), ...first.slice(0, turn), ...others]);
  else done(null, chosen.address, chosen.family);
}
