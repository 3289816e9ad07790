import type { GatewayError } from '../../errors.js';
import type { ImageFile, ImageSource } from '../../media/image.js';
import { type JsonObject, memberError } from '../../wire/json.js';

export type ImageOperation = 'generate' | 'edit';

/** The two forms of a body: messages in `input` with `parameters`, or `prompt` with settings beside it. */
export type ImageForm = 'input' | 'prompt';

export interface ImageSize {
  readonly width: number;
  readonly height: number;
}

/** How an answer contains images: as URLs or as bytes. */
export type ImageFormat = 'url' | 'b64_json';

/** Members with images beside a prompt: the documented ones, and one that many servers accept. */
export const imageMembers = ['images', 'image', 'mask'] as const;

/** A file of a form. */
export interface NamedFile extends ImageFile {
  readonly name: string;
}

/** A client's request, in whichever form it was sent. */
export interface ImageRequest {
  readonly operation: ImageOperation;
  readonly form: ImageForm;
  readonly prompt: string;
  /** One to sixteen for an edit, none for a generation. */
  readonly images: readonly ImageSource[];
  /** Its transparent areas mark where the first image is to be edited. */
  readonly mask: ImageSource | null;
  /** Other files of a form, which only an upstream of the form's own protocol knows. */
  readonly otherFiles: readonly NamedFile[];
  /** What the image must not show. */
  readonly negativePrompt: string | null;
  /** Whether the prompt may be rewritten before it is used. */
  readonly promptExtend: boolean | null;
  readonly watermark: boolean | null;
  /** In pixels, or a word of the vendor's. */
  readonly size: ImageSize | string | null;
  /** Number of images. */
  readonly count: number | null;
  /** Null if the body does not say: the upstream decides. In the `input` form, URLs are the default. */
  readonly responseFormat: ImageFormat | null;
  readonly stream: boolean;
  /** Every other setting beside the prompt or the input, as the client wrote it. */
  readonly extras: JsonObject;
  /** Every other member of `parameters`, as the client wrote it. */
  readonly parameters: JsonObject;
  /** Names of what is in `input` besides, which no request has that is written again. */
  readonly unread: readonly string[];
}

/** One call to an upstream. */
export interface ImageCall {
  /** Relative to the upstream's base URL. */
  readonly path: string;
  readonly contentType: string;
  /** In pieces, in order. */
  readonly body: readonly Buffer[];
}

/** Makes the 400 for an image or mask in a body that requests a new image. @param at path of the image */
export function imageOnGeneration(at: string): GatewayError {
  return memberError(
    'unsupported_parameter',
    at,
    `'${at}' is not supported here: an image is made of a text alone. Send images to POST /v1/images/edits.`,
  );
}

/**
 * Makes the 400 for a setting that the model's upstream lacks and that may not be left out. @param at path of the
 * setting
 */
export function unsupportedByUpstream(at: string, detail: string): GatewayError {
  return memberError('unsupported_parameter', at, `'${at}' is not supported for this model: ${detail}.`);
}
