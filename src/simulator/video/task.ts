import { createHash, randomBytes } from 'node:crypto';
import { type Directive, laterFaults, type PromptWishes } from '../faults/directives.js';
import { packName, unpackName, type VideoResult } from '../media/result.js';

const maxNames = 10_000;

/** The counts and names of tasks of a simulator; the tasks themselves are encoded in their ids. */
export interface VideoBook {
  /** Default pace of tasks. */
  readonly queuedMs: number;
  readonly runningMs: number;
  /** Number of tasks created. */
  made: number;
  /** Number of polls. */
  polls: number;
  /** Tasks by idempotency key, so that a repeated request creates no second one. */
  readonly byKey: Map<string, KeyedTask>;
  /** Ids of tasks by the clients' own ids. */
  readonly byExternalId: Map<string, string>;
}

interface KeyedTask {
  readonly id: string;
  counted: boolean;
}

/** Creates an empty book. */
export function newVideoBook(pace: { readonly queuedMs: number; readonly runningMs: number }): VideoBook {
  return { ...pace, made: 0, polls: 0, byKey: new Map(), byExternalId: new Map() };
}

/** The task of an idempotency key, created by the first request with the key. */
export function taskOfKey(book: VideoBook, key: string, make: () => string): KeyedTask {
  const known = book.byKey.get(key);
  if (known !== undefined) {
    return known;
  }
  const made = { id: make(), counted: false };
  remember(book.byKey, key, made);
  return made;
}

/** Records the client's own id of a task. */
export function rememberExternalId(book: VideoBook, externalId: string, id: string): void {
  remember(book.byExternalId, externalId, id);
}

function remember<Value>(map: Map<string, Value>, name: string, value: Value): void {
  map.set(name, value);
  if (map.size > maxNames) {
    // A map iterates in insertion order.
    map.delete(map.keys().next().value ?? '');
  }
}

/** The formats of tasks; a task of one format is unknown in the others. */
type VideoFormat = 'compat' | 'generic' | 'vendork' | 'vendorj';

/** A task. It is encoded in its id, so that the simulator stores none and loses none. */
export interface VideoTask {
  readonly id: string;
  readonly format: VideoFormat;
  readonly operation: 'text' | 'image';
  readonly model: string;
  /** Unix milliseconds. */
  readonly createdAt: number;
  readonly video: VideoResult;
  /** The requested seed, or one derived from the request. */
  readonly seed: number;
  readonly queuedMs: number;
  readonly runningMs: number;
  /** Reason for which it will fail, or null. */
  readonly failure: string | null;
  /** HTTP status of answers about its failure, for formats with several; or null. */
  readonly failureStatus: number | null;
  /** Faults of answers about it and of its content, in the form of the header `x-simulator-fault`. */
  readonly pollFaults: string;
  readonly contentFaults: string;
  /** The client's own id of it, or null. */
  readonly externalId: string | null;
}

/** The status of a task at a time. */
export interface VideoStatus {
  readonly state: 'queued' | 'in_progress' | 'completed' | 'failed';
  /** Percent. */
  readonly progress: number;
  /** Unix milliseconds; null before the end. */
  readonly endedAt: number | null;
}

/** A valid request for a task. */
export interface VideoWish {
  readonly format: VideoFormat;
  readonly operation: 'text' | 'image';
  readonly model: string;
  readonly wishes: PromptWishes;
  readonly width: number;
  readonly height: number;
  readonly seconds: number;
  readonly fps: number;
  /** Null for any seed. */
  readonly seed: number | null;
  /** Identifiers of the images from which the video is made. */
  readonly images: readonly (string | null)[];
  readonly externalId: string | null;
}

const prefixes: Readonly<Record<VideoFormat, string>> = {
  compat: 'video_',
  generic: 'task_',
  vendork: 'k',
  vendorj: 'j',
};

