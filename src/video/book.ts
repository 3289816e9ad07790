import type { KeptVideos } from '../config/types.js';
import { GatewayError } from '../errors.js';
import { compileSchema } from '../schema/compile.js';
import type { Store } from '../store/store.js';
import { parseObject } from '../wire/json.js';
import { hasEnded } from './advance.js';
import { owedWithEnd } from './charge.js';
import { sweepInTurn } from './content-folder.js';
import { taskRecord, type VideoTask } from './task.js';

/** Collections of the store. Their names are in every store that is in use. */
const taskCollection = 'tasks';
const submissions = 'submissions';
const underWay = 'tasks-under-way';
const owed = 'tasks-owed';
const requests = 'task-requests';

/** A client that sends a request anew under the same idempotency key does so within this time. */
const requestMs = 24 * 60 * 60 * 1000;
/** Tasks whose end is still to be noted; of more than these the records stay as they are until they expire. */
const mostLeft = 10_000;
/** A task whose end comes late is kept so long, that its charge can still be put right after an outage. */
const owedMs = 24 * 60 * 60 * 1000;
/** Changes of one task meet each other rarely; more in a row than this means that something is wrong. */
const mostTries = 20;

/** A task as it stands in the store. */
export interface BookedTask {
  readonly task: VideoTask;
  readonly revision: number;
}

/** What is noted while an upstream is asked for a task, so that a crash in between is found. */
export interface Submission {
  readonly taskId: string;
  /** Host and process that asks. */
  readonly host: string;
  readonly process: number;
  /** Unix milliseconds: when it began, and when it has ended in any case. */
  readonly at: number;
  readonly until: number;
}

/** A request that its client may send again. */
export interface OnceRequest {
  /** What it is known by. */
  readonly mark: string;
  /** Tells it from another request that is called the same. */
  readonly fingerprint: string;
}

/** A page of the ids of tasks. */
interface TaskIds {
  readonly ids: readonly string[];
  /** Where the next page begins; null at the end. */
  readonly next: string | null;
}

const pageSize = 200;
const mostUnsettled = 10_000;

/** The video tasks of the store. Every promise rejects with the store's error when it cannot be reached. */
export class TaskBook {
  readonly #store: Store;
  /** What is still to be done, by the ids of the tasks. */
  readonly #left = new Map<string, () => Promise<void>>();

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Notes a task before its upstream is asked. Durable when it resolves.
   * @param request null for one that is not sent again
   * @returns the id of the task that the same request has made before, or null when the task was noted
   * @throws {GatewayError} `conflict` when another request is called the same; what the store throws when nobody knows
   * whether the task was noted, which is forgotten then, as by `discard`
   */
  async open(task: VideoTask, submission: Submission, request: OnceRequest | null): Promise<string | null> {
    try {
      return await this.#note(task, submission, request);
    } catch (fault) {
      void this.discard(task.id, request);
      throw fault;
    }
  }

  /**
   * Finds the task that the same request has made before.
   * @returns its id, or null
   * @throws {GatewayError} `conflict` when another request is called the same
   */
  known(request: OnceRequest): Promise<string | null> {
    return knownOf(this.#store, request);
  }

  /** Another upstream is asked for a task that is still being submitted. */
  reopen(task: VideoTask): Promise<void> {
    return this.#put(task, () => task);
  }

  /** What an earlier try has noted already may have gone on since. */
  #noteAnswer(task: VideoTask): Promise<void> {
    const { id } = task.upstream;
    return this.#put(task, (known) => (id !== null && known.upstream.id === id ? known : task));
  }

