import { type JsonObject, numberOrNull, objectOf } from '../../wire/json.js';
import { sizeFor } from '../shape.js';
import type { UpstreamFormat, VideoRequest } from '../task.js';
import { ownMembersFor, refuseForeign } from '../unsupported.js';
import {
  getCall,
  imageText,
  jsonCall,
  ownBodyCall,
  type PlainAnswers,
  parseAnswer,
  plainCreated,
  plainPolled,
  positiveOrNull,
  resultOf,
  upstreamId,
  urlOrNull,
} from './shared.js';

const path = '/video/generations';

/**
 * Translates a request that arrived in another format. What is read and the format has no member for goes into
 * `metadata`, its place for vendors' own members. Left out: all else.
 */
function translate(request: VideoRequest, model: string): JsonObject {
  refuseForeign(request, 'generic');
  const size = sizeFor(request, 'generic');
  const metadata: JsonObject = {
    negative_prompt: request.negativePrompt ?? undefined,
    image_tail: imageText(request.imageTail),
    mode: request.mode ?? undefined,
    cfg_scale: request.cfgScale ?? undefined,
    ...ownMembersFor(request, 'generic'),
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

/** Members that are set in a client's own body. What is charged is written as a number: a text might be ignored. */
function amended({ body, seconds, count }: VideoRequest, model: string): JsonObject {
  return {
    model,
    duration: typeof body.duration === 'string' ? (seconds ?? undefined) : undefined,
    n: typeof body.n === 'string' ? (count ?? undefined) : undefined,
  };
}

/** The word for a container other than MP4. */
const formatWord = /^(?!mp4$)\w{1,16}$/i;

/** How answers are read; vendork upstreams send such answers, too. */
export const genericAnswers: PlainAnswers = {
  idIn: ({ task_id, id }) => task_id ?? id,
  resultIn({ url, format, metadata: given }) {
    const metadata = objectOf(given);
    return resultOf({
      url: urlOrNull(url),
      duration: positiveOrNull(metadata.duration),
      fps: positiveOrNull(metadata.fps),
      width: positiveOrNull(metadata.width),
      height: positiveOrNull(metadata.height),
      seed: numberOrNull(metadata.seed),
      ...(typeof format === 'string' && formatWord.test(format) ? { format } : {}),
    });
  },
};

/** The vendor-neutral format of upstreams, whose base URL ends in `/v1`. */
export const genericUpstreamFormat: UpstreamFormat = {
  lacks: [],
  create: (request, model) =>
    request.format === 'generic'
      ? ownBodyCall(path, request, amended(request, model))
      : jsonCall(path, translate(request, model)),
  readCreated: (body) => plainCreated(genericAnswers, parseAnswer(body)),
  poll: (task) => getCall(`${path}/${encodeURIComponent(upstreamId(task))}`),
  readPolled: (body) => plainPolled(genericAnswers, parseAnswer(body)),
  content: () => null,
};
