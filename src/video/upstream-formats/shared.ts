import { isHttpUrl } from '../../conversation/media-source.js';
import { GatewayError } from '../../errors.js';
import type { ImageSource } from '../../media/image.js';
import { upstreamError } from '../../protocols/error-formats/upstream-error.js';
import { vendorAccountErrorIn } from '../../protocols/error-formats/vendor-account.js';
import {
  isObject,
  type JsonObject,
  missingValue,
  numberOrNull,
  parseObject,
  textOf,
  textOrNull,
} from '../../wire/json.js';
import { createEdits, editAt, editMembers } from '../../wire/member-edits.js';
import { pathOfMember } from '../request.js';
import type {
  TaskFailure,
  TaskUpdate,
  UpstreamFormat,
  VideoCall,
  VideoFormat,
  VideoRequest,
  VideoResult,
  VideoTask,
} from '../task.js';
import { unsupportedMember } from '../unsupported.js';
import { vendorjError, vendorkError } from './native-error.js';

/*
 * What the formats of all upstreams have in common: building requests and reading answers. No member of an answer is
 * trusted; what is kept of one is bounded, since it goes into the store.
 */

const longestId = 512;
const longestUrl = 8192;
const longestCode = 100;
const longestMessage = 2000;

/*
 * After an unreadable answer it is unknown whether the upstream served the request: sending it again could create a
 * second video.
 */
const notUnderstood = { unrepeatable: true } as const;

/** @throws {GatewayError} `upstream_error` for a body that is not a JSON object */
export function parseAnswer(body: Buffer): JsonObject {
  const answer = parseObject(body.toString('utf8'));
  if (answer === null)
    throw new GatewayError('upstream_error', 'The upstream did not return a JSON object.', notUnderstood);
  return answer;
}

/** The number in an answer's `code`, also written as a string; null if there is none or it is the code of success. */
export function codeBeside({ code }: JsonObject, success: number): number | null {
  const number = typeof code === 'string' && code !== '' ? Number(code) : numberOrNull(code);
  return number === null || !Number.isFinite(number) || number === success ? null : number;
}

/** The error that the native code of an answer stands for, for vendors that have such codes; null without one. */
export function nativeErrorIn(format: VideoFormat, body: Buffer): GatewayError | null {
  if (format !== 'vendork' && format !== 'vendorj') return null;
  const answer = parseObject(body.toString('utf8'));
  const code = answer === null ? null : codeBeside(answer, format === 'vendork' ? 0 : 10_000);
  if (answer === null || code === null) return null;
  return format === 'vendork' ? vendorkError(code, answer.message) : vendorjError(code, answer.message);
}

const visibleAscii = /^[!-~]+$/;

/**
 * Reads the id of a task at its upstream.
 * @returns null for a value that cannot be a path segment
 */
export function idOrNull(value: unknown): string | null {
  const id = Number.isSafeInteger(value) ? String(value) : textOrNull(value);
  if (id === null || id.length > longestId || !visibleAscii.test(id)) return null;
  return id.split(/[/\\]/).some((part) => part === '.' || part === '..') ? null : id;
}

/** The 502 for a created task that has no id. */
export function noId(): GatewayError {
  return new GatewayError('upstream_error', 'The upstream did not return a task id.', notUnderstood);
}

/** The 502 for an answer without a task's status. */
export function noStatus(): GatewayError {
  return new GatewayError(
    'upstream_error',
    'The upstream did not return the status of the task.',
    notUnderstood,
  );
}

/** The 404 for a task that its upstream no longer knows. */
export function unknownTask(): GatewayError {
  return new GatewayError('not_found', 'The upstream no longer knows this task.');
}

/**
 * The task's id at its upstream.
 * @throws {GatewayError} `internal_error` if the task has none yet
 */
export function upstreamId({ upstream }: VideoTask): string {
  if (upstream.id === null)
    throw new GatewayError('internal_error', 'The task has not reached its upstream yet.');
  return upstream.id;
}

