import type { BitWriter } from './bit-writer.js';
import { signed, unsigned } from './exp-golomb.js';

/** A picture's macroblocks in raster order, each of one colour: Y, Cb and Cr, a byte each from bit 16 down. */
export interface Macroblocks {
  readonly columns: number;
  readonly colours: Int32Array;
}

/** What is predicted where there is no neighbour: grey. */
const grey = 0x808080;
const verticalLuma = 0;
const horizontalLuma = 1;
const meanLuma = 2;
const meanChroma = 0;
const horizontalChroma = 1;
const verticalChroma = 2;
const longestPlainPrefix = 14;
const escapedFrom = 30;

/** How a block of coefficients begins (coeff_token, table 9-5): bits and their count. */
interface Tokens {
  readonly none: readonly [number, number];
  readonly single: readonly [number, number];
  readonly unit: readonly [number, number];
}

const lumaTokens: Tokens = { none: [0b1, 1], single: [0b000101, 6], unit: [0b01, 2] };
const chromaTokens: Tokens = { none: [0b01, 2], single: [0b000111, 6], unit: [0b1, 1] };

/**
 * Writes the macroblock at a position as Intra_16x16 (7.3.5): predicted from the one on its left, else from the one
 * above, with nothing but DC levels for the difference. `typeOffset` is 0 in I slices and 5 in P slices. The picture must
 * be that of the decoder in all macroblocks before. No block has AC levels, so nC is 0 everywhere (9.2.1).
 */
export function writeMacroblock(
  slice: BitWriter,
  { columns, colours }: Macroblocks,
  at: number,
  typeOffset: number,
): void {
  const hasLeft = at % columns > 0;
  const hasAbove = at >= columns;
  const predicted = (hasLeft ? colours[at - 1] : hasAbove ? colours[at - columns] : grey) ?? grey;
  const colour = colours[at] ?? grey;
  const luma = (colour >> 16) - (predicted >> 16);
  const blue = ((colour >> 8) & 0xff) - ((predicted >> 8) & 0xff);
  const red = (colour & 0xff) - (predicted & 0xff);
  const hasChroma = blue !== 0 || red !== 0;
  const lumaMode = hasLeft ? horizontalLuma : hasAbove ? verticalLuma : meanLuma;
  unsigned(slice, typeOffset + 1 + lumaMode + (hasChroma ? 4 : 0));
  unsigned(slice, hasLeft ? horizontalChroma : hasAbove ? verticalChroma : meanChroma);
  signed(slice, 0);
  writeLevel(slice, luma, lumaTokens);
  if (hasChroma) {
    writeLevel(slice, blue, chromaTokens);
    writeLevel(slice, red, chromaTokens);
  }
}

/** A block whose only level is its first, in CAVLC (9.2): token, sign or level, and no zeros before it. */
function writeLevel(slice: BitWriter, level: number, tokens: Tokens): void {
  if (level === 0) {
    slice.put(...tokens.none);
    return;
  }
  if (level === 1 || level === -1) {
    slice.put(...tokens.unit);
    slice.put(level < 0 ? 1 : 0, 1);
  } else {
    slice.put(...tokens.single);
    writeMagnitude(slice, level > 0 ? 2 * level - 4 : -2 * level - 3);
  }
  slice.put(1, 1);
}

/** level_prefix and level_suffix (9.2.2.1) of a code that is lessened by 2, as no trailing one came before. */
function writeMagnitude(slice: BitWriter, code: number): void {
  if (code < longestPlainPrefix) {
    slice.unary(code);
  } else if (code < escapedFrom) {
    slice.unary(longestPlainPrefix);
    slice.put(code - longestPlainPrefix, 4);
  } else {
    slice.unary(longestPlainPrefix + 1);
    slice.put(code - escapedFrom, 12);
  }
}
