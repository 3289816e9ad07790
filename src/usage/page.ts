import { requestSeries } from '../wire/head.js';
import {
  type CallGroup,
  type CallTable,
  column,
  fifthColumns,
  keptColumns,
  rowLength,
  thirdColumns,
} from './call-table.js';

/** Version of the form of pages with characters. Those of rows have the fourth; see `writeCallLine`. */
export const version = 6;
/** Versions of all other pages, which gateways of earlier versions read too: with video tokens or places, and without. */
export const fifthVersion = 5;
export const thirdVersion = 3;

/** Serializes the calls of a table as a page of the ledger. */
export function writePage(table: CallTable): string {
  const { at, rows, length } = table;
  const form = formOf(table);
  const columns = packColumns(rows, rowLength, columnsOf[form], length).toString('base64');
  const groups = form === thirdVersion ? table.callGroups.map(withoutGeo) : table.callGroups;
  const [callGroups, series, ids] = [groups, seriesOf(table), table.ids].map((part) => JSON.stringify(part));
  const outline = `"v":${form},"at":${at},"manners":${callGroups},"series":${series},"ids":${ids}`;
  return `{${outline},"calls":${length},"columns":"${columns}"}`;
}

const columnsOf = {
  [version]: keptColumns,
  [fifthVersion]: fifthColumns,
  [thirdVersion]: thirdColumns,
} as const;

/** The oldest form that has everything of a table. */
function formOf(table: CallTable): keyof typeof columnsOf {
  if (isUsed(table, column.characters)) return version;
  const isThird =
    !isUsed(table, column.videoInputTokens) && table.callGroups.every(({ geo }) => geo === null);
  return isThird ? thirdVersion : fifthVersion;
}

function isUsed({ rows, length }: CallTable, column: number): boolean {
  const behind = length * rowLength;
  for (let index = column; index < behind; index += rowLength) if (rows[index] !== 0) return true;
  return false;
}

/** Its members are written in this order. */
function withoutGeo(group: CallGroup): Omit<CallGroup, 'geo'> {
  const { keyId, groups, protocol, model, target, status, outcome, tokensKnown } = group;
  return { keyId, groups, protocol, model, target, status, outcome, tokensKnown };
}

/** The prefix of the numbered ids of a table's calls; null if it has no numbered ids. */
function seriesOf({ ids, length }: CallTable): string | null {
  return ids.length < length ? requestSeries : null;
}

/** Widths of a number in bytes: 0 if all are the same whole number, 8 if they are not whole or lie far apart. */
const widths = [0, 1, 2, 4, 8] as const;
type Width = (typeof widths)[number];

const double = 8;
const headBytes = 1 + double;

/** Output buffer of `packColumns`; reused, since it holds the columns of one caller at a time. */
let bytes = Buffer.alloc(0);

/**
 * Packs a table of numbers column by column, since most columns hold similar numbers. For each column: the width of its
 * numbers (a byte), the smallest of them (a double), and each number's difference to that. Numbers of width 8 are doubles
 * as they are. Everything is little-endian.
 * @param rows the rows in sequence
 * @param rowLength numbers in a row
 * @param columns leading columns to pack
 * @param count number of rows
 * @returns bytes that are valid until the next call
 */
export function packColumns(rows: Float64Array, rowLength: number, columns: number, count: number): Buffer {
  const most = columns * (headBytes + double * count);
  if (bytes.length < most) bytes = Buffer.allocUnsafeSlow(most);
  const packed = bytes;
  const behind = count * rowLength;
  let end = 0;
  for (let column = 0; column < columns; column++) {
    const first = rows[column] as number;
    let least = first;
    let greatest = first;
    let areWhole = first === Math.floor(first);
    let index = column + rowLength;
    // Most columns repeat one number.
    while (index < behind && rows[index] === first) index += rowLength;
    for (; index < behind; index += rowLength) {
      const value = rows[index] as number;
      if (value < least) least = value;
      if (value > greatest) greatest = value;
      if (value !== Math.floor(value)) areWhole = false;
    }
    const width = areWhole ? widthOf(greatest - least) : double;
    packed[end] = width;
    packed.writeDoubleLE(width === double ? 0 : least, end + 1);
    end += headBytes;
    if (width === 0) continue;
    for (let index = column; index < behind; index += rowLength, end += width) {
      if (width === double) packed.writeDoubleLE(rows[index] as number, end);
      else writeWhole(packed, ((rows[index] as number) - least) | 0, width, end);
    }
  }
  return packed.subarray(0, end);
}

function widthOf(span: number): Width {
  if (span <= 0) return 0;
  if (span < 0x100) return 1;
  if (span < 0x1_0000) return 2;
  return span < 0x1_0000_0000 ? 4 : double;
}

function writeWhole(packed: Buffer, value: number, width: Width, at: number): void {
  packed[at] = value;
  if (width === 1) return;
  packed[at + 1] = value >> 8;
  if (width === 2) return;
  packed[at + 2] = value >> 16;
  packed[at + 3] = value >> 24;
}

/** Unpacks the output of `packColumns`. @returns null for bytes that do not have this many columns and rows */
export function unpackColumns(packed: Buffer, columns: number, count: number): Float64Array | null {
  const rows = new Float64Array(columns * count);
  let at = 0;
  for (let column = 0; column < columns; column++) {
    const width = widths.find((each) => each === packed[at]);
    if (width === undefined || packed.length < at + headBytes + width * count) return null;
    const least = packed.readDoubleLE(at + 1);
    at += headBytes;
    for (let row = 0; row < count; row++, at += width)
      rows[row * columns + column] =
        width === double ? packed.readDoubleLE(at) : least + whole(packed, at, width);
  }
  return at === packed.length ? rows : null;
}

function whole(packed: Buffer, at: number, width: Exclude<Width, typeof double>): number {
  return width === 0 ? 0 : packed.readUIntLE(at, width);
}
