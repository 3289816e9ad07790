import { Type } from 'typebox';
import { compileSchema } from '../../schema/compile.js';
import { name, nullable, text } from '../../schema/members.js';
import { type JsonObject, missingValue, textOrNull, wrongValue } from '../../wire/json.js';
import {
  bareRequest,
  hasValue,
  readSharedBody,
  requireBody,
  vendorkBodyType,
  videoGuarded,
} from '../request.js';
import type { ShowContext, TaskState, VideoClientFormat, VideoRequest, VideoTask } from '../task.js';
import { genericCreated, genericShown, videoSeconds, videoUrl } from './generic.js';

const bodySchema = compileSchema(vendorkBodyType, null, videoGuarded);

/** The guard against ambiguous members. */
export const vendorkGuard = bodySchema.guard;
/** What every body has to satisfy, besides the number of videos. */
const passedSchema = compileSchema(
  Type.Object({ model: nullable(name), model_name: nullable(name), external_task_id: text }),
);
/** Bounded, since it is kept with the task. */
const longestExternalId = 512;

/**
 * Reads the body of `POST /vendork/v1/videos/text2video` and `/image2video`: the generic one or the vendor's own.
 * An image in the body of either path is used.
 * @param operation the operation of the path
 * @throws {GatewayError} of status 400, naming the member
 */
export function readVendorkBody(body: JsonObject, operation: 'text' | 'image'): VideoRequest {
  requireBody(passedSchema, body);
  const externalId = textOrNull(body.external_task_id) || null;
  if (externalId !== null && externalId.length > longestExternalId)
    throw wrongValue('external_task_id', `a text of at most ${longestExternalId} characters`);
  if (operation === 'image' && !hasValue(body.image) && !hasValue(body.image_tail))
    throw missingValue('image', 'a URL or base64: this path makes videos from images');
  return readSharedBody(bodySchema, { ...bareRequest('vendork', modelOf(body), body), externalId });
}

/** The generic body has `model`, the vendor's own `model_name`. If both are given, they have to be equal. */
function modelOf({ model, model_name: modelName }: JsonObject): string {
  if (isText(model) && isText(modelName) && model !== modelName)
    throw wrongValue('model_name', "the same name as 'model'");
  const name = isText(modelName) ? modelName : model;
  if (!isText(name)) throw missingValue('model', "the name of a model, here or as 'model_name'");
  return name;
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

const states: Readonly<Record<TaskState, string>> = {
  submitting: 'submitted',
  queued: 'submitted',
  in_progress: 'processing',
  completed: 'succeed',
  failed: 'failed',
};

function data(task: VideoTask): JsonObject {
  return {
    task_id: task.id,
    task_status: states[task.state],
    task_info: task.externalId === null ? {} : { external_task_id: task.externalId },
    created_at: task.createdAt,
    updated_at: task.updatedAt,
  };
}

function shownData(task: VideoTask, context: ShowContext): JsonObject {
  const members = { ...data(task), task_status_msg: task.error?.message ?? '' };
  if (task.state !== 'completed') return members;
  const usual = videoSeconds(task);
  const first = { url: videoUrl(task, context), duration: usual, watermarkUrl: task.result?.watermarkUrl };
  const videos = [first, ...(task.result?.others ?? [])].map(({ url, duration, watermarkUrl }, index) => ({
    id: index === 0 ? task.id : `${task.id}_${index + 1}`,
    url,
    ...(watermarkUrl === undefined ? {} : { watermark_url: watermarkUrl }),
    duration: lengthText(duration ?? usual),
  }));
  return { ...members, task_result: { videos } };
}

function lengthText(seconds: number): string {
  return Number.isInteger(seconds) ? seconds.toFixed(1) : String(seconds);
}

function envelope(members: JsonObject, { requestId }: ShowContext, generic: JsonObject): string {
  return JSON.stringify({
    code: 0,
    message: 'SUCCEED',
    request_id: requestId,
    data: members,
    ...generic,
  });
}

/** The vendor's own envelope with the generic format's members beside it, since clients of both use these paths. */
export const vendorkClientFormat: VideoClientFormat = {
  created: (task, context) => envelope(data(task), context, genericCreated(task)),
  shown: (task, context) => envelope(shownData(task, context), context, genericShown(task, context)),
  missing: () => null,
};
