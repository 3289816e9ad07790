import { type GatewayRequest, post } from './gateway-request.js';
import { type JsonObject, listOf, objectOf, textOf } from './json.js';

/** The two forms of a body of the images endpoint. */
export type ImageProtocol = 'images' | 'imagesInput';

export interface ImageSettings {
  readonly model: string;
  /** `1024x1024`; empty leaves it to the model. */
  readonly size: string;
  /** Empty leaves it to the model: some refuse to be told. */
  readonly result: 'b64_json' | 'url' | '';
}

export interface SpeechSettings {
  readonly model: string;
  readonly voice: string;
  readonly format: string;
  /** Null for the usual speed. */
  readonly speed: number | null;
}

/** The formats of a speech. The last one is bare samples, which browsers do not play. */
export const speechFormats: readonly string[] = ['mp3', 'wav', 'opus', 'aac', 'flac', 'pcm'];

/** The sizes of images that are offered. */
export const imageSizes = ['512x512', '1024x1024', '1536x1024', '1024x1536'] as const;

export function imageRequest(
  protocol: ImageProtocol,
  { model, size, result }: ImageSettings,
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
  }
}

export function speechRequest(settings: SpeechSettings, text: string): GatewayRequest {
  const { model, voice, format, speed } = settings;
  const pace: JsonObject = speed === null ? {} : { speed };
  return post('/v1/audio/speech', { model, voice, input: text, response_format: format, ...pace });
}

/** An image of an answer: its bytes in base64, or where it is. */
export type AnswerImage =
  | { readonly kind: 'bytes'; readonly base64: string; readonly type: string }
  | { readonly kind: 'url'; readonly url: string };

/** Finds the images of an answer. */
export function readImages(body: unknown): AnswerImage[] {
  const { data, output_format: format } = objectOf(body);
  return listOf(data).flatMap((each): AnswerImage[] => {
    const { b64_json: base64, url } = objectOf(each);
    if (typeof base64 === 'string') return [{ kind: 'bytes', base64, type: imageType(base64, format) }];
    return typeof url === 'string' ? [{ kind: 'url', url }] : [];
  });
}

const signatures: readonly (readonly [start: string, type: string])[] = [
  ['iVBORw0KGgo', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['UklGR', 'image/webp'],
  ['R0lGOD', 'image/gif'],
];

/** What the first bytes say, else what the answer says. */
function imageType(base64: string, format: unknown): string {
  const found = signatures.find(([start]) => base64.startsWith(start));
  return found?.[1] ?? `image/${textOf(format) || 'png'}`;
}
