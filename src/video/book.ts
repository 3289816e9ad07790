import type { KeptVideos } from '../config/types.js';
import { GatewayError } from '../errors.js';
import { compileSchema } from '../schema/compile.js';
import { hasEnded as hasProcessEnded, type ProcessMark, thisProcess } from '../store/process-mark.js';
import type { Store } from '../store/store.js';
import { parseObject } from '../wire/json.js';
import { failedTask, hasEnded } from './advance.js';
import { markOwed } from './charge.js';
import { sweepInTurn } from './content-folder.js';
import { taskRecord, type VideoTask } from './task.js';

/** Collections of the store. Existing stores contain these names. */
const taskCollection = 'tasks';
const submissions = 'submissions';
const underWay = 'tasks-under-way';
const owed = 'tasks-owed';
const requests = 'task-requests';

/** How long an idempotency key identifies a repeated request. */
const requestMs = 24 * 60 * 60 * 1000;
/** Most tasks whose outcome waits to be recorded; records of further ones stay unchanged until they expire. */
const maxDeferred = 10_000;
/** A task that ends late is kept at least this long, so that its charge can be corrected after an outage. */
const owedMs = 24 * 60 * 60 * 1000;
/** Concurrent changes of one task are rare; more conflicts in a row than this mean a fault. */
const maxTries = 20;

/** A task as recorded in the store. */
export interface BookedTask {
  readonly task: VideoTask;
  readonly revision: number;
}

/**
 * Recorded while a task is being submitted, so that a crash in between is detected. The mark is that of the submitting
 * process; records of earlier releases have only its host and process.
 */
export interface Submission extends ProcessMark {
  readonly taskId: string;
  /** Unix milliseconds by its host's clock: its start, and the time by which it has ended in any case. */
  readonly at: number;
  readonly until: number;
  /** How long the store keeps the record, which tells its age. Records of earlier releases do not have it. */
  readonly keptMs?: number;
}

/** A submission without a recorded end. */
interface Unsettled {
  readonly submission: Submission;
  /** Since it was recorded, by the store's clock. That of its host may differ from this host's. */
  readonly ageMs: number;
}

/** A request with an idempotency key, which its client may send again. */
export interface OnceRequest {
  /** Identifies it by its key. */
  readonly mark: string;
  /** Tells it from another request under the same idempotency key. */
  readonly fingerprint: string;
}

/** A page of task ids. */
interface TaskIds {
  readonly ids: readonly string[];
  /** Where the next page begins; null at the end. */
  readonly next: string | null;
}

const pageSize = 200;
const maxUnsettled = 10_000;

/** The video tasks of the store. Every promise rejects with the store's error while the store is unavailable. */
export class TaskBook {
  readonly #store: Store;
  /** Work that `catchUp` has to do, by task id. */
  readonly #deferred = new Map<string, () => Promise<void>>();

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Records a task before it is sent to its upstream. Durable when it resolves.
   * @param request null for a request without an idempotency key
   * @returns the id of the task that the same request created before, or null when the task was recorded
   * @throws {GatewayError} `conflict` when another request has the same idempotency key. The store's error when it is
   * unknown whether the task was recorded; the task is then forgotten, as by `discard`.
   */
  async open(task: VideoTask, submission: Submission, request: OnceRequest | null): Promise<string | null> {
    try {
      return await this.#record(task, submission, request);
    } catch (fault) {
      void this.discard(task.id, request);
      throw fault;
    }
  }

  /**
   * Finds the task that the same request created before.
   * @returns its id, or null
   * @throws {GatewayError} `conflict` when another request has the same idempotency key
   */
  known(request: OnceRequest): Promise<string | null> {
    return knownOf(this.#store, request);
  }

  /** Records that a task still being submitted goes to another upstream. */
  reopen(task: VideoTask): Promise<void> {
    return this.#put(task, () => task);
  }

  /** Records the upstream's answer, unless an earlier try did: the task may have changed since. */
  #recordAnswer(task: VideoTask): Promise<void> {
    const { id } = task.upstream;
    return this.#put(task, (known) => (id !== null && known.upstream.id === id ? known : task));
  }

