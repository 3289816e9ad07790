import type { Usage } from '../../conversation/usage.js';
import { GatewayError } from '../../errors.js';
import { imageType, signatureBytes, unknownType } from '../../media/image.js';
import { dataUrl } from '../../wire/data-url.js';
import { type JsonObject, objectOf } from '../../wire/json.js';
import type { MadeImage } from '../images-translation.js';
import type { ImageFormat } from './request.js';

/** An image of an answer. It has a `url`, `base64` or both. */
export interface AnswerImage {
  readonly url: string | null;
  readonly base64: string | null;
  /** The prompt that was used in place of the client's. */
  readonly revisedPrompt: string | null;
  /** Every other member of its element, as the upstream wrote it. */
  readonly members: JsonObject;
}

/** An upstream's answer, independent of its style. */
export interface ImageAnswer {
  /** Unix time in seconds, or null. */
  readonly created: number | null;
  /** At least one. */
  readonly images: readonly AnswerImage[];
  /** All that is charged. Null if the upstream reports none. */
  readonly usage: Usage | null;
  /** `WIDTHxHEIGHT` */
  readonly size: string | null;
  /** `png`, `jpeg` or `webp` */
  readonly outputFormat: string | null;
  readonly quality: string | null;
  /** The members of the answer beside its images, as the upstream wrote them, as far as OpenAI's API has them. */
  readonly members: JsonObject;
}

/**
 * Lists the URLs, without duplicates, whose bytes must be fetched before the answer can be written in the client's
 * format. `withBytes` takes the result.
 */
export function missingBytes({ images }: ImageAnswer, format: ImageFormat | null): readonly string[] {
  if (format !== 'b64_json') return [];
  const urls = images.flatMap(({ url, base64 }) => (base64 === null && url !== null ? [url] : []));
  return [...new Set(urls)];
}

/** Adds the bytes of fetched images, by their URLs, to the answer. */
export function withBytes(answer: ImageAnswer, fetched: ReadonlyMap<string, Buffer>): ImageAnswer {
  const put = (image: AnswerImage): AnswerImage => {
    const bytes = image.base64 === null && image.url !== null ? fetched.get(image.url) : undefined;
    return bytes === undefined ? image : { ...image, base64: bytes.toString('base64') };
  };
  return { ...answer, images: answer.images.map(put) };
}

/**
 * Writes an answer for clients of both forms. Each image has a URL or base64: as requested, or as the upstream returned
 * it if nothing was requested. The URL of an image without one is a data URL.
 * @param now Unix time in milliseconds, for an answer that does not say when it was made
 * @returns JSON text
 * @throws {GatewayError} `internal_error` if base64 was requested and `missingBytes` lists an image
 */
export function writeAnswer(answer: ImageAnswer, format: ImageFormat | null, now: number): string {
  const { usage, members } = answer;
  return JSON.stringify({
    ...withoutNulls(members),
    created: answer.created ?? Math.floor(now / 1000),
    data: answer.images.map((image) => ({
      ...withoutNulls(image.members),
      ...placeOf(image, format ?? (image.url === null ? 'b64_json' : 'url'), answer.outputFormat),
      revised_prompt: image.revisedPrompt ?? undefined,
    })),
    output_format: answer.outputFormat ?? undefined,
    quality: answer.quality ?? undefined,
    size: answer.size ?? undefined,
    // Clients rely on the three numbers of every usage.
    usage:
      usage === null
        ? (members.usage ?? undefined)
        : { ...writtenUsage(usage), ...withoutNulls(objectOf(members.usage)) },
  });
}

function withoutNulls(members: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null));
}

function writtenUsage({ input, output }: Usage): JsonObject {
  return { input_tokens: input, output_tokens: output, total_tokens: input + output };
}

/**
 * Returns the images of an answer as bytes with their media types.
 * @throws {GatewayError} `internal_error` if `missingBytes` for base64 lists an image
 */
export function madeImages({ images, outputFormat }: ImageAnswer): readonly MadeImage[] {
  return images.map(({ base64 }) => {
    const bytes = requireBase64(base64);
    return { mediaType: typeOfBase64(bytes, outputFormat), base64: bytes };
  });
}

function placeOf(
  { url, base64 }: AnswerImage,
  format: ImageFormat,
  outputFormat: string | null,
): { readonly url: string } | { readonly b64_json: string } {
  if (format === 'b64_json') return { b64_json: requireBase64(base64) };
  return { url: url ?? dataUrl(typeOfBase64(base64 ?? '', outputFormat), base64 ?? '') };
}

function requireBase64(base64: string | null): string {
  if (base64 !== null) return base64;
  throw new GatewayError('internal_error', null, { cause: 'an image of the answer was not fetched' });
}

function typeOfBase64(base64: string, outputFormat: string | null): string {
  const head = Buffer.from(base64.slice(0, Math.ceil(signatureBytes / 3) * 4), 'base64');
  const named =
    outputFormat === null ? unknownType : `image/${outputFormat === 'svg' ? 'svg+xml' : outputFormat}`;
  return imageType(head) ?? named;
}

/** Returns true for bytes that begin as an image of a usual format, other than SVG. */
export function isKnownImage(bytes: Buffer): boolean {
  return imageType(bytes) !== null;
}
