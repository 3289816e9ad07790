import { Type } from 'typebox';
import { compileSchema } from '../../schema/compile.js';
import { name } from '../../schema/members.js';
import type { JsonObject } from '../../wire/json.js';
import { codeNumber } from '../failure-codes.js';
import { bareRequest, genericBodyType, readSharedBody, requireBody, videoGuarded } from '../request.js';
import type { ShowContext, VideoClientFormat, VideoRequest, VideoTask } from '../task.js';
import { compatStates } from './compat.js';

const bodySchema = compileSchema(genericBodyType, null, videoGuarded);

/** The guard against ambiguous members. */
export const genericGuard = bodySchema.guard;

/** What every body has to satisfy, besides the number of videos. */
const passedSchema = compileSchema(Type.Object({ model: name }));

/**
 * Reads the body of `POST /v1/video/generations`. Vendors' own members may be in `metadata`.
 * @throws {GatewayError} of status 400, naming the member
 */
export function readGenericBody(body: JsonObject): VideoRequest {
  requireBody(passedSchema, body);
  return readSharedBody(bodySchema, bareRequest('generic', String(body.model), body));
}

/** URL of a finished task's video: the upstream's, else the gateway's. */
export function videoUrl(task: VideoTask, { contentUrl }: Pick<ShowContext, 'contentUrl'>): string {
  return task.result?.url ?? contentUrl;
}

/** Seconds of the video: as reported by its upstream, else as requested. */
export function videoSeconds({ result, seconds }: VideoTask): number {
  return result?.duration ?? Number(seconds);
}

/** The members of a created task. */
export function genericCreated({ id, state }: VideoTask): JsonObject {
  return { task_id: id, status: compatStates[state] };
}

/** The members of a task's status. */
export function genericShown(task: VideoTask, context: ShowContext): JsonObject {
  const members = genericCreated(task);
  if (task.state === 'failed' && task.error !== null)
    return { ...members, error: { code: codeNumber(task.error), message: task.error.message } };
  if (task.state !== 'completed') return members;
  const { fps, width, height, seed, format = 'mp4' } = task.result ?? {};
  const known = Object.entries({ duration: videoSeconds(task), fps, width, height, seed }).filter(
    ([, value]) => typeof value === 'number',
  );
  return { ...members, url: videoUrl(task, context), format, metadata: Object.fromEntries(known) };
}

/** The vendor-neutral format. */
export const genericClientFormat: VideoClientFormat = {
  created: (task) => JSON.stringify(genericCreated(task)),
  shown: (task, context) => JSON.stringify(genericShown(task, context)),
  missing: () => null,
};
