import { Type } from 'typebox';
import { compileSchema } from '../../schema/compile.js';
import { name } from '../../schema/members.js';
import type { JsonObject } from '../../wire/json.js';
import { codeNumber } from '../failure-codes.js';
import { requireBody } from '../members.js';
import { bareRequest, genericBodyType, readSharedBody, videoGuarded } from '../request.js';
import type { ShowContext, VideoClientFormat, VideoRequest, VideoTask } from '../task.js';
import { compatStates } from './compat.js';

const bodySchema = compileSchema(genericBodyType, null, videoGuarded);

/** What has to be clear in a body. */
export const genericGuard = bodySchema.guard;

/** What is asked of every body; the number of videos beside it. */
const passedSchema = compileSchema(Type.Object({ model: name }));

/**
 * Reads the body of `POST /v1/video/generations`. What vendors add to the format may stand in `metadata`.
 * @throws {GatewayError} of status 400, naming the member
 */
export function readGenericBody(body: JsonObject): VideoRequest {
  requireBody(passedSchema, body);
  return readSharedBody(bodySchema, bareRequest('generic', String(body.model), body));
}

/** Where the video of a finished task is: where its upstream keeps it, else here. */
export function videoUrl(task: VideoTask, { contentUrl }: Pick<ShowContext, 'contentUrl'>): string {
  return task.result?.url ?? contentUrl;
}

/** Seconds of the video: as its upstream tells them, else as they were asked for. */
export function videoSeconds({ result, seconds }: VideoTask): number {
  return result?.duration ?? Number(seconds);
}

/** The members of a created task. */
export function genericCreated({ id, state }: VideoTask): JsonObject {
  return { task_id: id, status: compatStates[state] };
}

/** The members of a task that is asked for. */
export function genericShown(task: VideoTask, context: ShowContext): JsonObject {
  const members = genericCreated(task);
  if (task.state === 'failed' && task.error !== null)
    return { ...members, error: { code: codeNumber(task.error), message: task.error.message } };
  if (task.state !== 'completed') return members;
  const { fps, width, height, seed } = task.result ?? {};
  const known = Object.entries({ duration: videoSeconds(task), fps, width, height, seed }).filter(
    ([, value]) => typeof value === 'number',
  );
  return { ...members, url: videoUrl(task, context), format: 'mp4', metadata: Object.fromEntries(known) };
}

/** The format that belongs to no vendor. */
export const genericClientFormat: VideoClientFormat = {
  created: (task) => JSON.stringify(genericCreated(task)),
  shown: (task, context) => JSON.stringify(genericShown(task, context)),
  missing: () => null,
};
