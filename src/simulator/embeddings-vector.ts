/** Positions that a feature adds to: with one, two features that meet in it could not be told apart. */
const spread = 4;
const wordWeight = 2;
const gramWeight = 1;
const gramLength = 3;

/**
 * The vector of a text, of length 1: its words and their parts are hashed to positions, so that texts that share words
 * are near each other, and others nearly at right angles.
 */
export function textVector(text: string, dimensions: number): Float32Array {
  const vector = new Float64Array(dimensions);
  for (const word of text
    .normalize('NFKC')
    .toLowerCase()
    .match(/[\p{L}\p{N}]+/gu) ?? [text]) {
    add(vector, word, wordWeight);
    const bounded = `^${word}$`;
    for (let at = 0; at + gramLength <= bounded.length; at++) {
      add(vector, bounded.slice(at, at + gramLength), gramWeight);
    }
  }
  return unit(vector);
}

/** The vector of a text that came in tokens. */
export function tokensVector(tokens: readonly number[], dimensions: number): Float32Array {
  const vector = new Float64Array(dimensions);
  for (const token of tokens) {
    add(vector, `#${token}`, 1);
  }
  return unit(vector);
}

function add(vector: Float64Array, feature: string, weight: number): void {
  let state = hash(feature);
  for (let i = 0; i < spread; i++) {
    state = mixed(state + i);
    const position = (state >>> 1) % vector.length;
    vector[position] = (vector[position] ?? 0) + (state & 1 ? weight : -weight);
  }
}

/** FNV-1a over the UTF-16 units. */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) {
    state = Math.imul(state ^ text.charCodeAt(at), 0x01000193);
  }
  return state;
}

/** The last steps of MurmurHash3: every bit depends on every other. */
function mixed(value: number): number {
  let state = value | 0;
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35);
  return (state ^ (state >>> 16)) >>> 0;
}

function unit(vector: Float64Array): Float32Array {
  const length = Math.hypot(...vector);
  if (length === 0) {
    vector[0] = 1;
  }
  return Float32Array.from(vector, (value) => (length === 0 ? value : value / length));
}
