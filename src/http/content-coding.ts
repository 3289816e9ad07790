import zlib from 'node:zlib';
import { errorCode, GatewayError } from '../errors.js';

type Decoder = (
  body: Buffer,
  options: { maxOutputLength: number },
  done: (error: Error | null, decoded: Buffer) => void,
) => void;

const decoders = new Map<string, Decoder>([
  ['gzip', zlib.gunzip],
  ['x-gzip', zlib.gunzip],
  ['deflate', zlib.inflate],
  ['br', zlib.brotliDecompress],
]);
const { zstdDecompress } = zlib as { zstdDecompress?: Decoder };
if (zstdDecompress !== undefined) decoders.set('zstd', zstdDecompress);

/** Supported content codings of request bodies, for `accept-encoding` in a 415 (RFC 9110 section 15.5.16). */
export const acceptedCodings = [...decoders.keys()].filter((name) => name !== 'x-gzip').join(', ');

/**
 * Returns the decoder for a content coding.
 * @param coding value of `content-encoding`, not empty
 * @throws {GatewayError} `unsupported_media_type`, with the list of supported codings
 */
export function decoderOf(coding: string): Decoder {
  const decoder = decoders.get(coding.trim().toLowerCase());
  if (decoder !== undefined) return decoder;
  throw new GatewayError(
    'unsupported_media_type',
    `The content-encoding of the body is not understood; send one of ${acceptedCodings}, or none.`,
  );
}

/** Decodes a compressed request body to at most `limit` bytes, in another thread. */
export function decodeBody(
  decoder: Decoder,
  body: Buffer,
  limit: number,
  done: (result: Buffer | GatewayError) => void,
): void {
  decoder(body, { maxOutputLength: limit }, (error, decoded) => {
    if (error === null) done(decoded);
    else if (errorCode(error) === 'ERR_BUFFER_TOO_LARGE')
      done(
        new GatewayError(
          'request_too_large',
          `The decoded body is larger than the ${limit} bytes allowed here.`,
        ),
      );
    else
      done(
        new GatewayError('invalid_request', 'The body cannot be decoded by its content-encoding.', {
          cause: error,
        }),
      );
  });
}
