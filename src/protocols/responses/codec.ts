import type { TextCodec } from '../../conversation/codec.js';
import { decodeAnswer } from './answer/decode.js';
import { encodeAnswer } from './answer/encode.js';
import { decodeCompactRequest, decodeRequest } from './request/decode.js';
import { encodeRequest } from './request/encode.js';
import { createDecoder } from './stream/decoder.js';
import { createEncoder } from './stream/encoder.js';

/** The responses protocol's translation. */
export const responsesCodec: TextCodec = {
  decodeRequest,
  encodeRequest,
  decodeAnswer,
  encodeAnswer,
  createDecoder,
  createEncoder,
};

/** The same for a compaction on its own, whose body is the question for one. */
export const compactCodec: TextCodec = { ...responsesCodec, decodeRequest: decodeCompactRequest };
