import zlib from 'node:zlib';
import { errorCode, GatewayError } from '../errors.js';

interface DecoderOptions {
  readonly maxOutputLength: number;
  readonly chunkSize: number;
  readonly params?: Readonly<Record<number, number>>;
}

type Decode = (
  body: Buffer,
  options: DecoderOptions,
  done: (error: Error | null, decoded: Buffer) => void,
) => void;

/** A decoder for request bodies of one content coding. */
export interface Decoder {
  readonly decode: Decode;
  /** Returns the largest number of decoded bytes that the decoder of a body keeps to refer to. */
  readonly windowBytes: (body: Buffer) => number;
  readonly params?: Readonly<Record<number, number>>;
}

const smallWindow = 32 * 1024;
const inflater = { windowBytes: () => smallWindow };

/** Larger windows are refused: no sender may use them (RFC 9659 section 3). */
const zstdWindowLog = 23;
const leastChunkBytes = 16 * 1024;
const mostChunkBytes = 64 * 1024;

const decoders = new Map<string, Decoder>([
  ['gzip', { ...inflater, decode: zlib.gunzip }],
  ['x-gzip', { ...inflater, decode: zlib.gunzip }],
  ['deflate', { ...inflater, decode: zlib.inflate }],
  ['br', { decode: zlib.brotliDecompress, windowBytes: brotliWindow }],
]);
const { zstdDecompress, constants } = zlib as {
  zstdDecompress?: Decode;
  constants: { readonly ZSTD_d_windowLogMax?: number };
};
if (zstdDecompress !== undefined && constants.ZSTD_d_windowLogMax !== undefined)
  decoders.set('zstd', {
    decode: zstdDecompress,
    windowBytes: () => 1 << zstdWindowLog,
    params: { [constants.ZSTD_d_windowLogMax]: zstdWindowLog },
  });

/** Reads the size of the window from the first bits of a stream (RFC 7932 section 9.1). */
function brotliWindow(body: Buffer): number {
  const first = body[0] ?? 0;
  const upper = (first >> 1) & 7;
  const lower = (first >> 4) & 7;
  if ((first & 1) === 0) return 1 << 16;
  if (upper !== 0) return 1 << (17 + upper);
  return 1 << (lower === 0 ? 17 : 8 + lower);
}

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
  { decode, params }: Decoder,
  body: Buffer,
  limit: number,
  done: (result: Buffer | GatewayError) => void,
): void {
  // What fits one chunk is kept with all of it, and small chunks take longer.
  const chunkSize = Math.min(mostChunkBytes, Math.max(leastChunkBytes, limit >> 2));
  const options = params === undefined ? undefined : { params };
  decode(body, { maxOutputLength: limit, chunkSize, ...options }, (error, decoded) => {
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
