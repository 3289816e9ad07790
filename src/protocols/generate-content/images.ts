import { urlOfMedia } from '../../conversation/media-source.js';
import type { ImageSource } from '../../media/image.js';
import { readImageText } from '../../media/image-text.js';
import { isObject, type JsonObject, memberError, objectOf, textOf, wrongValue } from '../../wire/json.js';
import type { ImagesTranslation, MadeImages, Placed, WantedImages } from '../images-translation.js';
import { unreadMembers, untranslatable } from '../unsupported.js';
import { answerEnd } from './answer/encode.js';
import { encodeUsage } from './answer/usage.js';
import { readForImages } from './read-members.js';
import { decodeWithMedia } from './request/decode.js';
import { generateContentRequest } from './request/schema.js';
import {
  type KindFormat,
  plainRatio,
  plainSize,
  responseFormatOf,
  withoutImageFormat,
} from './response-format.js';
import { keyOf, memberOf, snakeCase } from './spelling.js';

/**
 * Requests with IMAGE in `generationConfig.responseModalities`, and their answers with images as `inlineData`
 * (https://ai.google.dev/gemini-api/docs/image-generation).
 */
export const generateContentImages: ImagesTranslation = {
  imageMember: 'inlineData',
  imagesAsked,
  decode,
  encode,
};

function imagesAsked(body: JsonObject): number {
  const config = memberOf(body, 'generationConfig');
  if (!isObject(config) || !asksForImages(config)) return 0;
  const count = memberOf(config, 'candidateCount');
  return typeof count === 'number' && Number.isSafeInteger(count) && count > 0 ? count : 1;
}

function asksForImages(config: JsonObject): boolean {
  const modalities = memberOf(config, 'responseModalities');
  // Without modalities, a model that can make images makes them. What they are to be like shows that they are wanted.
  if (modalities === null)
    return isObject(memberOf(config, 'imageConfig')) || isObject(imageFormatOf(config)?.value);
  return [modalities].flat().some(isImage);
}

function imageFormatOf(config: JsonObject, at = ''): KindFormat | null {
  return responseFormatOf(config, 'image', at);
}

function isImage(modality: unknown): boolean {
  return typeof modality === 'string' && modality.toUpperCase() === 'IMAGE';
}

/**
 * Makes the request. The prompt consists of the instructions and the user's turns. Images of all turns are inputs.
 * Texts of the model's turns are left out.
 */
function decode(body: JsonObject): WantedImages {
  if (!generateContentRequest.check(body)) throw generateContentRequest.explain(body);
  const request = decodeWithMedia(withoutImages(body), false);
  const texts = [...request.system];
  const images: ImageSource[] = [];
  for (const turn of request.turns) {
    if (turn.role === 'system') continue;
    for (const part of turn.parts) {
      if (part.kind === 'image') images.push(readImageText(urlOfMedia(part.source), part.at));
      else if (part.kind === 'text' && turn.role === 'user') texts.push(part.text);
      else if (part.kind !== 'text' && part.kind !== 'reasoning' && part.kind !== 'refusal')
        throw untranslatable(part.at);
    }
  }
  if (texts.length === 0)
    throw memberError(
      'missing_parameter',
      'contents',
      "'contents' has no text: expected a part with a 'text' that says what the image is to be.",
    );
  return {
    prompt: texts.join('\n\n'),
    images,
    ...decodeImageConfig(body),
    count: request.candidates,
    leftOut: unreadMembers(body, readForImages),
  };
}

/**
 * Returns the body without the members that request images, for `decodeWithMedia`: `imageConfig`, the same in
 * `responseFormat`, and IMAGE in the modalities.
 */
function withoutImages(body: JsonObject): JsonObject {
  const at = keyOf(body, 'generationConfig');
  const config = body[at];
  if (!isObject(config)) return body;
  const modalitiesAt = keyOf(config, 'responseModalities');
  const modalities = config[modalitiesAt];
  return {
    ...body,
    [at]: {
      ...withoutImageFormat(config),
      imageConfig: undefined,
      [snakeCase('imageConfig')]: undefined,
      [modalitiesAt]: Array.isArray(modalities)
        ? modalities.filter((modality) => !isImage(modality))
        : modalities,
    },
  };
}

const ratioText = /^([1-9]\d{0,3}):([1-9]\d{0,3})$/;
const sizeText = /^(512|[1-8](?=k))(?:k|px)?$/i;

function decodeImageConfig(body: JsonObject): Pick<WantedImages, 'ratio' | 'edge'> {
  const configAt = keyOf(body, 'generationConfig');
  const config = objectOf(memberOf(body, 'generationConfig'));
  const older = memberOf(config, 'imageConfig');
  const { value, at } = isObject(older)
    ? { value: older, at: `${configAt}.${keyOf(config, 'imageConfig')}` }
    : (imageFormatOf(config, configAt) ?? { value: null, at: configAt });
  const images = objectOf(value);
  return {
    ratio: placed(images, 'aspectRatio', at, readRatio),
    edge: placed(images, 'imageSize', at, readEdge),
  };
}

function placed(
  holder: JsonObject,
  name: string,
  holderAt: string,
  read: (text: string, at: string) => number | null,
): Placed<number> | null {
  const text = textOf(memberOf(holder, name));
  const at = `${holderAt}.${keyOf(holder, name)}`;
  const value = text === '' ? null : read(text, at);
  return value === null ? null : { value, at };
}

function readRatio(text: string, at: string): number | null {
  const plain = plainRatio(text);
  if (plain === '') return null;
  const [, across, down] = ratioText.exec(plain) ?? [];
  if (across === undefined || down === undefined) throw wrongValue(at, 'a ratio such as "16:9"');
  return Number(across) / Number(down);
}

/** Reads a size. `1K` means as many pixels in total as a square with edges of 1024. `512` is the edge itself. */
function readEdge(text: string, at: string): number | null {
  const plain = plainSize(text);
  if (plain === '') return null;
  const [, number] = sizeText.exec(plain) ?? [];
  if (number === undefined) throw wrongValue(at, '"1K", "2K" or "4K"');
  return number === '512' ? 512 : Number(number) * 1024;
}

function encode({ images, usage, model, id, framing }: MadeImages): string {
  const candidates = images.map(
    ({ mediaType, base64 }, index) =>
      `{"content":{"role":"model","parts":[{"inlineData":{"mimeType":${JSON.stringify(mediaType)},` +
      `"data":${JSON.stringify(base64)}}}]},"finishReason":"STOP","index":${index}}`,
  );
  const counted = usage === null ? '' : `,"usageMetadata":${encodeUsage(usage)}`;
  const json = `{"candidates":[${candidates.join()}]${counted},${answerEnd({ model, id })}}`;
  if (framing === null) return json;
  return framing === 'array' ? `[${json}]` : `data: ${json}\n\n`;
}