  async #put(task: VideoTask, change: (known: VideoTask) => VideoTask): Promise<void> {
    const booked = await this.find(task.id);
    if (booked !== null) {
      await this.update(booked, change);
      return;
    }
    const put = hasEnded(task) ? markOwed(task) : task;
    await this.#recordOwed(put);
    await this.#store.create(taskCollection, task.id, writeTask(put), ttlOf(put));
  }

  /** Records how a submission ended: the upstream has answered, or never will. Durable when it resolves. */
  async recordSubmission(task: VideoTask): Promise<void> {
    const isWatched = task.upstream.id !== null && task.state !== 'failed';
    await allEnded([
      this.#recordAnswer(task),
      isWatched && this.#store.create(underWay, task.id, '', ttlOf(task)),
    ]);
    await this.forget(task.id);
  }

  /** Defers `recordSubmission` until `catchUp` finds the store available. */
  recordSubmissionLater(task: VideoTask): void {
    this.#defer(task.id, () => this.recordSubmission(task));
  }

  /**
   * Forgets a task that no upstream has accepted; the same request may then create another. While the store is
   * unavailable, this is deferred to `catchUp`.
   */
  async discard(taskId: string, request: OnceRequest | null): Promise<void> {
    const work = () => this.#remove(taskId, request);
    try {
      await work();
    } catch {
      this.#defer(taskId, work);
    }
  }

  /** Does the deferred work. Never rejects. */
  async catchUp(): Promise<void> {
    for (const [name, work] of [...this.#deferred]) {
      try {
        await work();
      } catch {
        // The rest would fail, too.
        return;
      }
      if (this.#deferred.get(name) === work) this.#deferred.delete(name);
    }
  }

  async find(id: string): Promise<BookedTask | null> {
    const record = await this.#store.get(taskCollection, id);
    const task = record === null ? null : readTask(record.value);
    return record === null || task === null ? null : { task, revision: record.revision };
  }

  /**
   * Changes a task. `change` is called again if another process changed the task in between.
   * @returns the changed task, or null if it no longer exists
   */
  async update(booked: BookedTask, change: (task: VideoTask) => VideoTask): Promise<VideoTask | null> {
    let current: BookedTask | null = booked;
    for (let tries = 0; current !== null && tries < maxTries; tries++) {
      const { task, revision }: BookedTask = current;
      const next = change(task);
      if (next === task) return task;
      const changed = hasEnded(next) && !hasEnded(task) ? markOwed(next) : next;
      if (task.isOwed === undefined) await this.#recordOwed(changed);
      const text = writeTask(changed);
      if (await this.#store.replace(taskCollection, task.id, text, revision, ttlOf(changed))) return changed;
      current = await this.find(task.id);
    }
    if (current === null) return null;
    throw new Error(`the task ${current.task.id} is changed all the time`);
  }

  /**
   * Tasks that an upstream has accepted and that have not ended, or only just, or whose video is still to be kept.
   * @param limit most tasks of a page
   * @param from `next` of the previous page; null for the first
   */
  underWay(limit: number, from: string | null): Promise<TaskIds> {
    return this.#ids(underWay, limit, from);
  }

  /** Ended tasks whose charge is still to be corrected, and some whose charge was corrected. Pages as above. */
  owed(limit: number, from: string | null): Promise<TaskIds> {
    return this.#ids(owed, limit, from);
  }

  async #ids(collection: string, limit: number, from: string | null): Promise<TaskIds> {
    const { records, next } = await this.#store.list(collection, limit, from);
    return { ids: records.map(({ id }) => id), next };
  }

  /** Removes a task from those that `underWay` lists. */
  unwatch(id: string): Promise<void> {
    return this.#store.remove(underWay, id);
  }

  /**
   * Claims work on a task across all processes and hosts.
   * @param work to poll its upstream, to renew its video's URL, to watch it, to keep its video, or to correct its charge
   * @returns true for one caller in `ms` milliseconds, which may then do the work
   */
  claim(work: 'poll' | 'renew' | 'watch' | 'keep' | 'owed', id: string, ms: number): Promise<boolean> {
    return this.#store.claim(`${work}:${id}`, ms);
  }

  /** Sweeps the folder of kept videos if it is this process's turn: see `sweepInTurn`. */
  sweepFolder(kept: KeptVideos): Promise<void> {
    return sweepInTurn(this.#store, kept);
  }

  /** Records that a task's charge is correct. @param booked null for a task that no longer exists */
  async clearOwed(id: string, booked: BookedTask | null): Promise<void> {
    if (booked !== null)
      await this.update(booked, (task) => {
        if (task.isOwed === undefined) return task;
        const { isOwed: _, ...cleared } = task;
        return cleared;
      });
    await this.#store.remove(owed, id);
  }

  /** Records the debt before the task's end: if nobody polls the task any more, only this record leads to it. */
  async #recordOwed(task: VideoTask): Promise<void> {
    if (task.isOwed !== undefined) await this.#store.create(owed, task.id, '', ttlOf(task));
  }

  /** Submissions without a recorded end. */
  async unsettled(): Promise<readonly Unsettled[]> {
    const found: Unsettled[] = [];
    let from: string | null = null;
    do {
      const page = await this.#store.list(submissions, pageSize, from);
      for (const { value, leftMs } of page.records)
        found.push(unsettledOf(JSON.parse(value) as Submission, leftMs));
      from = page.next;
    } while (from !== null && found.length < maxUnsettled);
    return found;
  }

  /** Removes a submission whose end was recorded. */
  forget(taskId: string): Promise<void> {
    return this.#store.remove(submissions, taskId);
  }

  /** @param name name of the work; replaces earlier work of the same name */
  #defer(name: string, work: () => Promise<void>): void {
    if (this.#deferred.size < maxDeferred) this.#deferred.set(name, work);
  }

  async #record(
    task: VideoTask,
    submission: Submission,
    request: OnceRequest | null,
  ): Promise<string | null> {
    const keptMs = ttlOf(task);
    await allEnded([
      this.#store.create(submissions, task.id, JSON.stringify({ ...submission, keptMs }), keptMs),
      this.#store.create(taskCollection, task.id, writeTask(task), keptMs),
    ]);
    // Last, so that a request never names a task that a crash kept from being recorded.
    const earlier = request === null ? null : await firstWith(this.#store, request, task.id);
    if (earlier !== null) await this.#remove(task.id, null);
    return earlier;
  }

  async #remove(taskId: string, request: OnceRequest | null): Promise<void> {
    const store = this.#store;
    // Only if it names this task: the same request may have created another task before.
    if (request !== null && (await store.get(requests, request.mark))?.value === recordOf(request, taskId))
      await store.remove(requests, request.mark);
    await store.remove(taskCollection, taskId);
    await store.remove(submissions, taskId);
  }
}

