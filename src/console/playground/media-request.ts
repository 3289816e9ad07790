import { type GatewayRequest, generateContentPath, post } from './gateway-request.js';
import { type JsonObject, listOf, objectOf, textOf } from './json.js';

/** The two body forms of the images endpoint, and generateContent, whose answers can contain images. */
export type ImageProtocol = 'images' | 'imagesInput' | 'generateContent';

export interface ImageSettings {
  readonly model: string;
  /** `1024x1024`, for the images endpoint; empty leaves it to the model. */
  readonly size: string;
  /** For the images endpoint. Empty leaves it to the model, since some refuse the member. */
  readonly result: 'b64_json' | 'url' | '';
  /** `16:9`, for generateContent; empty leaves it to the model. */
  readonly ratio: string;
  /** `1K`, for generateContent. Empty leaves it to the model, since some refuse the member. */
  readonly resolution: string;
}

export interface SpeechSettings {
  readonly model: string;
  readonly voice: string;
  readonly format: string;
  /** Null for the default speed. */
  readonly speed: number | null;
}

/** The formats of speech. The last one is raw samples, which browsers do not play. */
export const speechFormats: readonly string[] = ['mp3', 'wav', 'opus', 'aac', 'flac', 'pcm'];

/** The aspect ratios of images of generateContent. */
export const imageRatios = ['1:1', '2:3', '3:2', '3:4', '4:3', '4:5', '5:4', '9:16', '16:9', '21:9'] as const;

/** The sizes of images of generateContent. */
export const imageResolutions = ['1K', '2K', '4K'] as const;

/** The image sizes offered. */
export const imageSizes = ['512x512', '1024x1024', '1536x1024', '1024x1536'] as const;

export function imageRequest(
  protocol: ImageProtocol,
  { model, size, result, ratio, resolution }: ImageSettings,
  prompt: string,
): GatewayRequest {
  const answerForm: JsonObject = result === '' ? {} : { response_format: result };
  switch (protocol) {
    case 'images': {
      const pixels: JsonObject = size === '' ? {} : { size };
      return post('/v1/images/generations', { model, prompt, ...pixels, ...answerForm });
    }
    case 'imagesInput': {
      const parameters: JsonObject = size === '' ? {} : { parameters: { size: size.replace('x', '*') } };
      const input = { messages: [{ role: 'user', content: [{ text: prompt }] }] };
      return post('/v1/images/generations', { model, input, ...parameters, ...answerForm });
    }
    case 'generateContent': {
      const imageConfig: JsonObject = {
        ...(ratio === '' ? {} : { aspectRatio: ratio }),
        ...(resolution === '' ? {} : { imageSize: resolution }),
      };
      return post(generateContentPath(model, 'generateContent'), {
        contents: [{ role: 'user', parts: [{ text: prompt }] }],
        generationConfig: {
          // Some models return no image without a text.
          responseModalities: ['TEXT', 'IMAGE'],
          ...(Object.keys(imageConfig).length === 0 ? {} : { imageConfig }),
        },
      });
    }
  }
}

export function speechRequest(settings: SpeechSettings, text: string): GatewayRequest {
  const { model, voice, format, speed } = settings;
  const pace: JsonObject = speed === null ? {} : { speed };
  return post('/v1/audio/speech', { model, voice, input: text, response_format: format, ...pace });
}

/** An image of an answer, as base64 or by URL. */
export type AnswerImage =
  | { readonly kind: 'bytes'; readonly base64: string; readonly type: string }
  | { readonly kind: 'url'; readonly url: string };

/** Finds the images in an answer of the images endpoint or of generateContent. */
export function readImages(body: unknown): AnswerImage[] {
  const { data, output_format: format, candidates } = objectOf(body);
  const images = listOf(data).flatMap((each): AnswerImage[] => {
    const { b64_json: base64, url } = objectOf(each);
    if (typeof base64 === 'string')
      return [{ kind: 'bytes', base64, type: imageType(base64, `image/${textOf(format) || 'png'}`) }];
    return typeof url === 'string' ? [{ kind: 'url', url }] : [];
  });
  return [...images, ...listOf(candidates).flatMap(imagesInCandidate)];
}

/** The images among the parts of a candidate, except those of its thoughts. */
function imagesInCandidate(candidate: unknown): AnswerImage[] {
  const parts = listOf(objectOf(objectOf(candidate).content).parts).map(objectOf);
  return parts.flatMap(({ inlineData, thought }): AnswerImage[] => {
    const { data: base64, mimeType } = objectOf(inlineData);
    if (typeof base64 !== 'string' || thought === true) return [];
    const type = textOf(mimeType);
    return type.startsWith('image/') ? [{ kind: 'bytes', base64, type: imageType(base64, type) }] : [];
  });
}

const signatures: readonly (readonly [start: string, type: string])[] = [
  ['iVBORw0KGgo', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['UklGR', 'image/webp'],
  ['R0lGOD', 'image/gif'],
];

/** The type by the first bytes, else as declared in the answer. */
function imageType(base64: string, said: string): string {
  const found = signatures.find(([start]) => base64.startsWith(start));
  return found?.[1] ?? said;
}
