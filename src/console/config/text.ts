/** The kind of a piece of JSON, for its colour. `plain` is for brackets, commas and space. */
type PieceKind = 'name' | 'text' | 'number' | 'word' | 'secret' | 'plain';

export interface Piece {
  readonly kind: PieceKind;
  readonly text: string;
}

/** Shown in place of a secret. */
const secretMark = '•••';

/** One top-level section of the config. */
export interface Section {
  readonly name: string;
  /** Its size, such as `3 entries`, or the value itself if it is a scalar. */
  readonly summary: string;
  /** Its JSON, line by line. */
  readonly lines: readonly string[];
}

/** The sections of a config, in its order. */
export function sectionsOf(config: Readonly<Record<string, unknown>>): readonly Section[] {
  return Object.entries(config).map(([name, value]) => ({
    name,
    summary: summaryOf(value),
    lines: (JSON.stringify(value, null, 2) ?? 'null').split('\n'),
  }));
}

/** The indices of the lines that contain a text, ignoring case. */
export function linesWith({ lines }: Section, wanted: string): readonly number[] {
  const small = wanted.toLowerCase();
  return lines.flatMap((line, index) => (line.toLowerCase().includes(small) ? [index] : []));
}

const piece = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(true|false|null)/g;

/** Splits a line of formatted JSON into pieces by kind; joined they give the line. */
export function piecesOf(line: string): readonly Piece[] {
  const pieces: Piece[] = [];
  let end = 0;
  for (const match of line.matchAll(piece)) {
    const [whole, text, colon, number] = match;
    if (match.index > end) pieces.push({ kind: 'plain', text: line.slice(end, match.index) });
    if (text !== undefined) {
      const kind = colon !== undefined ? 'name' : text.includes(secretMark) ? 'secret' : 'text';
      pieces.push({ kind, text });
      if (colon !== undefined) pieces.push({ kind: 'plain', text: colon });
    } else {
      pieces.push({ kind: number === undefined ? 'word' : 'number', text: whole });
    }
    end = match.index + whole.length;
  }
  if (end < line.length) pieces.push({ kind: 'plain', text: line.slice(end) });
  return pieces;
}

/** Splits a text at the occurrences of another one, ignoring case; every second part is an occurrence. */
export function cutAt(text: string, wanted: string): readonly string[] {
  if (wanted === '') return [text];
  const parts: string[] = [];
  const [all, small] = [text.toLowerCase(), wanted.toLowerCase()];
  // Some characters become several in lower case; offsets in the two texts then differ.
  if (all.length !== text.length) return [text];
  let from = 0;
  for (let at = all.indexOf(small); at >= 0; at = all.indexOf(small, from)) {
    parts.push(text.slice(from, at), text.slice(at, at + wanted.length));
    from = at + wanted.length;
  }
  parts.push(text.slice(from));
  return parts;
}

/** A problem of a config file, split into the path in the file and the message. */
interface ConfigProblem {
  /** Empty for a problem of the whole file. */
  readonly path: string;
  readonly message: string;
}

/** A path in the file, as the gateway writes it: `keys[2].groups[0]`, `models["gpt-4.1"].targets`. */
const pathAndMessage = /^((?:\.?[\w$-]+|\[\d+\]|\["(?:[^"\\]|\\.)*"\])+): (.+)$/s;

/** @param text problem in the gateway's form: `models.x.targets[0].upstream: there is no upstream "y"` */
export function problemOf(text: string): ConfigProblem {
  const [, path, message] = pathAndMessage.exec(text) ?? [];
  return path === undefined || message === undefined ? { path: '', message: text } : { path, message };
}

function summaryOf(value: unknown): string {
  if (Array.isArray(value)) return countOf(value.length);
  if (typeof value === 'object' && value !== null) return countOf(Object.keys(value).length);
  return JSON.stringify(value) ?? 'null';
}

function countOf(entries: number): string {
  return entries === 1 ? '1 entry' : `${entries} entries`;
}