const states: ReadonlyMap<string, TaskUpdate['state']> = new Map([
  ['queued', 'queued'],
  ['submitted', 'queued'],
  ['pending', 'queued'],
  ['in_queue', 'queued'],
  ['preparing', 'queued'],
  ['created', 'queued'],
  ['waiting', 'queued'],
  ['not_started', 'queued'],
  ['scheduled', 'queued'],
  ['in_progress', 'in_progress'],
  ['processing', 'in_progress'],
  ['running', 'in_progress'],
  ['generating', 'in_progress'],
  ['completed', 'completed'],
  ['succeed', 'completed'],
  ['succeeded', 'completed'],
  ['success', 'completed'],
  ['done', 'completed'],
  ['failed', 'failed'],
  ['failure', 'failed'],
  ['cancelled', 'failed'],
  ['canceled', 'failed'],
  ['error', 'failed'],
  ['rejected', 'failed'],
  ['timeout', 'failed'],
  ['timed_out', 'failed'],
]);
const goneWords: readonly unknown[] = ['not_found', 'expired'];

/** The state that a word stands for in any of the formats, or in APIs that imitate one; null for an unknown word. */
export function stateOrNull(word: unknown): TaskUpdate['state'] | null {
  return typeof word === 'string' ? (states.get(word.toLowerCase()) ?? null) : null;
}

/** @throws {GatewayError} `not_found` for a word that says the task is gone, `upstream_error` for an unknown word */
export function requireState(word: unknown): TaskUpdate['state'] {
  if (goneWords.includes(word)) throw unknownTask();
  const state = stateOrNull(word);
  if (state === null) throw noStatus();
  return state;
}

/** A percentage, as a number or as `"50%"`; null for anything else. */
function progressOrNull(value: unknown): number | null {
  const percent = typeof value === 'string' ? Number.parseFloat(value) : numberOrNull(value);
  return percent === null || !Number.isFinite(percent) ? null : percent;
}

/** A number above zero, also written as a string (`"5.0"`); null for anything else. */
export function positiveOrNull(value: unknown): number | null {
  const number = typeof value === 'string' && value.length < 32 ? Number(value) : numberOrNull(value);
  return number !== null && Number.isFinite(number) && number > 0 ? number : null;
}

/** The http(s) URL of a video, or null for anything else. */
export function urlOrNull(value: unknown): string | null {
  if (typeof value !== 'string' || value.length > longestUrl) return null;
  return isHttpUrl(value) && URL.canParse(value) ? value : null;
}

/** Converts a Unix time in seconds to milliseconds. */
function fromSeconds(value: unknown): number | null {
  const seconds = positiveOrNull(value);
  return seconds === null ? null : Math.round(seconds * 1000);
}

/** The failure of a task from its code, a word or a number, and its message; null without either. */
export function failureOrNull(code: unknown, message: unknown, type?: unknown): TaskFailure | null {
  const ofVendorAccount = vendorAccountErrorIn({ code, message, type });
  // Clients are not told about the gateway's account.
  if (ofVendorAccount !== null) return { code: 'generation_failed', message: ofVendorAccount.message };
  const word = typeof code === 'number' ? String(code) : textOf(code);
  const words = textOf(message);
  if (word === '' && words === '') return null;
  return {
    code: word.slice(0, longestCode) || 'generation_failed',
    message: words.slice(0, longestMessage) || 'The video could not be generated.',
  };
}

/** The failure in an `error` member, which is an object or just the message. */
export function failureOf(error: unknown): TaskFailure | null {
  return isObject(error) ? failureOrNull(error.code, error.message, error.type) : failureOrNull(null, error);
}

/** How answers are read whose top level has `status`, `progress`, `completed_at` and `error`. */
export interface PlainAnswers {
  /** The member that may be the task's id. */
  idIn(answer: JsonObject): unknown;
  /** The result of a completed task. */
  resultIn(answer: JsonObject): VideoResult;
}