/**
 * Waits until all writes have ended, failed ones too, so that what follows (the task's removal, another try) never runs
 * beside one of them.
 * @throws what the first of those that failed was rejected with
 */
async function allEnded(writes: readonly unknown[]): Promise<void> {
  for (const write of await Promise.allSettled(writes)) if (write.status === 'rejected') throw write.reason;
}

/**
 * Assigns a request to a task, unless an earlier task has it.
 * @returns the id of the earlier task, or null when the request is now `taskId`'s
 * @throws {GatewayError} `conflict` when another request has the same idempotency key
 */
async function firstWith(store: Store, request: OnceRequest, taskId: string): Promise<string | null> {
  for (let tries = 0; tries < maxTries; tries++) {
    if (await store.create(requests, request.mark, recordOf(request, taskId), requestMs)) return null;
    const known = await knownOf(store, request);
    // Otherwise it was removed just now: try again.
    if (known !== null) return known;
  }
  throw new Error('a request is forgotten and sent anew all the time');
}

/**
 * @returns the id of the task that has this request, or null
 * @throws {GatewayError} `conflict` when another request has the same idempotency key
 */
async function knownOf(store: Store, request: OnceRequest): Promise<string | null> {
  const known = await store.get(requests, request.mark);
  if (known === null) return null;
  const [id = '', fingerprint] = known.value.split(' ');
  if (fingerprint === request.fingerprint) return id;
  throw new GatewayError(
    'conflict',
    'This idempotency key was used for a different request: use a new key for each request.',
    { unrepeatable: true },
  );
}