type Packed = readonly [
  nonce: string,
  operation: 'text' | 'image',
  model: string,
  createdAt: number,
  video: readonly [
    width: number,
    height: number,
    seconds: number,
    fps: number,
    seed: string,
    bytes: number | null,
  ],
  seed: number,
  queuedMs: number,
  runningMs: number,
  failure: string | null,
  failureStatus: number | null,
  pollFaults: string,
  contentFaults: string,
  externalId: string | null,
];

/** Creates a task that starts now. */
export function makeTask(wish: VideoWish, book: VideoBook): VideoTask {
  const { format, operation, model, wishes, width, height, seconds, fps, images, externalId } = wish;
  const number = (name: string): number | null => {
    const text = wishes.video.get(name);
    return text === undefined ? null : Number(text);
  };
  const digest = createHash('sha256')
    .update(JSON.stringify([wishes.rest, operation, images, wish.seed]))
    .digest();
  const packed: Packed = [
    randomBytes(6).toString('hex'),
    operation,
    model,
    Date.now(),
    [width, height, seconds, fps, digest.toString('hex', 0, 6), number('bytes')],
    wish.seed ?? digest.readUInt32BE(6) >>> 1,
    number('queued') ?? book.queuedMs,
    number('running') ?? book.runningMs,
    wishes.video.get('fail') ?? null,
    number('http'),
    wishes.poll,
    wishes.content,
    externalId,
  ];
  return unpacked(prefixes[format] + packName('task', packed), format, packed);
}

/** The task of an id, or null for an id that is not the simulator's or of another format. */
export function findTask(id: string, format: VideoFormat): VideoTask | null {
  const prefix = prefixes[format];
  const packed = id.startsWith(prefix) ? unpackName('task', id.slice(prefix.length)) : null;
  return packed === null ? null : unpacked(id, format, packed as Packed);
}

function unpacked(id: string, format: VideoFormat, packed: Packed): VideoTask {
  const [, operation, model, createdAt, video, seed, queuedMs, runningMs, ...rest] = packed;
  const [width, height, seconds, fps, picture, bytes] = video;
  const [failure, failureStatus, pollFaults, contentFaults, externalId] = rest;
  return {
    id,
    format,
    operation,
    model,
    createdAt,
    video: { width, height, seconds, fps, seed: picture, bytes },
    seed,
    queuedMs,
    runningMs,
    failure,
    failureStatus,
    pollFaults,
    contentFaults,
    externalId,
  };
}

/** Counts a poll of a task. @returns the faults of its answer */
export function noteQuestion({ pollFaults, id }: VideoTask, book: VideoBook): Directive[] {
  book.polls += 1;
  return laterFaults(pollFaults, id);
}

/** The status in the answer to a task's creation. */
export const firstStatus: VideoStatus = { state: 'queued', progress: 0, endedAt: null };

/**
 * The status of a task, which depends only on the clock.
 * @param now Unix milliseconds
 */
export function statusOf(task: VideoTask, now: number): VideoStatus {
  const startsAt = task.createdAt + task.queuedMs;
  const endsAt = startsAt + task.runningMs;
  if (now < startsAt) {
    return firstStatus;
  }
  if (now < endsAt) {
    const progress = 1 + Math.floor(((now - startsAt) / task.runningMs) * 98);
    return { state: 'in_progress', progress, endedAt: null };
  }
  return task.failure === null
    ? { state: 'completed', progress: 100, endedAt: endsAt }
    : { state: 'failed', progress: 99, endedAt: endsAt };
}

/** The error message of a failed task. */
export function failureMessage(failure: string): string {
  switch (failure) {
    case 'content_policy':
      return 'The generated video was blocked by the content policy.';
    case 'input_policy':
      return 'The prompt or the image was blocked by the content policy.';
    default:
      return `The simulator was asked for a task that fails with "${failure}".`;
  }
}

/** Whether a task fails for its content, not for a fault of the server. */
export function isPolicy(failure: string): boolean {
  return failure === 'content_policy' || failure === 'input_policy';
}
