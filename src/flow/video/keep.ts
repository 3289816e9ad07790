import { performance } from 'node:perf_hooks';
import type { Logger } from 'pino';
import { failureError } from '../../attempts/reported-error.js';
import { GatewayError } from '../../errors.js';
import type { Refusal } from '../../upstream/remote-url.js';
import type { ResponseHead, UpstreamFailure } from '../../upstream/types.js';
import { beginKept, isKept, isKeptType, type PartFile, sweepKept } from '../../video/content-folder.js';
import { type VideoTask, videoVariant } from '../../video/task.js';
import { noLines } from '../../wire/head.js';
import type { Services } from '../services.js';
import { collectAlone, gatewaySender } from '../upstream/collect.js';
import {
  ContentFetch,
  type ContentOwner,
  type ContentSource,
  mediaType,
  problemOf,
  sourceOf,
  unreachedError,
} from './content-source.js';
import { renewedUrl } from './poll.js';

/** Videos that a worker fetches concurrently, in total and per host: a host that hangs delays no other. */
const maxConcurrent = 64;
const maxPerHost = 2;
/** Videos of a host that may wait for a fetch; the watch over tasks offers the others again. */
const maxWaitingPerHost = 50;
/**
 * A claimed fetch ends or is given up within this time, and no other process starts it. Afterwards a fetch that was cut
 * off starts again.
 */
const claimMs = 10 * 60 * 1000;
/** Some upstreams report a video as complete a moment before it can be fetched. */
const maxTries = 3;
const retryDelayMs = 2000;
const sweepEveryMs = 60_000;

/** A task whose video is to be fetched and kept. */
interface QueuedVideo {
  readonly task: VideoTask;
  /** Host of the video, with its port. */
  readonly host: string;
}

/** Fetches the video of each completed task once, and keeps the folder within its bounds. */
export class VideoKeeper {
  readonly #services: Services;
  readonly #log: Logger;
  readonly #longestMs: number;
  readonly #waiting: QueuedVideo[] = [];
  /** Ids of the tasks that wait or are in flight. */
  readonly #pendingIds = new Set<string>();
  readonly #cancels = new Set<() => void>();
  readonly #timer: NodeJS.Timeout;
  readonly #inFlight = new Set<QueuedVideo>();
  #isOver = false;

  /** @param longestMs time within which a task's video is kept or given up */
  constructor(services: Services, log: Logger, longestMs = claimMs) {
    this.#services = services;
    this.#log = log;
    this.#longestMs = longestMs;
    this.#timer = setInterval(() => void this.#sweepInTurn(), sweepEveryMs).unref();
  }

