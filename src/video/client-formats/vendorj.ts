import { Type } from 'typebox';
import type { ImageSource } from '../../media/image.js';
import { readImageText } from '../../media/image-text.js';
import { compileSchema } from '../../schema/compile.js';
import { name, nullable, text } from '../../schema/members.js';
import {
  type JsonObject,
  listOf,
  missingValue,
  numberOrNull,
  textOrNull,
  wrongValue,
} from '../../wire/json.js';
import { vendorjCode } from '../failure-codes.js';
import { bareRequest, framesPerSecond, lengthOf, readOrPass, requireBody, wrongLength } from '../request.js';
import type { ShowContext, TaskState, VideoClientFormat, VideoRequest, VideoTask } from '../task.js';
import { videoUrl } from './generic.js';

/** Half a day of video. Frames are bounded so that they convert to seconds. */
const maxFrames = 1_000_000;
const images = nullable(Type.Array(Type.String({ minLength: 1 })));

const submitSchema = compileSchema(
  Type.Object({
    req_key: text,
    prompt: text,
    binary_data_base64: images,
    image_urls: images,
    seed: nullable(Type.Integer()),
    frames: nullable(Type.Union([Type.Number(), Type.String()])),
    aspect_ratio: text,
  }),
);

/** What every submission has to satisfy. */
const passedSchema = compileSchema(Type.Object({ req_key: text }));

const querySchema = compileSchema(Type.Object({ req_key: text, task_id: name, req_json: text }));

/** The guards against ambiguous members. */
export const submitGuard = submitSchema.guard;
export const queryGuard = querySchema.guard;

const actions = { CVSync2AsyncSubmitTask: 'submit', CVSync2AsyncGetResult: 'result' } as const;
const datePattern = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/;

/**
 * Reads the action of a request to `POST /vendorj/`.
 * @throws {GatewayError} of status 400 for an `Action` that is missing or unknown, or a `Version` that is missing or not
 * a date
 */
export function readAction(query: { get(name: string): string | null | undefined }): 'submit' | 'result' {
  const action = query.get('Action') ?? '';
  const wanted = `'${Object.keys(actions).join("' or '")}' in the query`;
  if (action === '') throw missingValue('Action', wanted);
  if (action !== 'CVSync2AsyncSubmitTask' && action !== 'CVSync2AsyncGetResult')
    throw wrongValue('Action', wanted);
  const version = query.get('Version') ?? '';
  if (version === '') throw missingValue('Version', "a date such as '2022-08-31' in the query");
  if (!datePattern.test(version)) throw wrongValue('Version', "a date such as '2022-08-31'");
  return actions[action];
}

/**
 * Reads the body that submits a task. Its images in base64 come first, then those with a URL; the first of all is the
 * first image of the video, and a second one the last.
 * @param defaultModel model of tasks that name none, or null
 * @throws {GatewayError} of status 400, naming the member
 */
export function readVendorjSubmit(body: JsonObject, defaultModel: string | null = null): VideoRequest {
  requireBody(passedSchema, body);
  const model = textOrNull(body.req_key) || defaultModel;
  if (model === null) throw missingValue('req_key', 'the name of a model');
  const hasImage = listOf(body.binary_data_base64).length + listOf(body.image_urls).length > 0;
  const passed: VideoRequest = {
    ...bareRequest('vendorj', model, body),
    operation: hasImage ? 'image' : 'text',
    ...lengthOfFrames(body.frames),
  };
  return readOrPass(passed, () => readSubmission(passed));
}

/** @throws {GatewayError} of status 400, naming the member */
function readSubmission(passed: VideoRequest): VideoRequest {
  const { body } = passed;
  requireBody(submitSchema, body);
  const [image = null, imageTail = null] = [
    ...readImages(body, 'binary_data_base64'),
    ...readImages(body, 'image_urls'),
  ];
  const prompt = textOrNull(body.prompt) || null;
  if (image === null && prompt === null) throw missingValue('prompt', 'a text');
  if (passed.unreadLength !== null) throw wrongLength(passed.unreadLength);
  const seed = numberOrNull(body.seed);
  return {
    ...passed,
    operation: image === null ? 'text' : 'image',
    prompt,
    image,
    imageTail,
    // A negative seed means a random one.
    seed: seed === null || seed < 0 ? null : seed,
    aspectRatio: textOrNull(body.aspect_ratio) || null,
  };
}

function lengthOfFrames(frames: unknown): Pick<VideoRequest, 'seconds' | 'unreadLength'> {
  const { seconds: count, unreadLength } = lengthOf(frames, 'frames');
  if (count === null || count > maxFrames)
    return { seconds: null, unreadLength: count === null ? unreadLength : 'frames' };
  return { seconds: Math.max(1, Math.round((count - 1) / framesPerSecond)), unreadLength };
}

/**
 * Reads the body that requests a task's status.
 * @throws {GatewayError} of status 400, naming the member
 */
export function readVendorjQuery(body: JsonObject): { readonly id: string } {
  requireBody(querySchema, body);
  return { id: String(body.task_id) };
}

function readImages(body: JsonObject, member: string): ImageSource[] {
  const list = body[member];
  const texts = listOf(list);
  return texts.map((image, index) => readImageText(String(image), `${member}[${index}]`));
}

const success = 10_000;

/** The vendor's words for states: `done` for every ended task, whose envelope's `code` tells success from failure. */
const states: Readonly<Record<TaskState, string>> = {
  submitting: 'in_queue',
  queued: 'in_queue',
  in_progress: 'generating',
  completed: 'done',
  failed: 'done',
};

interface ReportedError {
  readonly code: number;
  readonly message: string;
}

function envelope(
  data: JsonObject,
  { requestId, elapsedMs }: ShowContext,
  reported: ReportedError | null,
): string {
  const { code, message } = reported ?? { code: success, message: 'Success' };
  return JSON.stringify({
    code,
    message,
    data,
    request_id: requestId,
    status: code,
    time_elapsed: `${elapsedMs.toFixed(1)}ms`,
  });
}

function shownData(status: string, url: string | null): JsonObject {
  return {
    status,
    ...(url === null ? {} : { video_url: url }),
    binary_data_base64: null,
    image_urls: null,
    resp_data: '',
  };
}

function reportedErrorOf({ state, error }: VideoTask): ReportedError | null {
  if (state !== 'failed' || error === null) return null;
  return { code: vendorjCode(error), message: error.message };
}

/** The vendor answers everything with 200; a failed task has a code other than that of success. */
export const vendorjClientFormat: VideoClientFormat = {
  created: (task, context) => envelope({ task_id: task.id }, context, reportedErrorOf(task)),
  shown(task, context) {
    const url = task.state === 'completed' ? videoUrl(task, context) : null;
    return envelope(shownData(states[task.state], url), context, reportedErrorOf(task));
  },
  missing: (_id, context) => envelope(shownData('not_found', null), context, null),
};
