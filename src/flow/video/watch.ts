import { performance } from 'node:perf_hooks';
import { parseErrorBody, retryAfterMsOf } from '../../attempts/told-error.js';
import { GatewayError } from '../../errors.js';
import type { UpstreamFailure } from '../../upstream/client.js';
import { hasEnded } from '../../video/advance.js';
import type { BookedTask } from '../../video/book.js';
import type { VideoTask } from '../../video/task.js';
import { type Answered, type CollectedRequest, isFailure } from '../ask.js';
import type { Asking } from '../call.js';
import type { Services } from '../services.js';
import { askAlone, askingAbout } from './asking.js';
import { refreshed } from './poll.js';

/** Tasks that are looked at in a round, and those that are asked about at once: of one upstream, and of all. */
const mostOfRound = 100;
const mostOfUpstream = 4;
const mostAtOnce = 64;
/** A task is asked about when it is older by a tenth, but not more often than the one and not less often than the other. */
const shortestMs = 2000;
const longestMs = 60_000;
/** An upstream that wants to be left alone for longer is asked again by then: its tasks may end in the meantime. */
const longestRestMs = 10 * 60 * 1000;
/** A task that has not ended by then is left to its clients: what it was charged stands. */
const watchedMs = 24 * 60 * 60 * 1000;

/**
 * Asks upstreams how the tasks stand that they have taken, so that each comes to its end and its price is put right,
 * whether or not its client asks. All workers and hosts do, and each task is one's at a time.
 */
export class TaskWatch {
  readonly #services: Services;
  /** Where the next round begins. */
  #from: string | null = null;
  /** Tasks of the last rounds that were asked about, and until when they are not again. */
  #notBefore = new Map<string, number>();
  #isBusy = false;
  #isOver = false;
  readonly #cancels = new Set<() => void>();
  /** How many tasks of each upstream are asked about, by its name, and of all: one that hangs holds up no other. */
  readonly #asked = new Map<string, number>();
  #askedOfAll = 0;
  /** Upstreams that want to be left alone, by their names, and until when. */
  readonly #resting = new Map<string, number>();

  constructor(services: Services) {
    this.#services = services;
  }

  /** A round, unless one begins: what upstreams are slow to answer does not hold up the next. Never rejects. */
  async tick(): Promise<void> {
    if (this.#isBusy || this.#isOver || !hasVideo(this.#services)) return;
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
    const { ids, next } = await this.#services.book.underWay(mostOfRound, this.#from);
    this.#from = next;
    const now = performance.now();
    const due = ids.filter((id) => now >= (this.#notBefore.get(id) ?? 0));
    if (this.#notBefore.size > 10 * mostOfRound) this.#notBefore.clear();
    for (const id of due) {
      if (this.#isOver || this.#askedOfAll >= mostAtOnce) return;
      await this.#look(id);
    }
  }

  /** Begins to ask about a task; one whose upstream is asked about as many as it may be waits for a later round. */
  async #look(id: string): Promise<void> {
    const { book, keepVideo } = this.#services;
    const booked = await book.find(id);
    const age = booked === null ? watchedMs : Date.now() - booked.task.createdAt;
    if (booked === null || (hasEnded(booked.task) && !this.#mayKeep(booked.task)) || age >= watchedMs) {
      await book.unwatch(id);
      this.#notBefore.delete(id);
      return;
    }
    const isOver = hasEnded(booked.task);
    if (!isOver && !this.#mayAsk(booked.task.upstream.name)) return;
    const pause = Math.min(longestMs, Math.max(shortestMs, age / 10));
    this.#notBefore.set(id, performance.now() + pause);
    if (isOver) {
      // Who wrote its end may not have heard that it did, or was killed before it had the video.
      keepVideo(booked.task);
      return;
    }
    if (await book.claimWatch(id, pause)) void this.#refresh(booked);
  }

  /** Never rejects. */
  async #refresh(booked: BookedTask): Promise<void> {
    const { name } = booked.task.upstream;
    this.#count(name, 1);
    try {
      const asking = askingAbout(this.#services, booked.task);
      await refreshed(this.#services, asking, { ask: (request) => this.#ask(asking, request) }, booked);
    } catch (fault) {
      this.#report(fault);
    } finally {
      this.#count(name, -1);
    }
  }

  #mayKeep({ state }: VideoTask): boolean {
    return state === 'completed' && this.#services.running.snapshot.videos !== null;
  }

  #mayAsk(upstream: string): boolean {
    if ((this.#asked.get(upstream) ?? 0) >= mostOfUpstream) return false;
    const until = this.#resting.get(upstream) ?? 0;
    if (performance.now() < until) return false;
    this.#resting.delete(upstream);
    return true;
  }

  #count(upstream: string, more: number): void {
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

function hasVideo({ running }: Services): boolean {
  for (const { protocols } of running.snapshot.models.values()) if (protocols.has('video')) return true;
  return false;
}
