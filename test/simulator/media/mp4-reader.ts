const containers = new Set(['moov', 'trak', 'mdia', 'minf', 'dinf', 'stbl']);

interface Box {
  readonly path: string;
  /** Where its content begins in the file. */
  readonly start: number;
  readonly content: Buffer;
}

/** All boxes of a file in order, by path. Throws where their sizes do not add up. */
export function readBoxes(file: Buffer, from = 0, to = file.length, parent = ''): Box[] {
  const boxes: Box[] = [];
  let at = from;
  while (at < to) {
    const size = at + 8 <= to ? file.readUInt32BE(at) : 0;
    if (size < 8 || at + size > to) {
      throw new Error(`a box of ${size} bytes at ${at} in ${parent || 'the file'}`);
    }
    const type = file.toString('latin1', at + 4, at + 8);
    const path = parent === '' ? type : `${parent}.${type}`;
    boxes.push({ path, start: at + 8, content: file.subarray(at + 8, at + size) });
    if (containers.has(type)) {
      boxes.push(...readBoxes(file, at + 8, at + size, path));
    }
    at += size;
  }
  return boxes;
}

/** The content of the box whose path ends so. */
export function boxOf(boxes: readonly Box[], ending: string): Box {
  const found = boxes.filter(({ path }) => path === ending || path.endsWith(`.${ending}`));
  const [box] = found;
  if (box === undefined || found.length !== 1) {
    throw new Error(`${found.length} boxes ${ending}`);
  }
  return box;
}

/** The 32-bit numbers of a box from a position on. */
export function numbersOf({ content }: Box, from: number): number[] {
  const numbers: number[] = [];
  for (let at = from; at + 4 <= content.length; at += 4) {
    numbers.push(content.readUInt32BE(at));
  }
  return numbers;
}

/** Where each sample is and how long, as the tables tell. */
export function samplePlaces(boxes: readonly Box[]): { offset: number; size: number }[] {
  const offsets = numbersOf(boxOf(boxes, 'stco'), 8);
  const runs = numbersOf(boxOf(boxes, 'stsc'), 8);
  const sizes = numbersOf(boxOf(boxes, 'stsz'), 12);
  const places: { offset: number; size: number }[] = [];
  for (const [index, start] of offsets.entries()) {
    let inChunk = 0;
    for (let run = 0; run < runs.length; run += 3) {
      inChunk = (runs[run] ?? 0) <= index + 1 ? (runs[run + 1] ?? 0) : inChunk;
    }
    let offset = start;
    for (let i = 0; i < inChunk; i++) {
      const size = sizes[places.length] ?? 0;
      places.push({ offset, size });
      offset += size;
    }
  }
  return places;
}

interface Configuration {
  readonly head: readonly number[];
  readonly sequence: Buffer;
  readonly picture: Buffer;
}

/** The decoder configuration in the sample entry. */
export function configurationOf(boxes: readonly Box[]): Configuration {
  const { content } = boxOf(boxes, 'stsd');
  const at = content.indexOf('avcC') + 4;
  const sequenceSize = content.readUInt16BE(at + 6);
  const sequence = content.subarray(at + 8, at + 8 + sequenceSize);
  const picture = content.subarray(at + 8 + sequenceSize + 3);
  if (content.readUInt16BE(at + 8 + sequenceSize + 1) !== picture.length) {
    throw new Error('the PPS does not end with its box');
  }
  return { head: [...content.subarray(at, at + 6)], sequence, picture };
}