/** @throws {GatewayError} for an answer without an id */
export function plainCreated(
  format: PlainAnswers,
  answer: JsonObject,
): ReturnType<UpstreamFormat['readCreated']> {
  const id = idOrNull(format.idIn(answer));
  if (id === null) throw upstreamError(answer.error) ?? noId();
  const state = stateOrNull(answer.status);
  return { id, update: state === null ? null : plainUpdate(format, answer, state) };
}

/** @throws {GatewayError} for an answer without the task's status */
export function plainPolled(format: PlainAnswers, answer: JsonObject): TaskUpdate {
  const failure = answer.status === undefined ? upstreamError(answer.error) : null;
  if (failure !== null) throw failure;
  return plainUpdate(format, answer, requireState(answer.status));
}

function plainUpdate(format: PlainAnswers, answer: JsonObject, state: TaskUpdate['state']): TaskUpdate {
  const progress = progressOrNull(answer.progress);
  const result = format.resultIn(answer);
  if (state === 'completed')
    return updateOf(state, { progress, completedAt: fromSeconds(answer.completed_at), result });
  const { duration, width, height } = result;
  const told = duration === null && (width === null || height === null) ? null : result;
  const error = state === 'failed' ? failureOf(answer.error) : null;
  return updateOf(state, { progress, result: told, error });
}

/** A result with the given members, all others null. */
export function resultOf(known: Partial<VideoResult>): VideoResult {
  return { url: null, duration: null, fps: null, width: null, height: null, seed: null, ...known };
}

/** An update with a state and the given members, all others null. */
export function updateOf(state: TaskUpdate['state'], more: Partial<TaskUpdate> = {}): TaskUpdate {
  return { progress: null, completedAt: null, result: null, error: null, ...more, state };
}

/** A GET call without a body. */
export function getCall(path: string): VideoCall {
  return { method: 'GET', path, contentType: null, body: [] };
}

/** A call with a JSON body. Members that are undefined are left out. */
export function jsonCall(path: string, body: JsonObject): VideoCall {
  return { method: 'POST', path, contentType: 'application/json', body: [Buffer.from(JSON.stringify(body))] };
}

/**
 * A call with the client's own JSON body, in which members at the top are set.
 * @param members values by name; those that are undefined stay as they are
 */
export function ownBodyCall(path: string, { json, body }: VideoRequest, members: JsonObject): VideoCall {
  const edits = createEdits();
  for (const [name, value] of Object.entries(members)) {
    if (value === undefined) continue;
    const edit = editAt(edits, [name], (same) => same);
    edit.json = JSON.stringify(value);
    edit.isAdded = true;
  }
  return {
    method: 'POST',
    path,
    contentType: 'application/json',
    body: editMembers(json ?? Buffer.from(JSON.stringify(body)), edits),
  };
}

/** The image as a URL or as bare base64, as the client sent it; undefined without one. */
export function imageText(image: ImageSource | null): string | undefined {
  if (image === null) return undefined;
  return image.kind === 'url' ? image.url : image.bytes.toString('base64');
}

/**
 * The prompt, for an upstream that requires one.
 * @throws {GatewayError} of status 400 if the request has none
 */
export function promptFor({ prompt }: VideoRequest): string {
  if (prompt === null) throw missingValue('prompt', "a text, which this model's upstream needs");
  return prompt;
}

/**
 * Refuses a request for more videos.
 * @throws {GatewayError} of status 400, naming the client's member
 */
export function requireAtMost(most: number, { count, body }: VideoRequest, to: VideoFormat): void {
  if (count !== null && count > most) throw unsupportedMember(pathOfMember(body, ['n']), to, `above ${most}`);
}

/**
 * Refuses a negative prompt.
 * @throws {GatewayError} of status 400, naming the client's member
 */
export function refuseNegative({ negativePrompt, body }: VideoRequest, to: VideoFormat): void {
  if (negativePrompt !== null) throw unsupportedMember(pathOfMember(body, ['negative_prompt']), to);
}
