import { composeAnswer } from '../answer/answer.js';
import type { Answer, Prompt } from '../answer/prompt.js';
import { isObject, type JsonObject } from '../http/json.js';
import { RequestError } from '../http/request-error.js';
import { pngImage } from '../media/png.js';

/** The models that answer with an image. */
export const imageModels: readonly string[] = ['sim-image'];

/** Width and height at 1K of the ratios that the real models have. */
const ratios = {
  '1:1': [1024, 1024],
  '2:3': [848, 1264],
  '3:2': [1264, 848],
  '3:4': [896, 1200],
  '4:3': [1200, 896],
  '4:5': [928, 1152],
  '5:4': [1152, 928],
  '9:16': [768, 1376],
  '16:9': [1376, 768],
  '21:9': [1584, 672],
} as const;
/** Scale of the edges, and tokens of an image, which do not depend on its size. */
const sizes = {
  '1K': { factor: 1, tokens: 1120 },
  '2K': { factor: 2, tokens: 1120 },
  '4K': { factor: 4, tokens: 2000 },
} as const;
/** The same as at the images endpoints; the longer edge of a 4K image is clipped to it. */
const longestEdge = 4096;

/** The image that a request asks for. */
export interface ImageWish {
  readonly width: number;
  readonly height: number;
  readonly tokens: number;
  /** Whether text precedes the image. */
  readonly withText: boolean;
}

/** An answer, with its image if it has one. */
export interface IllustratedAnswer extends Answer {
  readonly image: ImageWish | null;
}

/**
 * The modalities in `generationConfig`, in capitals, since clients write them in any case.
 * @returns none if they are left to the model
 */
export function modalitiesOf({ responseModalities: given }: JsonObject): readonly string[] {
  const list: readonly unknown[] = Array.isArray(given) ? given : given === undefined ? [] : [given];
  return list.map((each) => String(each).toUpperCase()).filter((each) => each !== 'MODALITY_UNSPECIFIED');
}

/**
 * Reads the `generationConfig` for a model that makes images. As with the real models, a request without modalities gets
 * text and an image. TEXT alone, functions, JSON and several candidates are refused.
 * @throws RequestError
 */
export function readImageWish(config: JsonObject, model: string): ImageWish {
  const modalities = modalitiesOf(config);
  const knowsAll = modalities.every((each) => each === 'TEXT' || each === 'IMAGE');
  if (modalities.length > 0 && !(knowsAll && modalities.includes('IMAGE'))) {
    throw new RequestError(
      400,
      `The requested combination of response modalities (${modalities.join(', ')}) is not supported by the model. models/${model} accepts the following combinations of response modalities:\n* IMAGE\n* IMAGE, TEXT\n`,
    );
  }
  const { candidateCount, responseMimeType: type, responseSchema, responseJsonSchema } = config;
  if (candidateCount !== undefined && candidateCount !== 1) {
    throw disabled('Multiple candidates', model);
  }
  if ((type ?? 'text/plain') !== 'text/plain' || (responseSchema ?? responseJsonSchema) !== undefined) {
    throw disabled('JSON mode', model);
  }
  const wanted: JsonObject = isObject(config.imageConfig) ? config.imageConfig : {};
  const [width, height] = oneOf(ratios, wanted.aspectRatio ?? '1:1', 'aspect_ratio');
  const { factor, tokens } = oneOf(sizes, wanted.imageSize ?? '1K', 'image_size');
  const scale = Math.min(factor, longestEdge / Math.max(width, height));
  return {
    width: Math.round(width * scale),
    height: Math.round(height * scale),
    tokens,
    withText: modalities.length === 0 || modalities.includes('TEXT'),
  };
}

/** @throws RequestError if functions are declared for a model that cannot call any */
export function refuseFunctions(count: number, model: string): void {
  if (count > 0 && imageModels.includes(model)) {
    throw disabled('Function calling', model);
  }
}

function disabled(what: string, model: string): RequestError {
  return new RequestError(400, `${what} is not enabled for models/${model}`);
}

function oneOf<Value>(table: Readonly<Record<string, Value>>, word: unknown, name: string): Value {
  const found = typeof word === 'string' && Object.hasOwn(table, word) ? table[word] : undefined;
  if (found === undefined) {
    throw new RequestError(
      400,
      `* GenerateContentRequest.generation_config.image_config.${name}: must be one of ${Object.keys(table).join(', ')}, not ${JSON.stringify(word).slice(0, 80)}.`,
    );
  }
  return found;
}

/**
 * Composes the answer to a prompt.
 * @param wish null if no image is requested
 * @param index number among several answers
 */
export function composeIllustrated(prompt: Prompt, wish: ImageWish | null, index: number): IllustratedAnswer {
  const answer = composeAnswer(prompt, index);
  if (wish === null || answer.refusal !== '') {
    return { ...answer, image: null };
  }
  const said: Answer = wish.withText
    ? answer
    : { ...answer, text: '', finish: 'stop', stopSequence: null, outputTokens: answer.reasoningTokens };
  if (said.stopSequence !== null || said.finish === 'length') {
    return { ...said, image: null };
  }
  const outputTokens = said.outputTokens + wish.tokens;
  // An image is never cut.
  return outputTokens > prompt.maxTokens
    ? { ...said, finish: 'length', image: null }
    : { ...said, outputTokens, image: wish };
}

/** The part with the image of an answer, the same for the same request. */
export function imagePart({ width, height }: ImageWish, digest: string): object {
  const image = pngImage({ width, height, seed: digest.slice(0, 12) });
  return { inlineData: { mimeType: 'image/png', data: image.toString('base64') } };
}
