import { createHash, randomBytes } from 'node:crypto';
import { type Directive, laterFaults, type PromptWishes } from '../faults/directives.js';
import { packName, unpackName, type VideoResult } from '../media/result.js';

const mostNames = 10_000;

/** What one simulator counts and remembers of tasks; the tasks themselves are in their ids. */
export interface VideoBook {
  /** How tasks go that do not ask for something else. */
  readonly queuedMs: number;
  readonly runningMs: number;
  /** Tasks that were really made. */
  made: number;
  /** Questions how a task is. */
  polls: number;
  /** Ids of tasks by the key that the client sent along so that a repeated request makes no second one. */
  readonly byKey: Map<string, KeyedTask>;
  /** Ids of tasks by the client's own names for them. */
  readonly byExternalId: Map<string, string>;
}

interface KeyedTask {
  readonly id: string;
  counted: boolean;
}

/** A book in which nothing happened yet. */
export function newVideoBook(pace: { readonly queuedMs: number; readonly runningMs: number }): VideoBook {
  return { ...pace, made: 0, polls: 0, byKey: new Map(), byExternalId: new Map() };
}

/** The task of a key; the first request with the key makes it. */
export function taskOfKey(book: VideoBook, key: string, make: () => string): KeyedTask {
  const known = book.byKey.get(key);
  if (known !== undefined) {
    return known;
  }
  const made = { id: make(), counted: false };
  remember(book.byKey, key, made);
  return made;
}

/** Keeps what a task is called by its maker. */
export function rememberExternalId(book: VideoBook, externalId: string, id: string): void {
  remember(book.byExternalId, externalId, id);
}

function remember<Value>(map: Map<string, Value>, name: string, value: Value): void {
  map.set(name, value);
  if (map.size > mostNames) {
    // A map gives its names in the order in which they came.
    map.delete(map.keys().next().value ?? '');
  }
}

/** The formats in which tasks are made; a task of one is unknown in the others. */
type VideoFormat = 'compat' | 'generic' | 'vendork' | 'vendorj';

/** Everything about a task. It is in the task's id, so that the simulator keeps none and forgets none. */
export interface VideoTask {
  readonly id: string;
  readonly format: VideoFormat;
  readonly operation: 'text' | 'image';
  readonly model: string;
  /** Unix milliseconds. */
  readonly createdAt: number;
  readonly video: VideoResult;
  /** The one that was asked for, or one that follows from the request. */
  readonly seed: number;
  readonly queuedMs: number;
  readonly runningMs: number;
  /** Why it will fail, or null. */
  readonly failure: string | null;
  /** HTTP status of answers about its failure where a format has more than one, or null. */
  readonly failureStatus: number | null;
  /** Faults of answers about it and of its bytes, as the header `x-simulator-fault` has them. */
  readonly pollFaults: string;
  readonly contentFaults: string;
  /** The client's own name for it, or null. */
  readonly externalId: string | null;
}

/** Where a task is at some moment. */
export interface VideoStatus {
  readonly state: 'queued' | 'in_progress' | 'completed' | 'failed';
  /** Percent. */
  readonly progress: number;
  /** Unix milliseconds; null before the end. */
  readonly endedAt: number | null;
}

/** What a client asks for, read and checked. */
export interface VideoWish {
  readonly format: VideoFormat;
  readonly operation: 'text' | 'image';
  readonly model: string;
  readonly wishes: PromptWishes;
  readonly width: number;
  readonly height: number;
  readonly seconds: number;
  readonly fps: number;
  /** Null to have one chosen. */
  readonly seed: number | null;
  /** Images that the video is made from, or what tells them from others. */
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

/** Makes a task that begins now. */
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

/** The task of an id, or null for an id that was not made here or not in this format. */
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

/** Counts a question how a task is. @returns the faults that its answer is to have */
export function noteQuestion({ pollFaults, id }: VideoTask, book: VideoBook): Directive[] {
  book.polls += 1;
  return laterFaults(pollFaults, id);
}

/** What the answer says that makes a task. */
export const firstStatus: VideoStatus = { state: 'queued', progress: 0, endedAt: null };

/**
 * How far a task is, which follows from the clock alone.
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

/** What a failed task says of itself. */
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

/** Whether a task fails for what it shows, not for a mistake of the server. */
export function isPolicy(failure: string): boolean {
  return failure === 'content_policy' || failure === 'input_policy';
}
