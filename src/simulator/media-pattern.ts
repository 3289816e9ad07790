/** Every block begins with its own number, in eight bytes; the rest is the same noise in all of them. */
const blockLength = 1024 * 1024;
const numberLength = 8;
const pieceLength = 256 * 1024;

/**
 * Any part of an endless sequence of bytes that is the same each time and of which no two megabytes are equal. Costs no
 * memory but one block, however much is read.
 * @param range first byte, and the one behind the last
 */
export function* patternBytes(range: { readonly from: number; readonly to: number }): Generator<Buffer> {
  let at = range.from;
  while (at < range.to) {
    const block = Math.floor(at / blockLength);
    const offset = at - block * blockLength;
    const left = Math.min(range.to - at, blockLength - offset);
    const piece =
      offset < numberLength
        ? numberOf(block).subarray(offset, offset + left)
        : noise().subarray(offset, offset + Math.min(left, pieceLength));
    at += piece.length;
    yield piece;
  }
}

function numberOf(block: number): Buffer {
  const bytes = Buffer.alloc(numberLength);
  bytes.writeBigUInt64BE(BigInt(block));
  return bytes;
}

let made: Buffer | null = null;

/** Marsaglia's xorshift over 32 bits, from a fixed seed. */
function noise(): Buffer {
  if (made === null) {
    made = Buffer.allocUnsafe(blockLength);
    let state = 0x9e3779b9;
    for (let at = 0; at < blockLength; at += 4) {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      made.writeInt32LE(state | 0, at);
    }
  }
  return made;
}
