import type { GatewayError } from '../../errors.js';
import { base64OfDataUrl } from '../../media/image-text.js';
import { isObject, type JsonObject, listOf, objectOf } from '../../wire/json.js';
import { failureKind } from '../failure-codes.js';
import { aspectRatioFor } from '../shape.js';
import type { TaskUpdate, UpstreamFormat, VideoRequest, VideoResult, VideoTask } from '../task.js';
import { ownMembersFor, refuseForeign } from '../unsupported.js';
import { genericAnswers } from './generic.js';
import { vendorkError } from './native-error.js';
import {
  codeBeside,
  failureOf,
  failureOrNull,
  getCall,
  idOrNull,
  imageText,
  jsonCall,
  ownBodyCall,
  parseAnswer,
  plainCreated,
  plainPolled,
  positiveOrNull,
  requireAtMost,
  requireState,
  resultOf,
  stateOrNull,
  unknownTask,
  updateOf,
  upstreamId,
  urlOrNull,
} from './shared.js';

const success = 0;
/** Videos that are kept of a task besides its first one. */
const maxOthers = 9;

function pathOf({ operation }: Pick<VideoTask, 'operation'>): string {
  return `/v1/videos/${operation === 'image' ? 'image2video' : 'text2video'}`;
}

/**
 * Translates a request that arrived in another format.
 *
 * Translated: prompt, negative prompt, first and last image, seconds, the shape of the video (unless an image decides
 * it), mode, cfg_scale, and vendork's own members in a generic `metadata`. Refused: several videos, and what only vendorj
 * has of a video's content. Left out: all else.
 */
function translate(request: VideoRequest, model: string, taskId: string): JsonObject {
  refuseForeign(request, 'vendork');
  requireAtMost(1, request, 'vendork');
  const shape = aspectRatioFor(request);
  return {
    model_name: model,
    prompt: request.prompt ?? undefined,
    negative_prompt: request.negativePrompt ?? undefined,
    image: imageText(request.image),
    image_tail: imageText(request.imageTail),
    duration: request.seconds === null ? undefined : String(request.seconds),
    aspect_ratio: request.operation === 'text' ? (shape ?? undefined) : undefined,
    mode: request.mode ?? undefined,
    cfg_scale: request.cfgScale ?? undefined,
    ...ownMembersFor(request, 'vendork'),
    external_task_id: taskId,
  };
}

/**
 * Members that are set in a client's own body. The vendor takes bare base64, without the prefix of a `data:` URL, and
 * finds a task by the id that its creator gave it.
 */
function amended(request: VideoRequest, model: string, taskId: string): JsonObject {
  const { body, externalId, seconds } = request;
  return {
    // The vendor writes lengths as strings, and knows "5" but no "05" or "5.0".
    duration: seconds !== null && body.duration !== String(seconds) ? String(seconds) : undefined,
    ...(typeof body.model_name === 'string' ? {} : nativeMembers(request)),
    ...(typeof body.model === 'string' ? { model } : {}),
    model_name: model,
    image: bareBase64(body.image),
    image_tail: bareBase64(body.image_tail),
    external_task_id: externalId === null ? taskId : undefined,
  };
}

/** Members that replace the shape of a generic body, whose form the vendor does not know. */
function nativeMembers(request: VideoRequest): JsonObject {
  const { width, height, operation, body } = request;
  const isShaped = operation === 'text' && width !== null && height !== null && !body.aspect_ratio;
  return isShaped ? { aspect_ratio: aspectRatioFor(request) } : {};
}

function bareBase64(value: unknown): string | undefined {
  return typeof value === 'string' ? (base64OfDataUrl(value.trim()) ?? undefined) : undefined;
}

function read(data: JsonObject, state: TaskUpdate['state'], answer: JsonObject): TaskUpdate {
  if (state === 'failed') {
    const error = failureOf(answer.error) ?? failureOrNull(null, data.task_status_msg);
    return updateOf(state, { error });
  }
  if (state !== 'completed') return updateOf(state);
  const results = isObject(data.task_result) ? data.task_result.videos : null;
  const [video, ...more] = listOf(results);
  const others = more.slice(0, maxOthers).flatMap((other) => {
    const { url, duration, watermarkUrl } = isObject(other) ? resultIn(other) : resultOf({});
    return url === null ? [] : [{ url, duration, ...(watermarkUrl === undefined ? {} : { watermarkUrl }) }];
  });
  return updateOf(state, {
    completedAt: positiveOrNull(data.updated_at),
    result: {
      ...(isObject(video) ? resultIn(video) : resultOf({})),
      ...(video === undefined ? {} : { others }),
    },
  });
}

function resultIn({ url, watermark_url: marked, duration }: JsonObject): VideoResult {
  const watermarkUrl = urlOrNull(marked);
  return resultOf({
    url: urlOrNull(url),
    duration: positiveOrNull(duration),
    ...(watermarkUrl === null ? {} : { watermarkUrl }),
  });
}

/** A code about the video means a failed task; any other is about the request itself. */
function readRefusal(code: number, data: JsonObject, answer: JsonObject): TaskUpdate | GatewayError {
  if (stateOrNull(data.task_status) === 'failed') return read(data, 'failed', answer);
  if (failureKind(String(code)) === 'policy')
    return updateOf('failed', { error: failureOrNull(code, answer.message) });
  return code === 1202 || code === 1203 ? unknownTask() : vendorkError(code, answer.message);
}

/** The vendork format of upstreams, whose base URL ends before `/v1/videos`. */
export const vendorkUpstreamFormat: UpstreamFormat = {
  lacks: ['fps', 'seed'],
  create: (request, model, taskId) => {
    if (request.format !== 'vendork') return jsonCall(pathOf(request), translate(request, model, taskId));
    requireAtMost(1 + maxOthers, request, 'vendork');
    return ownBodyCall(pathOf(request), request, amended(request, model, taskId));
  },
  readCreated(body) {
    const answer = parseAnswer(body);
    const code = codeBeside(answer, success);
    if (code !== null) throw vendorkError(code, answer.message);
    const data = objectOf(answer.data);
    const id = idOrNull(data.task_id);
    if (id === null) return plainCreated(genericAnswers, answer);
    const state = stateOrNull(data.task_status);
    return { id, update: state === null ? null : read(data, state, answer) };
  },
  poll: (task) => getCall(`${pathOf(task)}/${encodeURIComponent(upstreamId(task))}`),
  readPolled(body) {
    const answer = parseAnswer(body);
    const data = objectOf(answer.data);
    const code = codeBeside(answer, success);
    if (code !== null) {
      const refusal = readRefusal(code, data, answer);
      if (refusal instanceof Error) throw refusal;
      return refusal;
    }
    if (data.task_status === undefined) return plainPolled(genericAnswers, answer);
    return read(data, requireState(data.task_status), answer);
  },
  content: () => null,
};
