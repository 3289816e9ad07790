import { type ImageSource, imageExtension } from '../../media/image.js';
import { type FormField, writeForm } from '../../wire/form-data.js';
import { isObject, numberOrNull, textOf } from '../../wire/json.js';
import { parseSize, sizeFor } from '../shape.js';
import type { UpstreamFormat, VideoCall, VideoRequest } from '../task.js';
import { ownMembersFor, refuseForeign, unsupportedMember } from '../unsupported.js';
import {
  getCall,
  ownBodyCall,
  type PlainAnswers,
  parseAnswer,
  plainCreated,
  plainPolled,
  positiveOrNull,
  promptFor,
  refuseNegative,
  requireAtMost,
  resultOf,
  upstreamId,
} from './shared.js';

const path = '/videos';

/**
 * Translates a request that arrived in another format.
 *
 * Translated: prompt, image, seconds, size (or a ratio, as a size of that shape). Refused: negative prompt, last image,
 * several videos, and what only other vendors have of a video's content. Left out: all else.
 */
function translate(request: VideoRequest, model: string): FormField[] {
  refuseForeign(request, 'compat');
  ownMembersFor(request, 'compat');
  refuseNegative(request, 'compat');
  requireAtMost(1, request, 'compat');
  if (request.imageTail !== null) throw unsupportedMember(request.imageTail.at, 'compat');
  const size = sizeFor(request, 'compat');
  return [
    { name: 'model', data: model },
    { name: 'prompt', data: promptFor(request) },
    ...(request.seconds === null ? [] : [{ name: 'seconds', data: String(request.seconds) }]),
    ...(size === null ? [] : [{ name: 'size', data: `${size.width}x${size.height}` }]),
    ...(request.image === null ? [] : [imageField(request.image)]),
  ];
}

function imageField(image: ImageSource): FormField {
  if (image.kind === 'url') return { name: 'input_reference[image_url]', data: image.url };
  return {
    name: 'input_reference',
    filename: image.filename ?? `image.${imageExtension(image.mediaType)}`,
    contentType: image.mediaType,
    data: image.bytes,
  };
}

function create(request: VideoRequest, model: string): VideoCall {
  const { format, form } = request;
  if (format === 'compat' && form === null) return ownBodyCall(path, request, { model });
  const fields =
    form === null || format !== 'compat'
      ? translate(request, model)
      : form.map((part) => (part.name === 'model' ? { name: 'model', data: model } : part));
  return { method: 'POST', path, ...writeForm(fields) };
}

const answers: PlainAnswers = {
  idIn: ({ id }) => id,
  resultIn({ size: text, seconds, metadata }) {
    const size = parseSize(textOf(text));
    return resultOf({
      duration: positiveOrNull(seconds),
      width: size?.width ?? null,
      height: size?.height ?? null,
      fps: isObject(metadata) ? numberOrNull(metadata.fps) : null,
    });
  },
};

/** The video format of OpenAI-compatible upstreams, whose base URL ends in `/v1`. */
export const compatUpstreamFormat: UpstreamFormat = {
  lacks: ['fps', 'seed', 'mode', 'cfg_scale'],
  create,
  readCreated: (body) => plainCreated(answers, parseAnswer(body)),
  poll: (task) => getCall(`${path}/${encodeURIComponent(upstreamId(task))}`),
  readPolled: (body) => plainPolled(answers, parseAnswer(body)),
  content(task, variant) {
    const query = variant === 'video' ? '' : `?variant=${encodeURIComponent(variant)}`;
    return `${path}/${encodeURIComponent(upstreamId(task))}/content${query}`;
  },
};