  /**
   * Queues the video of a completed task, if the config keeps videos and no other process has claimed it. A failure is
   * logged. If too many videos of its host wait, this is a no-op, and the caller offers the task again later.
   */
  keep(task: VideoTask): void {
    if (this.#services.running.snapshot.videos === null || this.#isOver || this.#pendingIds.has(task.id))
      return;
    const host = hostOf(this.#services, task);
    if (countOf(this.#waiting, host) >= maxWaitingPerHost) return;
    this.#pendingIds.add(task.id);
    this.#waiting.push({ task, host });
    this.#start();
  }

  /** Cancels all fetches. */
  close(): void {
    this.#isOver = true;
    clearInterval(this.#timer);
    for (const cancel of this.#cancels) cancel();
  }

  #start(): void {
    while (this.#inFlight.size < maxConcurrent && !this.#isOver) {
      const next = this.#waiting.findIndex(({ host }) => countOf(this.#inFlight, host) < maxPerHost);
      if (next === -1) return;
      for (const kept of this.#waiting.splice(next, 1)) {
        this.#inFlight.add(kept);
        void this.#keep(kept.task).finally(() => {
          this.#inFlight.delete(kept);
          this.#pendingIds.delete(kept.task.id);
          this.#start();
        });
      }
    }
  }

  /** Never rejects. */
  async #keep(task: VideoTask): Promise<void> {
    const { book } = this.#services;
    const until = performance.now() + this.#longestMs;
    try {
      if (!(await book.claim('keep', task.id, this.#longestMs))) return;
      await this.#tryToKeep(task, until);
      // Otherwise another process, or the next one on this host, finds the task.
      if (!this.#isOver) await book.unwatch(task.id);
    } catch (fault) {
      // The store is unavailable, which its other users report. The video is fetched once the store is back.
      if (!(fault instanceof GatewayError)) this.#services.reportFault('promise', fault, null);
    }
  }

  /** @throws {GatewayError} of the store */
  async #tryToKeep(task: VideoTask, until: number): Promise<void> {
    let url: string | null = null;
    for (let left = maxTries - 1; ; left--) {
      try {
        await this.#fetch(task, url, until - performance.now());
        return;
      } catch (error) {
        if (this.#isOver) return;
        const isLate = performance.now() + retryDelayMs >= until;
        if (left === 0 || isLate || !(error instanceof GatewayError)) {
          this.#log.warn({ task: task.id, err: error }, 'could not keep a video');
          return;
        }
      }
      await new Promise((resolve) => setTimeout(resolve, retryDelayMs).unref());
      if (this.#isOver) return;
      url = await this.#renewedUrl(task, url);
    }
  }

  /**
   * Requests a new URL: a signed one may have expired while the video waited.
   * @param known the URL that failed, or null for the task's own
   * @returns the new URL, or null if there is none
   */
  #renewedUrl(task: VideoTask, known: string | null): Promise<string | null> {
    const url = known ?? task.result?.url ?? null;
    if (url === null) return Promise.resolve(null);
    const sender = gatewaySender(this.#services, task.model);
    return renewedUrl(this.#services, sender, { taskId: task.id, url }, (request) =>
      collectAlone(this.#services, sender, request, this.#cancels),
    );
  }

  /**
   * @param url replaces the URL in the task, or null
   * @param longestMs timeout of each answer
   * @throws {GatewayError} when the upstream fails; any other error when the folder does
   */
  async #fetch(task: VideoTask, url: string | null, longestMs: number): Promise<void> {
    const { videos } = this.#services.running.snapshot;
    if (videos === null || (await isKept(videos, task.id))) return;
    const known = sourceOf(this.#services, task, videoVariant(''));
    const source = known.kind === 'url' && url !== null ? { ...known, url } : known;
    const part = await beginKept(videos, task.id);
    const fetch = new VideoFetch(this.#services, {
      task,
      source,
      part,
      fileBytes: videos.fileBytes,
      longestMs,
    });
    const cancel = (): void => fetch.cancel();
    this.#cancels.add(cancel);
    try {
      if (this.#isOver) return;
      await part.finish(await fetch.run(), task.createdAt);
    } finally {
      this.#cancels.delete(cancel);
      await part.discard();
    }
    await this.#finishSweep(sweepKept(videos));
  }

  /** Never rejects. */
  async #sweepInTurn(): Promise<void> {
    const { book, running } = this.#services;
    const { videos } = running.snapshot;
    if (videos !== null) await this.#finishSweep(book.sweepFolder(videos));
  }

  /** Waits for a sweep and logs its failure. Never rejects. */
  async #finishSweep(sweep: Promise<void>): Promise<void> {
    try {
      await sweep;
    } catch (error) {
      // The store is unavailable, which its other users report.
      if (error instanceof GatewayError) return;
      this.#log.warn({ err: error }, 'could not clean up the folder of kept videos');
    }
  }
}

function countOf(videos: Iterable<QueuedVideo>, host: string): number {
  let count = 0;
  for (const video of videos) if (video.host === host) count++;
  return count;
}

/** @returns the host of a task's video, or the upstream's name when there is nothing to fetch */
function hostOf(services: Services, task: VideoTask): string {
  try {
    const source = sourceOf(services, task, videoVariant(''));
    return source.kind === 'path' ? source.upstream.origin.authority : new URL(source.url).host;
  } catch {
    return task.upstream.name;
  }
}

interface Wanted {
  readonly task: VideoTask;
  readonly source: ContentSource;
  readonly part: PartFile;
  readonly fileBytes: number;
  readonly longestMs: number;
}

/** Fetches one file no faster than it can be written, with one chunk of it in memory. */
class VideoFetch implements ContentOwner {
  readonly #wanted: Wanted;
  readonly #fetch: ContentFetch;
  /** Head of the answer that carries the file; null before it arrives. */
  #head: ResponseHead | null = null;
  #bytes = 0;
  #written: Promise<void> = Promise.resolve();
  #done: (contentType: string) => void = () => {};
  #fail: (fault: unknown) => void = () => {};
  #isOver = false;

  constructor(services: Services, wanted: Wanted) {
    const { source, task, longestMs } = wanted;
    this.#wanted = wanted;
    const sender = gatewaySender(services, task.model);
    this.#fetch = new ContentFetch(services, { sender, source, lines: noLines, totalMs: longestMs }, this);
  }

  /** @returns the content type; rejects with a `GatewayError` if the fetch fails, with another error if a write does */
  run(): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#done = resolve;
      this.#fail = reject;
      this.#fetch.start();
    });
  }

  cancel(): void {
    this.#end(new GatewayError('upstream_error', 'The download was given up.'));
  }

  onHead(head: ResponseHead): void {
    const problem = problemOf(head, null);
    if (problem !== null) this.#end(problem);
    else if (head.contentLength > this.#wanted.fileBytes)
      this.#end(
        new RangeError(
          `it has ${head.contentLength} bytes, and one of the folder may have ${this.#wanted.fileBytes}`,
        ),
      );
    else if (head.contentLength === -1 && head.get('transfer-encoding') === null)
      this.#end(new RangeError('its server does not say where it ends, so half of it looks like all'));
    else if (mediaType.test(head.contentType ?? '') && !isKeptType(head.contentType ?? ''))
      this.#end(new RangeError(`the folder has no name for what is ${head.contentType}`));
    else this.#head = head;
  }

  onData(chunk: Buffer): boolean {
    if (this.#isOver || this.#head === null) return true;
    this.#bytes += chunk.length;
    this.#written = this.#wanted.part.write(Buffer.from(chunk));
    this.#written.then(
      () => this.#fetch.resume(),
      (fault: unknown) => this.#end(fault),
    );
    return false;
  }

  onEnd(): void {
    const head = this.#head;
    if (this.#isOver || head === null) return;
    this.#written.then(
      () => {
        this.#isOver = true;
        if (this.#bytes > 0) this.#done(head.contentType ?? '');
        else this.#fail(new GatewayError('upstream_error', 'The upstream sent an empty video.'));
      },
      (fault: unknown) => this.#end(fault),
    );
  }

  onFailure(failure: UpstreamFailure): void {
    this.#end(failureError(failure));
  }

  onUnreached(error: GatewayError | Refusal): void {
    this.#end(unreachedError(error));
  }

  onUnfit(error: GatewayError): void {
    this.#end(error);
  }

  onFault(_where: string, fault: unknown): void {
    this.#end(fault);
  }

  #end(fault: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#fetch.cancel();
    this.#fail(fault);
  }
}
