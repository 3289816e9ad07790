import { GatewayError } from '../../src/errors.js';
import { MultipartDecoder, type MultipartLimits, type PartHead } from '../../src/wire/multipart.js';

export const wide: MultipartLimits = {
  parts: 64,
  headerBytes: 4096,
  fieldBytes: 65_536,
  fileBytes: 1_048_576,
};

/** A part as the decoder told it; `end` is -1 for one that did not end. */
interface DecodedPart extends PartHead {
  readonly start: number;
  /** In latin1: the bytes that were given, one after the other. */
  data: string;
  end: number;
}

interface Decoding {
  readonly parts: readonly DecodedPart[];
  /** What was thrown, or null. */
  readonly error: GatewayError | null;
  /** Most bytes that were held at any time. */
  readonly held: number;
}

/** A form to decode. */
interface Given {
  readonly body: Buffer;
  readonly boundary: string;
  readonly limits?: MultipartLimits;
}

/**
 * Decodes a form in pieces that end at `cuts`. Each piece is spoiled behind its push: what is still needed of it must
 * have been kept.
 * @throws {Error} for anything thrown that is no GatewayError, and for a call of the receiver behind an error
 */
export function decode({ body, boundary, limits = wide }: Given, cuts: readonly number[]): Decoding {
  const parts: DecodedPart[] = [];
  let error: GatewayError | null = null;
  const last = () => {
    if (error !== null) throw new Error('the receiver was called behind an error');
    return parts[parts.length - 1] as DecodedPart;
  };
  const decoder = new MultipartDecoder(boundary, limits, {
    onPart(head, start) {
      last();
      parts.push({ ...head, start, data: '', end: -1 });
    },
    onPartData(bytes) {
      if (bytes.length === 0) throw new Error('no data');
      last().data += bytes.toString('latin1');
    },
    onPartEnd(end) {
      last().end = end;
    },
  });
  let held = 0;
  const attempt = (work: () => void) => {
    try {
      work();
    } catch (thrown) {
      if (!(thrown instanceof GatewayError)) throw thrown;
      if (error !== null && error !== thrown) throw new Error('the second error is another one');
      error = thrown;
    }
    held = Math.max(held, decoder.held);
  };
  let from = 0;
  for (const to of [...cuts, body.length]) {
    const piece = Buffer.from(body.subarray(from, to));
    attempt(() => decoder.push(piece));
    piece.fill(0x2d);
    from = to;
  }
  attempt(() => decoder.end());
  return { parts, error, held };
}

/** Name, filename, content type and content of each part, for a form that has to be good. */
export function contents({ parts, error }: Decoding): (string | null)[][] {
  if (error !== null) throw error;
  return parts.map(({ name, filename, contentType, data }) => [
    name,
    filename,
    contentType,
    Buffer.from(data, 'latin1').toString('utf8'),
  ]);
}
