import { performance } from 'node:perf_hooks';
import { parseErrorBody, retryAfterMsOf } from '../../attempts/reported-error.js';
import { GatewayError } from '../../errors.js';
import type { UpstreamFailure } from '../../upstream/types.js';
import type { RequestSender } from '../call.js';
import type { Services } from '../services.js';
import { type CollectedAnswer, type CollectedRequest, collectAlone, isFailure } from '../upstream/collect.js';

/** Things examined in a round, and polls in flight per upstream and in total. */
const maxPerRound = 100;
const maxPerUpstream = 4;
const maxConcurrent = 64;
/** A thing is polled again after a tenth of its age, within these bounds. */
const minIntervalMs = 2000;
const maxIntervalMs = 60_000;
/** Longest `retry-after` of an upstream that is honored, since what it makes may have ended. */
const maxRestMs = 10 * 60 * 1000;

/** Sends a request to an upstream without a client. */
export type CollectAlone = (
  sender: RequestSender,
  request: CollectedRequest,
) => Promise<CollectedAnswer | UpstreamFailure>;

/** The work due on a watched thing. */
export interface WatchedWork {
  /** Milliseconds since its start. */
  readonly ageMs: number;
  /** Name of the upstream to poll; null if none is. */
  readonly upstream: string | null;
  /** @returns true for one caller in `ms` milliseconds across all processes and hosts, which then does the work */
  claim(ms: number): Promise<boolean>;
  work(collect: CollectAlone): Promise<void>;
}

/** A kind of things that upstreams make for longer than a call lasts, by id. */
export interface Watched {
  mayBeAny(): boolean;
  /** @param from `next` of the previous page; null for the first */
  page(
    limit: number,
    from: string | null,
  ): Promise<{ readonly ids: readonly string[]; readonly next: string | null }>;
  /** @returns null if nothing remains to be done */
  find(id: string): Promise<WatchedWork | null>;
}

/**
 * Polls upstreams about what they make for longer than a call lasts, so that its end and price become known even if no
 * client polls. All workers of all hosts do so; a claim in the store leaves each thing to one of them at a time.
 */
export class UpstreamWatch {
  readonly #services: Services;
  readonly #watched: Watched;
  /** Start of the next page; null for the first. */
  #from: string | null = null;
  /**
   * Ids of the last page that no round has reached; the next round begins with them. If the page were read again, it
   * would begin with ids that are due again, and with slow upstreams no other page would be reached.
   */
  #unvisited: string[] = [];
  /** Ids polled in the last rounds, and when each may be polled again. */
  #notBefore = new Map<string, number>();
  #isBusy = false;
  #isOver = false;
  readonly #cancels = new Set<() => void>();
  /** Polls in flight, by upstream name and in total: an upstream that hangs does not delay the others. */
  readonly #inFlight = new Map<string, number>();
  #totalInFlight = 0;
  /** Times before which upstreams are not polled, by upstream name. */
  readonly #resting = new Map<string, number>();

  constructor(services: Services, watched: Watched) {
    this.#services = services;
    this.#watched = watched;
  }

  /** Runs a round, unless one is starting its polls. Does not wait for the polls' answers. Never rejects. */
  async tick(): Promise<void> {
    if (this.#isBusy || this.#isOver || !this.#watched.mayBeAny()) return;
    this.#isBusy = true;
    try {
      await this.#round();
    } catch (fault) {
      this.#report(fault);
    } finally {
      this.#isBusy = false;
    }
  }

  /** Cancels all polls. */
  close(): void {
    this.#isOver = true;
    for (const cancel of this.#cancels) cancel();
  }

  async #round(): Promise<void> {
    if (this.#unvisited.length === 0) this.#unvisited = await this.#nextPage();
    while (!this.#isOver && this.#totalInFlight < maxConcurrent) {
      const id = this.#unvisited.shift();
      if (id === undefined) return;
      if (performance.now() >= (this.#notBefore.get(id) ?? 0)) await this.#look(id);
    }
  }

  async #nextPage(): Promise<string[]> {
    if (this.#notBefore.size > 10 * maxPerRound) this.#notBefore.clear();
    const { ids, next } = await this.#watched.page(maxPerRound, this.#from);
    this.#from = next;
    return [...ids];
  }

  /** Starts a poll; if its upstream has as many in flight as permitted, the id waits for a later round. */
  async #look(id: string): Promise<void> {
    const found = await this.#watched.find(id);
    if (found === null) {
      this.#notBefore.delete(id);
      return;
    }
    if (found.upstream !== null && !this.#mayLook(found.upstream)) return;
    const pause = Math.min(maxIntervalMs, Math.max(minIntervalMs, found.ageMs / 10));
    this.#notBefore.set(id, performance.now() + pause);
    if (await found.claim(pause)) void this.#work(found);
  }

  /** Never rejects. */
  async #work(found: WatchedWork): Promise<void> {
    this.#count(found.upstream, 1);
    try {
      await found.work((sender, request) => this.#collect(sender, request));
    } catch (fault) {
      this.#report(fault);
    } finally {
      this.#count(found.upstream, -1);
    }
  }

  #mayLook(upstream: string): boolean {
    if ((this.#inFlight.get(upstream) ?? 0) >= maxPerUpstream) return false;
    const until = this.#resting.get(upstream) ?? 0;
    if (performance.now() < until) return false;
    this.#resting.delete(upstream);
    return true;
  }

  #count(upstream: string | null, more: number): void {
    if (upstream === null) return;
    const count = (this.#inFlight.get(upstream) ?? 0) + more;
    if (count > 0) this.#inFlight.set(upstream, count);
    else this.#inFlight.delete(upstream);
    this.#totalInFlight += more;
  }

  #report(fault: unknown): void {
    // The store is unavailable, which its other users report.
    if (!(fault instanceof GatewayError)) this.#services.reportFault('timer', fault, null);
  }

  async #collect(
    sender: RequestSender,
    request: CollectedRequest,
  ): Promise<CollectedAnswer | UpstreamFailure> {
    const answer = await collectAlone(this.#services, sender, request, this.#cancels);
    const restMs =
      isFailure(answer) || answer.head.status < 400
        ? null
        : retryAfterMsOf(answer.head, parseErrorBody(answer.body));
    if (restMs !== null)
      this.#resting.set(request.upstream.name, performance.now() + Math.min(restMs, maxRestMs));
    return answer;
  }
}