  async #put(task: VideoTask, change: (known: VideoTask) => VideoTask): Promise<void> {
    const booked = await this.find(task.id);
    if (booked !== null) {
      await this.update(booked, change);
      return;
    }
    const put = hasEnded(task) ? owedWithEnd(task) : task;
    await this.#noteOwed(put);
    await this.#store.create(taskCollection, task.id, writeTask(put), ttlOf(put));
  }

  /** The task's upstream has answered, or will not. Durable when it resolves. */
  async settle(task: VideoTask): Promise<void> {
    const isWatched = task.upstream.id !== null && task.state !== 'failed';
    await Promise.all([
      this.#noteAnswer(task),
      isWatched && this.#store.create(underWay, task.id, '', ttlOf(task)),
    ]);
    await this.forget(task.id);
  }

  /** The same, once the store can be reached again: `catchUp` does it. */
  settleLater(task: VideoTask): void {
    this.#later(task.id, () => this.settle(task));
  }

  /**
   * Forgets a task that no upstream has taken; the same request may then make another. Where the store cannot be
   * reached, `catchUp` makes up for it.
   */
  async discard(taskId: string, request: OnceRequest | null): Promise<void> {
    const work = () => this.#remove(taskId, request);
    try {
      await work();
    } catch {
      this.#later(taskId, work);
    }
  }

  /** Does what could not be done yet. Never rejects. */
  async catchUp(): Promise<void> {
    for (const [name, work] of [...this.#left]) {
      try {
        await work();
      } catch {
        // The others would fare no better now.
        return;
      }
      if (this.#left.get(name) === work) this.#left.delete(name);
    }
  }

  async find(id: string): Promise<BookedTask | null> {
    const record = await this.#store.get(taskCollection, id);
    const task = record === null ? null : readTask(record.value);
    return record === null || task === null ? null : { task, revision: record.revision };
  }

  /**
   * Changes a task as `change` says, which may be called again when somebody else changed it in between.
   * @returns the task as it is then, or null when it is gone
   */
  async update(booked: BookedTask, change: (task: VideoTask) => VideoTask): Promise<VideoTask | null> {
    let current: BookedTask | null = booked;
    for (let tries = 0; current !== null && tries < mostTries; tries++) {
      const { task, revision }: BookedTask = current;
      const next = change(task);
      if (next === task) return task;
      const changed = hasEnded(next) && !hasEnded(task) ? owedWithEnd(next) : next;
      if (task.isOwed === undefined) await this.#noteOwed(changed);
      const text = writeTask(changed);
      if (await this.#store.replace(taskCollection, task.id, text, revision, ttlOf(changed))) return changed;
      current = await this.find(task.id);
    }
    if (current === null) return null;
    throw new Error(`the task ${current.task.id} is changed all the time`);
  }

  /**
   * Tasks that an upstream has taken and that have not ended, or only just, or whose video is yet to be kept.
   * @param limit of tasks on a page
   * @param from `next` of the page before; null for the first one
   */
  underWay(limit: number, from: string | null): Promise<TaskIds> {
    return this.#ids(underWay, limit, from);
  }

  /** Tasks that have ended and whose charge is yet to be put right, and some of which that was done. Pages as above. */
  owed(limit: number, from: string | null): Promise<TaskIds> {
    return this.#ids(owed, limit, from);
  }

  async #ids(collection: string, limit: number, from: string | null): Promise<TaskIds> {
    const { records, next } = await this.#store.list(collection, limit, from);
    return { ids: records.map(({ id }) => id), next };
  }

  /** It is not to be found among those any more. */
  unwatch(id: string): Promise<void> {
    return this.#store.remove(underWay, id);
  }

  /**
   * @param work to ask its upstream for a client, or where its video is now, to watch it, to keep its video, or to put its charge right
   * @returns true for one caller in `ms` milliseconds, of all processes and hosts: it may do that
   */
  claim(work: 'poll' | 'renew' | 'watch' | 'keep' | 'owed', id: string, ms: number): Promise<boolean> {
    return this.#store.claim(`${work}:${id}`, ms);
  }

  /** Sweeps the folder of kept videos, where it is this process's turn: see `sweepInTurn`. */
  sweepFolder(kept: KeptVideos): Promise<void> {
    return sweepInTurn(this.#store, kept);
  }

  /** The task's charge was put right, or needs nothing. @param booked null for a task that is gone */
  async clearOwed(id: string, booked: BookedTask | null): Promise<void> {
    if (booked !== null)
      await this.update(booked, (task) => {
        if (task.isOwed === undefined) return task;
        const { isOwed: _, ...cleared } = task;
        return cleared;
      });
    await this.#store.remove(owed, id);
  }

  /** Before the task's end is written: of one that ends while nobody looks at it any more, this alone is found. */
  async #noteOwed(task: VideoTask): Promise<void> {
    if (task.isOwed !== undefined) await this.#store.create(owed, task.id, '', ttlOf(task));
  }

  /** Submissions of which no end was noted. */
  async unsettled(): Promise<readonly Submission[]> {
    const found: Submission[] = [];
    let from: string | null = null;
    do {
      const page = await this.#store.list(submissions, pageSize, from);
      for (const { value } of page.records) found.push(JSON.parse(value) as Submission);
      from = page.next;
    } while (from !== null && found.length < mostUnsettled);
    return found;
  }

  /** Forgets a submission whose end was told. */
  forget(taskId: string): Promise<void> {
    return this.#store.remove(submissions, taskId);
  }

  /** @param name of the work: another one of that name takes its place */
  #later(name: string, work: () => Promise<void>): void {
    if (this.#left.size < mostLeft) this.#left.set(name, work);
  }

  async #note(task: VideoTask, submission: Submission, request: OnceRequest | null): Promise<string | null> {
    const noted = await Promise.allSettled([
      this.#store.create(submissions, task.id, JSON.stringify(submission), ttlOf(task)),
      this.#store.create(taskCollection, task.id, writeTask(task), ttlOf(task)),
    ]);
    // Whoever forgets the task then meets neither of them under way.
    for (const each of noted) if (each.status === 'rejected') throw each.reason;
    // Last, so that a request never names a task that a crash has kept from being noted.
    const earlier = request === null ? null : await firstWith(this.#store, request, task.id);
    if (earlier !== null) await this.#remove(task.id, null);
    return earlier;
  }

  async #remove(taskId: string, request: OnceRequest | null): Promise<void> {
    const store = this.#store;
    // Only its own: the same request may have made another task before.
    if (request !== null && (await store.get(requests, request.mark))?.value === recordOf(request, taskId))
      await store.remove(requests, request.mark);
    await store.remove(taskCollection, taskId);
    await store.remove(submissions, taskId);
  }
}

