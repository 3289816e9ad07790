import { GatewayError } from '../errors.js';
import type { ImageBytes } from './image.js';
import { declaredImageType } from './image-type.js';

/** A file as it was uploaded or fetched. */
export interface ImageFile {
  readonly data: Buffer;
  /** Media type that came with it, or null. */
  readonly contentType: string | null;
  readonly filename: string | null;
}

/**
 * Reads an image from the bytes of a file. Clients that do not know a file's type send
 * `application/octet-stream`: then the first bytes tell it.
 * @param at path of the image in the client's body
 * @throws {GatewayError} of status 400, naming that path, for a file without bytes
 */
export function readImageFile({ data, contentType, filename }: ImageFile, at: string): ImageBytes {
  if (data.length === 0)
    throw new GatewayError('invalid_value', `Invalid value for '${at}': the file is empty.`, { param: at });
  return { kind: 'bytes', bytes: data, mediaType: declaredImageType(contentType, data), filename, at };
}
