/**
 * Addresses of upstreams' names. The system's resolver answers two questions at a time (libuv runs it on half of its
 * threads) and asks the network for each: a burst of new connections would wait for one another past their deadline.
 */

import { ADDRCONFIG } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { performance } from 'node:perf_hooks';
import { type Resolver, systemResolver } from './address.js';

/** How long an answer is used: the resolver does not tell its time to live, and services that move give 30 s or more. */
const keepMs = 15_000;
/** A question that has been open for longer is not waited for any more: another is asked beside it. */
const joinMs = 5000;
/** Names remembered at most; the one asked for longest ago goes first. */
const maxNames = 1024;

type Done = Parameters<LookupFunction>[2];
type Address = Parameters<Parameters<Resolver>[2]>[1][number];

export interface NameCache {
  /** For `connect`. Never calls back before it returns. Failures are told to all that wait, and not remembered. */
  readonly lookup: LookupFunction;
  /** No connection came about: the next one asks for the name's addresses anew. */
  forget(name: string): void;
}

interface Addresses {
  readonly first: readonly Address[];
  readonly others: readonly Address[];
}

interface Entry {
  /** Those of the family that is tried first, and the others; null while the question is open. */
  addresses: Addresses | null;
  /** When the question was asked, and then when it was answered (performance.now). */
  at: number;
  /** How often it has been used. */
  uses: number;
  waiting: { readonly all: boolean; readonly done: Done }[];
}

/** @param resolve in place of the system's resolver, which knows `/etc/hosts` */
export function createNameCache(resolve: Resolver = systemResolver): NameCache {
  const entries = new Map<string, Entry>();

  function ask(name: string, entry: Entry): void {
    entries.delete(name);
    if (entries.size >= maxNames) {
      const [oldest] = entries.keys();
      if (oldest !== undefined) entries.delete(oldest);
    }
    entries.set(name, entry);
    // As `connect` itself would ask.
    resolve(name, { all: true, hints: ADDRCONFIG }, (error, found) => {
      const { waiting } = entry;
      entry.waiting = [];
      const [head] = found ?? [];
      if (error !== null || head === undefined) {
        if (entries.get(name) === entry) entries.delete(name);
        const cause = error ?? Object.assign(new Error('the name has no address'), { code: 'ENOTFOUND' });
        for (const { done } of waiting) done(cause, '', 0);
        return;
      }
      entry.at = performance.now();
      const addresses = {
        first: found.filter(({ family }) => family === head.family),
        others: found.filter(({ family }) => family !== head.family),
      };
      entry.addresses = addresses;
      for (const { all, done } of waiting) give(entry, addresses, all, done);
    });
  }

  return {
    lookup(name, options, done) {
      const all = options.all === true;
      const now = performance.now();
      const known = entries.get(name);
      if (known !== undefined && known.addresses !== null && now - known.at < keepMs) {
        process.nextTick(give, known, known.addresses, all, done);
      } else if (known !== undefined && known.addresses === null && now - known.at < joinMs) {
        known.waiting.push({ all, done });
      } else {
        ask(name, { addresses: null, at: now, uses: 0, waiting: [{ all, done }] });
      }
    },
    forget(name) {
      if (entries.get(name)?.addresses != null) entries.delete(name);
    },
  };
}

/** Each use begins with another address, as each question's answer did; the family that comes first stays first. */
function give(entry: Entry, { first, others }: Addresses, all: boolean, done: Done): void {
  const turn = entry.uses++ % first.length;
  const chosen = first[turn];
  if (all || chosen === undefined) done(null, [...first.slice(turn), ...first.slice(0, turn), ...others]);
  else done(null, chosen.address, chosen.family);
}
