import { performance } from 'node:perf_hooks';
import { parseErrorBody, retryAfterMsOf } from '../../attempts/told-error.js';
import { GatewayError } from '../../errors.js';
import type { UpstreamFailure } from '../../upstream/types.js';
import type { Asking } from '../call.js';
import type { Services } from '../services.js';
import { type Answered, askAlone, type CollectedRequest, isFailure } from '../upstream/ask.js';

/** What is looked at in a round, and what is asked about at once: of one upstream, and of all. */
const mostOfRound = 100;
const mostOfUpstream = 4;
const mostAtOnce = 64;
/** An upstream is asked again about the same thing after a tenth of its age, within these bounds. */
const shortestMs = 2000;
const longestMs = 60_000;
/** However long an upstream wants to be left alone, it is asked again after this: what it makes may have ended. */
const longestRestMs = 10 * 60 * 1000;

/** Asks an upstream on nobody's behalf. */
export type AskAlone = (asking: Asking, request: CollectedRequest) => Promise<Answered | UpstreamFailure>;

/** What is to be done about something that has not ended. */
export interface WatchedWork {
  /** Since it began, in milliseconds. */
  readonly ageMs: number;
  /** Name of the upstream that is asked; null where none is. */
  readonly upstream: string | null;
  /** @returns true for one caller in `ms` milliseconds, of all processes and hosts: it does the work */
  claim(ms: number): Promise<boolean>;
  work(ask: AskAlone): Promise<void>;
}

/** What upstreams make for longer than a call lasts, by ids. */
export interface Watched {
  /** There may be any. */
  mayBeAny(): boolean;
  /** @param from `next` of the page before; null for the first one */
  page(
    limit: number,
    from: string | null,
  ): Promise<{ readonly ids: readonly string[]; readonly next: string | null }>;
  /** @returns null where nothing is to be done any more */
  find(id: string): Promise<WatchedWork | null>;
}

/**
 * Asks upstreams about what they make for longer than a call lasts, so that its end and its price are known even if no
 * client asks. All workers of all hosts do so, and a claim in the store leaves each thing to one of them at a time.
 */
export class UpstreamWatch {
  readonly #services: Services;
  readonly #watched: Watched;
  /** Where the next page begins. */
  #from: string | null = null;
  /**
   * Ids of the last page that no round has come to: the next one begins with them. Read again, the page would begin with
   * those that are due again, and where upstreams are slow no other page would have its turn.
   */
  #left: string[] = [];
  /** Ids that were asked about in the last rounds, and until when they are left alone. */
  #notBefore = new Map<string, number>();
  #isBusy = false;
  #isOver = false;
  readonly #cancels = new Set<() => void>();
  /** How many things are being asked about, by their upstream's name and in all: an upstream that hangs holds up no other. */
  readonly #asked = new Map<string, number>();
  #askedOfAll = 0;
  /** Upstreams that want to be left alone, by their names, and until when. */
  readonly #resting = new Map<string, number>();

  constructor(services: Services, watched: Watched) {
    this.#services = services;
    this.#watched = watched;
  }

  /** A round, unless one begins: what upstreams are slow to answer does not hold up the next. Never rejects. */
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

  /** Gives up what is asked. */
  close(): void {
    this.#isOver = true;
    for (const cancel of this.#cancels) cancel();
  }

  async #round(): Promise<void> {
    if (this.#left.length === 0) this.#left = await this.#nextPage();
    while (!this.#isOver && this.#askedOfAll < mostAtOnce) {
      const id = this.#left.shift();
      if (id === undefined) return;
      if (performance.now() >= (this.#notBefore.get(id) ?? 0)) await this.#look(id);
    }
  }

  async #nextPage(): Promise<string[]> {
    if (this.#notBefore.size > 10 * mostOfRound) this.#notBefore.clear();
    const { ids, next } = await this.#watched.page(mostOfRound, this.#from);
    this.#from = next;
    return [...ids];
  }

  /** Begins to ask about one; where its upstream is asked about as many as it may be, it waits for a later round. */
  async #look(id: string): Promise<void> {
    const found = await this.#watched.find(id);
    if (found === null) {
      this.#notBefore.delete(id);
      return;
    }
    if (found.upstream !== null && !this.#mayAsk(found.upstream)) return;
    const pause = Math.min(longestMs, Math.max(shortestMs, found.ageMs / 10));
    this.#notBefore.set(id, performance.now() + pause);
    if (await found.claim(pause)) void this.#work(found);
  }

  /** Never rejects. */
  async #work(found: WatchedWork): Promise<void> {
    this.#count(found.upstream, 1);
    try {
      await found.work((asking, request) => this.#ask(asking, request));
    } catch (fault) {
      this.#report(fault);
    } finally {
      this.#count(found.upstream, -1);
    }
  }

  #mayAsk(upstream: string): boolean {
    if ((this.#asked.get(upstream) ?? 0) >= mostOfUpstream) return false;
    const until = this.#resting.get(upstream) ?? 0;
    if (performance.now() < until) return false;
    this.#resting.delete(upstream);
    return true;
  }

  #count(upstream: string | null, more: number): void {
    if (upstream === null) return;
    const count = (this.#asked.get(upstream) ?? 0) + more;
    if (count > 0) this.#asked.set(upstream, count);
    else this.#asked.delete(upstream);
    this.#askedOfAll += more;
  }

  #report(fault: unknown): void {
    // The store is gone, as its other users tell.
    if (!(fault instanceof GatewayError)) this.#services.reportFault('timer', fault, null);
  }

  async #ask(asking: Asking, request: CollectedRequest): Promise<Answered | UpstreamFailure> {
    const answer = await askAlone(this.#services, asking, request, this.#cancels);
    const restMs =
      isFailure(answer) || answer.head.status < 400
        ? null
        : retryAfterMsOf(answer.head, parseErrorBody(answer.body));
    if (restMs !== null)
      this.#resting.set(request.upstream.name, performance.now() + Math.min(restMs, longestRestMs));
    return answer;
  }
}
