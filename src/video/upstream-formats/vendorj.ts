import { isObject, type JsonObject, objectOf } from '../../wire/json.js';
import { failureKind } from '../failure-codes.js';
import { framesOf, numberIn } from '../members.js';
import { aspectRatioFor } from '../shape.js';
import type { TaskUpdate, UpstreamFormat, VideoRequest } from '../task.js';
import { refuseForeign, refuseVendorkMembers, unsayable } from '../unsayable.js';
import { vendorjError } from './native-error.js';
import {
  codeBeside,
  failureOrNull,
  idOrNull,
  imageText,
  jsonCall,
  noId,
  noStatus,
  parseAnswer,
  refuseNegative,
  requireOne,
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
 * The body of a request that came in another format.
 *
 * Said: prompt, first and last image, seconds (as frames), the shape of the video, seed. Refused: negative prompt,
 * several videos, what is vendork's alone, and a last image without a first one or not given the same way. Left out,
 * for the video is what was asked for without them: fps, mode, cfg_scale.
 */
function translate(request: VideoRequest, model: string): JsonObject {
  refuseForeign(request, 'vendorj');
  refuseVendorkMembers(request, 'vendorj');
  refuseNegative(request, 'vendorj');
  requireOne(request, 'vendorj');
  return {
    req_key: model,
    prompt: request.prompt ?? undefined,
    ...imagesOf(request),
    seed: request.seed ?? undefined,
    frames: request.seconds === null ? undefined : framesOf(request.seconds),
    aspect_ratio: aspectRatioFor(request) ?? undefined,
  };
}

/** The client's own members. The vendor's frames are a number: a text that is one could count for nothing there. */
function amend({ body, seconds }: VideoRequest, model: string): JsonObject {
  const frames = typeof body.frames === 'string' && seconds !== null ? numberIn(body.frames) : null;
  return { ...body, req_key: model, ...(frames === null ? {} : { frames }) };
}

/** The order of images tells first from last, and there is none between the two lists. */
function imagesOf({ image, imageTail }: VideoRequest): JsonObject {
  if (image === null) {
    if (imageTail !== null) throw unsayable(imageTail.at, 'vendorj', 'without a first image');
    return {};
  }
  if (imageTail !== null && imageTail.kind !== image.kind)
    throw unsayable(imageTail.at, 'vendorj', 'with one image as a URL and one as data');
  const texts = (imageTail === null ? [image] : [image, imageTail]).map(imageText);
  return image.kind === 'url' ? { image_urls: texts } : { binary_data_base64: texts };
}

const success = 10_000;
/** Numbers that can only be about the video: refused content, and a fault while it was made. */
const madeNothing = /^505(?:00|01|[1-9]\d)$/;

/** A number that is about the video, or comes with a task that has ended, is a failed task. */
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

/** Upstreams that speak the vendorj format: one path, and the query says what is asked. */
export const vendorjUpstreamFormat: UpstreamFormat = {
  unsaid: ['fps', 'mode', 'cfg_scale'],
  create: (request, model) =>
    jsonCall(
      pathOf('CVSync2AsyncSubmitTask'),
      request.format === 'vendorj' ? amend(request, model) : translate(request, model),
    ),
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
