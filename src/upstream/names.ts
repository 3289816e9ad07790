/**
 * Addresses of upstreams' names. The system's resolver answers two questions at a time (libuv runs it on half of its
 * threads) and asks the network for each: a burst of new connections would wait for one another past their deadline,
 * and one name whose servers say nothing would keep all others from being looked up.
 */

import { ADDRCONFIG } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { performance } from 'node:perf_hooks';
import { errorCode } from '../errors.js';
import { type Resolver, systemResolver } from './address.js';

/** How long an answer is used: the resolver does not tell its time to live, and services that move give 30 s or more. */
const keepMs = 15_000;
/** A question that has been open for longer is not waited for any more: another is asked beside it. */
const joinMs = 5000;
/** Questions of one name that may be open: each keeps a thread of the resolver. */
const mostOpen = 2;
/** A question has so long where the name had addresses before, which are used again then (RFC 8767 section 5). */
const patienceMs = 500;
/** For how long after they were given. */
const staleMs = 24 * 60 * 60 * 1000;
/** Names remembered at most; the one asked for longest ago goes first. */
const maxNames = 1024;

type Done = Parameters<LookupFunction>[2];
type Address = Parameters<Parameters<Resolver>[2]>[1][number];

export interface NameCache {
  /**
   * For `connect`. Never calls back before it returns. A name that cannot be resolved any more has the addresses that it
   * had, unless the answer is that there is no such name; other failures are told to all that wait, and not remembered.
   */
  readonly lookup: LookupFunction;
  /** No connection came about: the next one asks for the name's addresses anew. */
  forget(name: string): void;
}

/** Hears of names that have the addresses of an earlier answer: once when that begins, and once when it is over. */
export interface StaleNames {
  /** @param code why there are no others: that of the resolver's error, or `ETIMEDOUT` where it has not answered in time */
  onStale(name: string, code: string): void;
  onResolved(name: string): void;
}

interface Addresses {
  readonly first: readonly Address[];
  readonly others: readonly Address[];
}

interface Question {
  /** By performance.now, as all times here. */
  readonly askedAt: number;
  waiting: { readonly all: boolean; readonly done: Done }[];
  /** Until those that wait are given what the name had before. */
  patience: NodeJS.Timeout | null;
}

interface Entry {
  readonly name: string;
  /** Of the last good answer. */
  addresses: Addresses | null;
  answeredAt: number;
  /** Until then nothing is asked. */
  freshUntil: number;
  /** How often they have been used. */
  uses: number;
  /** The last one, while it is open. */
  question: Question | null;
  open: number;
  /** Addresses of an earlier answer are given at once, until there is another. */
  isStale: boolean;
}

const nobody: StaleNames = { onStale() {}, onResolved() {} };

/** @param resolve in place of the system's resolver, which knows `/etc/hosts` */
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
    // As `connect` itself would ask.
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

  /** Without an error the answer is that the name has no address. */
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

/** Whether the name has addresses that may take the place of those that the resolver does not tell. */
function isUsable({ addresses, answeredAt }: Entry): boolean {
  return addresses !== null && performance.now() - answeredAt < staleMs;
}

function giveAll(entry: Entry, addresses: Addresses, question: Question): void {
  const { waiting } = question;
  question.waiting = [];
  for (const { all, done } of waiting) give(entry, addresses, all, done);
}

/** Each use begins with another address, as each question's answer did; the family that comes first stays first. */
function give(entry: Entry, { first, others }: Addresses, all: boolean, done: Done): void {
  const turn = entry.uses++ % first.length;
  const chosen = first[turn];
  if (all || chosen === undefined) done(null, [...first.slice(turn), ...first.slice(0, turn), ...others]);
  else done(null, chosen.address, chosen.family);
}
