import type { TextCodec } from '../../conversation/codec.js';
import { decodeAnswer } from './answer/decode.js';
import { encodeAnswer } from './answer/encode.js';
import { decodeRequest } from './request/decode.js';
import { encodeRequest } from './request/encode.js';
import { createDecoder } from './stream/decoder.js';
import { createEncoder } from './stream/encoder.js';

/** The messages protocol to and from the neutral types. */
export const messagesCodec: TextCodec = {
  decodeRequest,
  encodeRequest,
  decodeAnswer,
  encodeAnswer,
  createDecoder,
  createEncoder,
};
