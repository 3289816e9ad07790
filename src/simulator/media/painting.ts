import { createHash } from 'node:crypto';

/** Red, green and blue, 0 to 255. */
export type Colour = readonly [red: number, green: number, blue: number];

interface Shape {
  readonly kind: 'disc' | 'box';
  /** Centre and half the extent, in pixels. */
  readonly x: number;
  readonly y: number;
  readonly reach: number;
  /** Position in the palette. */
  readonly colour: number;
}

/** A picture that a seed stands for: bands of a gradient from top to bottom, and shapes upon them, the last on top. */
export interface Painting {
  readonly width: number;
  readonly height: number;
  /** The bands from top to bottom, the shapes, and at the end the moving disc. At most 256 colours. */
  readonly palette: readonly Colour[];
  readonly shapes: readonly Shape[];
}

const bands = 64;
const shapeCount = 4;
const bytesPerShape = 5;
const horizontalPeriod = 5;
const verticalPeriod = 3;

/** The picture of a seed in a size in pixels, without its moving disc. */
export function paint(seed: string, width: number, height: number): Painting {
  const entropy = createHash('sha256').update(seed).digest();
  const byte = (at: number): number => entropy[at] ?? 0;
  const hue = byte(0) / 256;
  const top = colourOf(hue, 0.3 + byte(1) / 1024);
  const bottom = colourOf(hue + 0.15 + byte(2) / 512, 0.6 + byte(3) / 1024);
  const palette: Colour[] = [];
  for (let band = 0; band < bands; band++) {
    palette.push(blend(top, bottom, band / (bands - 1)));
  }
  const shapes: Shape[] = [];
  for (let index = 0; index < shapeCount; index++) {
    const at = 4 + bytesPerShape * index;
    shapes.push({
      kind: byte(at) % 2 === 0 ? 'disc' : 'box',
      x: (width * byte(at + 1)) / 255,
      y: (height * byte(at + 2)) / 255,
      reach: Math.min(width, height) * (0.08 + byte(at + 3) / 1500),
      colour: palette.length,
    });
    palette.push(colourOf(byte(at + 4) / 256, 0.5));
  }
  palette.push(colourOf(hue + 0.5, 0.85));
  return { width, height, palette, shapes };
}

/** Where the moving disc is at a time in seconds: centre and radius in pixels. */
export function discAt(painting: Painting, seconds: number): { x: number; y: number; radius: number } {
  const { width, height } = painting;
  return {
    x: width * (0.5 + 0.36 * Math.sin((2 * Math.PI * seconds) / horizontalPeriod)),
    y: height * (0.5 + 0.3 * Math.sin((2 * Math.PI * seconds) / verticalPeriod)),
    radius: Math.min(width, height) * 0.12,
  };
}

/** The picture with its moving disc where that is at a time in seconds. */
export function atTime(painting: Painting, seconds: number): Painting {
  const { x, y, radius } = discAt(painting, seconds);
  const disc: Shape = { kind: 'disc', x, y, reach: radius, colour: painting.palette.length - 1 };
  return { ...painting, shapes: [...painting.shapes, disc] };
}

/** Writes row `y` as positions in the palette, one byte a pixel, to `target` from `offset` on. */
export function paintRow(painting: Painting, y: number, target: Uint8Array, offset: number): void {
  target.fill(bandAt(painting, y + 0.5), offset, offset + painting.width);
  for (const shape of painting.shapes) {
    const half = halfWidth(shape, y + 0.5);
    if (half > 0) {
      const from = Math.max(0, Math.round(shape.x - half));
      const to = Math.min(painting.width, Math.round(shape.x + half));
      target.fill(shape.colour, offset + from, offset + Math.max(from, to));
    }
  }
}

/** The colour at a place in pixels. */
export function colourAt(painting: Painting, x: number, y: number): Colour {
  const shape = painting.shapes.findLast((each) => Math.abs(x - each.x) < halfWidth(each, y));
  return painting.palette[shape?.colour ?? bandAt(painting, y)] ?? [0, 0, 0];
}

/** The colour between two, at a share of 0 (the first) to 1 (the second). */
export function blend(first: Colour, second: Colour, share: number): Colour {
  const between = (a: number, b: number): number => Math.round(a + (b - a) * share);
  return [between(first[0], second[0]), between(first[1], second[1]), between(first[2], second[2])];
}

function bandAt({ height }: Painting, y: number): number {
  return Math.min(bands - 1, Math.floor((y * bands) / height));
}

/** Half the width of a shape at a height, 0 where it does not reach. */
function halfWidth({ kind, y: centre, reach }: Shape, y: number): number {
  const away = Math.abs(y - centre);
  if (away >= reach) {
    return 0;
  }
  return kind === 'box' ? reach : Math.sqrt(reach * reach - away * away);
}

/** A well saturated colour: its hue in turns, its lightness 0 to 1. */
function colourOf(hue: number, lightness: number): Colour {
  const reach = 0.65 * Math.min(lightness, 1 - lightness);
  const channel = (shift: number): number => {
    const place = (shift + 12 * hue) % 12;
    return Math.round(255 * (lightness - reach * Math.max(-1, Math.min(place - 3, 9 - place, 1))));
  };
  return [channel(0), channel(8), channel(4)];
}
