import type { GatewayError } from '../../errors.js';
import type { ImageFile, ImageSource } from '../../media/image.js';
import type { JsonObject } from '../../wire/json.js';
import { memberError } from '../../wire/reading.js';

export type ImageOperation = 'generate' | 'edit';

/** The two forms of a body: the messages in `input` with `parameters` beside it, or `prompt` with settings beside it. */
export type ImageForm = 'input' | 'prompt';

export interface ImageSize {
  readonly width: number;
  readonly height: number;
}

/** How the images of an answer are given: where they are, or what they are. */
export type ImageFormat = 'url' | 'b64_json';

/** Members that hold images beside a prompt, the documented ones and one of many servers. */
export const imageMembers = ['images', 'image', 'mask'] as const;

/** A file of a form. */
export interface NamedFile extends ImageFile {
  readonly name: string;
}

/** What a client asks for, in whichever form. */
export interface ImageRequest {
  readonly operation: ImageOperation;
  readonly form: ImageForm;
  readonly prompt: string;
  /** One to sixteen for an edit, none for a generation. */
  readonly images: readonly ImageSource[];
  /** Tells by its transparent places where the first image is to be edited. */
  readonly mask: ImageSource | null;
  /** Files of a form beside them that only an upstream of the form's own protocol knows. */
  readonly otherFiles: readonly NamedFile[];
  /** What is not to be in the image. */
  readonly negativePrompt: string | null;
  /** Whether the prompt may be rewritten before it is used. */
  readonly promptExtend: boolean | null;
  readonly watermark: boolean | null;
  /** In pixels, or in a word of the vendor's. */
  readonly size: ImageSize | string | null;
  /** How many images. */
  readonly count: number | null;
  /** Null where the body does not say: then as the upstream gives them. The `input` form has URLs unless it says. */
  readonly responseFormat: ImageFormat | null;
  readonly stream: boolean;
  /** Every other setting beside the prompt or the input, as the client gave it. */
  readonly extras: JsonObject;
  /** Every other member of `parameters`, as the client gave it. */
  readonly parameters: JsonObject;
}

/** One call to an upstream. */
export interface ImageCall {
  /** Under the upstream's base URL. */
  readonly path: string;
  readonly contentType: string;
  /** Pieces in order. */
  readonly body: readonly Buffer[];
}

/** The 400 for an image, or a mask, in a body that asks for a new image. @param at its path */
export function imageOnGeneration(at: string): GatewayError {
  return memberError(
    'unsupported_parameter',
    at,
    `'${at}' is not supported here: an image is made of a text alone. Send images to POST /v1/images/edits.`,
  );
}

/** The 400 for a setting that the model's upstream cannot say and that may not be left out. @param at its path */
export function unsupportedByUpstream(at: string, detail: string): GatewayError {
  return memberError('unsupported_parameter', at, `'${at}' is not supported for this model: ${detail}.`);
}
