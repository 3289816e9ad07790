import { upstreamError } from '../../protocols/error-formats/upstream-error.js';
import { isObject, type JsonObject, numberOrNull } from '../../wire/json.js';
import { sizeFor } from '../shape.js';
import type { TaskUpdate, UpstreamFormat, VideoRequest } from '../task.js';
import { refuseForeign, vendorkMembers } from '../unsayable.js';
import {
  failureOf,
  fromSeconds,
  idOrNull,
  noId,
  parseAnswer,
  positiveOrNull,
  progressOrNull,
  requireState,
  resultOf,
  stateOrNull,
  updateOf,
  upstreamId,
  urlOrNull,
} from './answer.js';
import { getCall, imageText, jsonCall } from './call.js';

const path = '/video/generations';

/**
 * The body of a request that came in another format.
 *
 * Said: everything. What the format has no member for stands in `metadata`, which is where it has what vendors add.
 */
function translate(request: VideoRequest, model: string): JsonObject {
  refuseForeign(request, 'generic');
  const size = sizeFor(request, 'generic');
  const metadata: JsonObject = {
    negative_prompt: request.negativePrompt ?? undefined,
    image_tail: imageText(request.imageTail),
    mode: request.mode ?? undefined,
    cfg_scale: request.cfgScale ?? undefined,
    ...Object.fromEntries(vendorkMembers(request).map(({ name, value }) => [name, value])),
  };
  return {
    model,
    prompt: request.prompt ?? undefined,
    image: imageText(request.image),
    duration: request.seconds ?? undefined,
    width: size?.width,
    height: size?.height,
    fps: request.fps ?? undefined,
    seed: request.seed ?? undefined,
    n: request.count ?? undefined,
    metadata: Object.values(metadata).every((value) => value === undefined) ? undefined : metadata,
  };
}

/** The client's own members. A number that is a text becomes the one that the format has. */
function amend({ body, seconds, count }: VideoRequest, model: string): JsonObject {
  return {
    ...body,
    model,
    ...(typeof body.duration === 'string' && seconds !== null ? { duration: seconds } : {}),
    ...(typeof body.n === 'string' && count !== null ? { n: count } : {}),
  };
}

function read(answer: JsonObject, state: TaskUpdate['state']): TaskUpdate {
  const progress = progressOrNull(answer.progress);
  if (state === 'failed') return updateOf(state, { progress, error: failureOf(answer.error) });
  if (state !== 'completed') return updateOf(state, { progress });
  const metadata: JsonObject = isObject(answer.metadata) ? answer.metadata : {};
  return updateOf(state, {
    progress,
    completedAt: fromSeconds(answer.completed_at),
    result: resultOf({
      url: urlOrNull(answer.url),
      duration: positiveOrNull(metadata.duration),
      fps: positiveOrNull(metadata.fps),
      width: positiveOrNull(metadata.width),
      height: positiveOrNull(metadata.height),
      seed: numberOrNull(metadata.seed),
    }),
  });
}

/**
 * Reads how a created task stands, where the answer tells it.
 * @throws {GatewayError} for an answer that has no id
 */
export function readGenericCreated(answer: JsonObject): ReturnType<UpstreamFormat['readCreated']> {
  const id = idOrNull(answer.task_id ?? answer.id);
  if (id === null) throw upstreamError(answer.error) ?? noId();
  const state = stateOrNull(answer.status);
  return { id, update: state === null ? null : read(answer, state) };
}

/** @throws {GatewayError} for an answer that does not say how the task stands */
export function readGenericPolled(answer: JsonObject): TaskUpdate {
  const failure = answer.status === undefined ? upstreamError(answer.error) : null;
  if (failure !== null) throw failure;
  return read(answer, requireState(answer.status));
}

/** Upstreams that speak the format that belongs to no vendor. Their base URL ends in `/v1`. */
export const genericUpstreamFormat: UpstreamFormat = {
  unsaid: [],
  create: (request, model) =>
    jsonCall(path, request.format === 'generic' ? amend(request, model) : translate(request, model)),
  readCreated: (body) => readGenericCreated(parseAnswer(body)),
  poll: (task) => getCall(`${path}/${encodeURIComponent(upstreamId(task))}`),
  readPolled: (body) => readGenericPolled(parseAnswer(body)),
  content: () => null,
};