/**
 * @returns the id of the task that has this request already, or null when it is now `taskId`'s
 * @throws {GatewayError} `conflict` when another request is called the same
 */
async function firstWith(store: Store, request: OnceRequest, taskId: string): Promise<string | null> {
  for (let tries = 0; tries < mostTries; tries++) {
    if (await store.create(requests, request.mark, recordOf(request, taskId), requestMs)) return null;
    const known = await knownOf(store, request);
    // Else it was forgotten just now.
    if (known !== null) return known;
  }
  throw new Error('a request is forgotten and sent anew all the time');
}

/**
 * @returns the id of the task that has this request, or null
 * @throws {GatewayError} `conflict` when another request is called the same
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

/** The task as it stands in the store. */
export function writeTask(task: VideoTask): string {
  return JSON.stringify(task);
}

/** Reads what `writeTask` wrote. @returns null for any other text, such as a record of another version */
export function readTask(text: string): VideoTask | null {
  const value: unknown = parseObject(text);
  return record.check(value) ? (value as VideoTask) : null;
}

interface TaskPage {
  readonly tasks: readonly VideoTask[];
  /** Where the next page begins; null at the end. */
  readonly next: string | null;
}

/**
 * Lists the tasks of all keys, those that are kept longest first: the newest ones first, as long as tasks are kept for
 * the same number of days. Records that are damaged or of another version are passed over, so a page may hold fewer
 * tasks than were asked for: `next` alone tells the end.
 * @param limit of tasks on the page
 * @param from `next` of the page before; null for the first one
 * @throws what the store throws
 */
export async function listTasks(
  store: Pick<Store, 'list'>,
  limit: number,
  from: string | null,
): Promise<TaskPage> {
  const { records, next } = await store.list(taskCollection, limit, from, 'last-to-go');
  return { tasks: records.flatMap(({ value }) => readTask(value) ?? []), next };
}