function recordOf({ fingerprint }: OnceRequest, taskId: string): string {
  return `${taskId} ${fingerprint}`;
}

function ttlOf(task: VideoTask): number {
  return Math.max(task.isOwed === undefined ? 1 : owedMs, task.expiresAt - Date.now());
}

const record = compileSchema(taskRecord);

/** Serializes a task for the store. */
export function writeTask(task: VideoTask): string {
  return JSON.stringify(task);
}

/** Parses the output of `writeTask`. @returns null for any other text, such as a record of another version */
export function readTask(text: string): VideoTask | null {
  const value: unknown = parseObject(text);
  return record.check(value) ? (value as VideoTask) : null;
}

interface TaskPage {
  readonly tasks: readonly VideoTask[];
  /** Start of the next page; null at the end. */
  readonly next: string | null;
}

/**
 * Lists the tasks of all keys, latest expiry first; that is newest first if all tasks are kept for the same number of
 * days. Damaged records and those of another version are skipped, so a page may hold fewer tasks than `limit`: only
 * `next` shows the end.
 * @param limit most tasks of the page
 * @param from `next` of the previous page; null for the first
 * @throws the store's error
 */
export async function listTasks(
  store: Pick<Store, 'list'>,
  limit: number,
  from: string | null,
): Promise<TaskPage> {
  const { records, next } = await store.list(taskCollection, limit, from, 'last-to-go');
  return { tasks: records.flatMap(({ value }) => readTask(value) ?? []), next };
}

/** A submission that was cut off; whether the upstream has created the task is unknown. */
interface Interrupted {
  readonly submission: Submission;
  /** The task in its current state. */
  readonly task: VideoTask;
}

/**
 * The record of a submission by this process.
 * @param longestMs bound of its duration
 */
export function submissionHere(taskId: string, longestMs: number): Submission {
  const at = Date.now();
  return { taskId, ...thisProcess(), at, until: at + longestMs };
}

/**
 * Finds submissions whose process ended before it recorded their end, and ends their tasks as failed. Nothing is sent
 * again: the upstream may have created the video, and would create a second one.
 * @returns the submissions found, each once across all processes
 */
export async function endInterrupted(book: TaskBook): Promise<readonly Interrupted[]> {
  const found: Interrupted[] = [];
  for (const unsettled of await book.unsettled()) {
    const { submission } = unsettled;
    if (!wasInterrupted(unsettled)) continue;
    const booked = await book.find(submission.taskId);
    // The task is recorded before the call to the upstream. Without it no call was sent, or no upstream accepted it.
    let ended = false;
    const task =
      booked === null
        ? null
        : await book.update(booked, (current) => {
            ended = current.state === 'submitting';
            return ended ? failedTask(current, interruption, Date.now()) : current;
          });
    // If the task's end was recorded but the submission's was not, the task may not be watched yet.
    if (task === null || task.upstream.id === null) await book.forget(submission.taskId);
    else await book.recordSubmission(task);
    if (ended && task !== null) found.push({ submission, task });
  }
  return found;
}

const interruption = {
  code: 'submission_interrupted',
  message:
    'The gateway was stopped while it submitted this task, and cannot know whether the upstream has made it. ' +
    'Check there before you submit it again.',
};

/** @param leftMs until the store removes the record */
function unsettledOf(submission: Submission, leftMs: number): Unsettled {
  const { keptMs, at } = submission;
  return { submission, ageMs: keptMs === undefined ? Date.now() - at : keptMs - leftMs };
}

function wasInterrupted({ submission, ageMs }: Unsettled): boolean {
  const { at, until } = submission;
  return ageMs > until - at || hasProcessEnded(submission, Date.now() - ageMs) === true;
}
