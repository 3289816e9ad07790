import { isObject, type JsonObject, objectOf } from '../../wire/json.js';
import { failureKind } from '../failure-codes.js';
import { framesOf, numberIn } from '../request.js';
import { aspectRatioFor } from '../shape.js';
import type { TaskUpdate, UpstreamFormat, VideoRequest } from '../task.js';
import { ownMembersFor, refuseForeign, unsupportedMember } from '../unsupported.js';
import { vendorjError } from './native-error.js';
import {
  codeBeside,
  failureOrNull,
  idOrNull,
  imageText,
  jsonCall,
  noId,
  noStatus,
  ownBodyCall,
  parseAnswer,
  refuseNegative,
  requireAtMost,
  requireState,
  resultOf,
  updateOf,
  upstreamId,
  urlOrNull,
} from './shared.js';

const version = '2022-08-31';

function pathOf(action: string): string {
  return `/?Action=${action}&Version=${version}`;
}

/**
 * Translates a request that arrived in another format.
 *
 * Translated: prompt, first and last image, seconds (as frames), the shape of the video, seed, and vendorj's own members in
 * a generic `metadata`. Refused: negative prompt, several videos, what only vendork has of a video's content, and a last
 * image without a first one or in another form than the first (URL or base64). Left out: all else.
 */
function translate(request: VideoRequest, model: string): JsonObject {
  refuseForeign(request, 'vendorj');
  refuseNegative(request, 'vendorj');
  requireAtMost(1, request, 'vendorj');
  return {
    req_key: model,
    prompt: request.prompt ?? undefined,
    ...imagesOf(request),
    seed: request.seed ?? undefined,
    frames: request.seconds === null ? undefined : framesOf(request.seconds),
    aspect_ratio: aspectRatioFor(request) ?? undefined,
    ...ownMembersFor(request, 'vendorj'),
  };
}

/** Members that are set in a client's own body. `frames` is made a number: the vendor might ignore a string. */
function amended({ body, seconds }: VideoRequest, model: string): JsonObject {
  const frames = typeof body.frames === 'string' && seconds !== null ? numberIn(body.frames) : null;
  return { req_key: model, frames: frames ?? undefined };
}

/** The order in a list tells the first image from the last. There is no order across the two lists. */
function imagesOf({ image, imageTail }: VideoRequest): JsonObject {
  if (image === null) {
    if (imageTail !== null) throw unsupportedMember(imageTail.at, 'vendorj', 'without a first image');
    return {};
  }
  if (imageTail !== null && imageTail.kind !== image.kind)
    throw unsupportedMember(imageTail.at, 'vendorj', 'with one image as a URL and one as data');
  const texts = (imageTail === null ? [image] : [image, imageTail]).map(imageText);
  return image.kind === 'url' ? { image_urls: texts } : { binary_data_base64: texts };
}

const success = 10_000;
/** Codes that can only be about the video: refused content, or a fault during generation. */
const madeNothing = /^505(?:00|01|[1-9]\d)$/;

/** A code about the video, or in an answer about a task that has ended, means that the task failed. */
function isFailure(code: number, data: JsonObject): boolean {
  const text = String(code);
  return data.status === 'done' || failureKind(text) === 'policy' || madeNothing.test(text);
}

function readPolled(answer: JsonObject): TaskUpdate {
  const data = objectOf(answer.data);
  const code = codeBeside(answer, success);
  if (code !== null) {
    if (!isFailure(code, data)) throw vendorjError(code, answer.message);
    return updateOf('failed', { error: failureOrNull(code, answer.message) });
  }
  if (data.status === undefined) throw noStatus();
  const state = requireState(data.status);
  return state === 'completed'
    ? updateOf(state, { result: resultOf({ url: urlOrNull(data.video_url) }) })
    : updateOf(state);
}

/** The vendorj format of upstreams: one path, with the action in the query. */
export const vendorjUpstreamFormat: UpstreamFormat = {
  lacks: ['fps', 'mode', 'cfg_scale'],
  create(request, model) {
    const path = pathOf('CVSync2AsyncSubmitTask');
    return request.format === 'vendorj'
      ? ownBodyCall(path, request, amended(request, model))
      : jsonCall(path, translate(request, model));
  },
  readCreated(body) {
    const answer = parseAnswer(body);
    const code = codeBeside(answer, success);
    if (code !== null) throw vendorjError(code, answer.message);
    const id = isObject(answer.data) ? idOrNull(answer.data.task_id) : null;
    if (id === null) throw noId();
    return { id, update: null };
  },
  poll: (task) =>
    jsonCall(pathOf('CVSync2AsyncGetResult'), { req_key: task.upstream.model, task_id: upstreamId(task) }),
  readPolled: (body) => readPolled(parseAnswer(body)),
  content: () => null,
};
