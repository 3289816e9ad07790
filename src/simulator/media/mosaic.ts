import type { Macroblocks } from './h264-macroblock.js';
import { blend, type Colour, colourAt, discAt, type Painting } from './painting.js';

const side = 16;

/** A moving picture in macroblocks of one colour each. */
export interface Mosaic extends Macroblocks {
  readonly rows: number;
  readonly painting: Painting;
  /** The colours without what moves. */
  readonly still: readonly Colour[];
}

/** A moment of a moving picture: seconds from its start, and how much of it is over, 0 to 1. */
export interface Moment {
  readonly seconds: number;
  readonly progress: number;
}

/** The mosaic of a picture; its colours are those of no moment until it is moved to one. */
export function mosaicOf(painting: Painting): Mosaic {
  const columns = Math.ceil(painting.width / side);
  const rows = Math.ceil(painting.height / side);
  const still: Colour[] = [];
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      still.push(colourAt(painting, side * (column + 0.5), side * (row + 0.5)));
    }
  }
  return { columns, rows, painting, still, colours: new Int32Array(columns * rows) };
}

/** Moves the whole mosaic to a moment. */
export function setMoment(mosaic: Mosaic, moment: Moment): void {
  for (let at = 0; at < mosaic.colours.length; at++) {
    mosaic.colours[at] = packedAt(mosaic, at, moment);
  }
}

/** Moves the mosaic on from one moment to another; gives the positions that changed, ascending. */
export function move(mosaic: Mosaic, from: Moment, to: Moment): number[] {
  const changed: number[] = [];
  const { columns, rows, colours } = mosaic;
  const before = boundsAt(mosaic, from);
  const after = boundsAt(mosaic, to);
  const visit = (row: number, first: number, last: number): void => {
    for (let at = row * columns + first; at <= row * columns + last; at++) {
      const packed = packedAt(mosaic, at, to);
      if (packed !== colours[at]) {
        colours[at] = packed;
        changed.push(at);
      }
    }
  };
  const firstColumn = Math.min(before.left, after.left);
  const lastColumn = Math.max(before.right, after.right);
  const lastRow = Math.min(rows - 2, Math.max(before.bottom, after.bottom));
  for (let row = Math.min(before.top, after.top); row <= lastRow; row++) {
    visit(row, firstColumn, lastColumn);
  }
  visit(rows - 1, 0, columns - 1);
  return changed;
}

/** The macroblocks that the disc can touch. */
function boundsAt({ columns, rows, painting }: Mosaic, { seconds }: Moment) {
  const { x, y, radius } = discAt(painting, seconds);
  const reach = radius + side;
  return {
    left: Math.max(0, Math.floor((x - reach) / side)),
    right: Math.min(columns - 1, Math.floor((x + reach) / side)),
    top: Math.max(0, Math.floor((y - reach) / side)),
    bottom: Math.min(rows - 1, Math.floor((y + reach) / side)),
  };
}

/** A disc with soft edges, so that it moves by less than a macroblock, and a bar that grows along the lowest row. */
function packedAt(mosaic: Mosaic, at: number, { seconds, progress }: Moment): number {
  const { columns, rows, painting, still } = mosaic;
  const column = at % columns;
  const row = (at - column) / columns;
  const { x, y, radius } = discAt(painting, seconds);
  const away = Math.hypot(side * (column + 0.5) - x, side * (row + 0.5) - y);
  const covered = share((radius - away) / side + 0.5);
  const passed = row === rows - 1 ? share(columns * progress - column) : 0;
  const mover = painting.palette.at(-1) ?? [0, 0, 0];
  return packed(blend(still[at] ?? mover, mover, Math.max(covered, passed)));
}

function share(value: number): number {
  return Math.min(1, Math.max(0, value));
}

/** Y, Cb and Cr of ITU-R BT.709 in limited range, a byte each. */
function packed([red, green, blue]: Colour): number {
  const light = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  const luma = Math.round(16 + (219 / 255) * light);
  const blueness = Math.round(128 + ((224 / 255) * (blue - light)) / 1.8556);
  const redness = Math.round(128 + ((224 / 255) * (red - light)) / 1.5748);
  return (luma << 16) | (blueness << 8) | redness;
}
