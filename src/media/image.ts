import { GatewayError } from '../errors.js';

/** An image that a client gave, by URL or by its bytes. */
export type ImageSource =
  | { readonly kind: 'url'; readonly url: string; readonly at: string }
  | {
      readonly kind: 'bytes';
      readonly bytes: Buffer;
      /** Lower-case, such as `image/png`; `application/octet-stream` if unknown. */
      readonly mediaType: string;
      readonly filename: string | null;
      /** Path of the image in the client's body, for error messages. */
      readonly at: string;
    };

/** An image by URL, still to be fetched. */
export type ImageUrl = Extract<ImageSource, { readonly kind: 'url' }>;
/** An image by its bytes. */
export type ImageBytes = Extract<ImageSource, { readonly kind: 'bytes' }>;

/** A file as it was uploaded or fetched. */
export interface ImageFile {
  readonly data: Buffer;
  /** Media type sent with it, or null. */
  readonly contentType: string | null;
  readonly filename: string | null;
}

/**
 * Reads an image from the bytes of a file. Clients that do not know a file's type send `application/octet-stream`; the
 * type is then detected from the first bytes.
 * @param at path of the image in the client's body
 * @throws {GatewayError} of status 400, naming that path, for a file without bytes
 */
export function readImageFile({ data, contentType, filename }: ImageFile, at: string): ImageBytes {
  if (data.length === 0)
    throw new GatewayError('invalid_value', `Invalid value for '${at}': the file is empty.`, { param: at });
  return { kind: 'bytes', bytes: data, mediaType: declaredImageType(contentType, data), filename, at };
}

/** Media type of unknown content (RFC 2046 section 4.5.1). */
export const unknownType = 'application/octet-stream';

/** Signatures of file types: bytes at offsets. */
const signatures: readonly {
  readonly type: string;
  readonly parts: readonly (readonly [number, string])[];
}[] = [
  { type: 'image/png', parts: [[0, '\x89PNG\r\n\x1a\n']] },
  { type: 'image/jpeg', parts: [[0, '\xff\xd8\xff']] },
  {
    type: 'image/webp',
    parts: [
      [0, 'RIFF'],
      [8, 'WEBP'],
    ],
  },
  { type: 'image/gif', parts: [[0, 'GIF87a']] },
  { type: 'image/gif', parts: [[0, 'GIF89a']] },
];

/** Bytes of a file that `imageType` reads. */
export const signatureBytes = 12;

/** A valid media type (RFC 6838 section 4.2). */
const wellFormed = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$/;

const extensions: ReadonlyMap<string, string> = new Map([
  ['image/png', 'png'],
  ['image/jpeg', 'jpg'],
  ['image/webp', 'webp'],
  ['image/gif', 'gif'],
]);

/**
 * Detects the media type of an image from its first bytes: PNG, JPEG, WebP or GIF.
 * @returns null for anything else
 */
export function imageType(bytes: Buffer): string | null {
  const head = bytes.toString('latin1', 0, signatureBytes);
  return signatures.find(({ parts }) => parts.every(([at, text]) => head.startsWith(text, at)))?.type ?? null;
}

/**
 * The media type of an image that was sent with one, in lower case and without parameters. If the declared type is not
 * an image type, it is detected from the first bytes; if that fails too, the declared type is kept, or
 * `application/octet-stream` if that is invalid.
 */
export function declaredImageType(declared: string | null, bytes: Buffer): string {
  const [essence = ''] = (declared ?? '').split(';', 1);
  const named = essence.trim().toLowerCase();
  const type = wellFormed.test(named) ? named : '';
  // An unregistered name that many clients use for JPEG.
  if (type === 'image/jpg') return 'image/jpeg';
  return type.startsWith('image/') ? type : (imageType(bytes) ?? (type || unknownType));
}

/** The usual file extension of a media type, without a dot; `bin` for an unknown type. */
export function imageExtension(mediaType: string): string {
  return extensions.get(mediaType) ?? 'bin';
}
