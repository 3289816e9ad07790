import { formatPath, type Problem } from './problem.js';

/** Deeper files are refused, so that the recursion below stays bounded. */
const maxDepth = 100;

interface Scan {
  readonly text: string;
  at: number;
  readonly path: (string | number)[];
  readonly problems: Problem[];
}

class SyntaxStop extends Error {}

/**
 * Reads JSON text. `JSON.parse` alone would name no line (its words differ from Node to Node, and may quote a
 * secret) and would let the last of two equal keys win in silence.
 * @returns the value, or `undefined` with the problems: one for broken syntax, or each repeated key.
 */
export function parseJson(source: string): {
  readonly value: unknown;
  readonly problems: readonly Problem[];
} {
  const text = source.startsWith('\uFEFF') ? source.slice(1) : source;
  const scan: Scan = { text, at: 0, path: [], problems: [] };
  try {
    scanValue(scan, 0);
    skipSpace(scan);
    if (scan.at < text.length) stop(scan, 'expected the end of the file');
  } catch (error) {
    if (!(error instanceof SyntaxStop)) throw error;
    return {
      value: undefined,
      problems: [{ path: '', message: `${position(text, scan.at)}: ${error.message}` }],
    };
  }
  return { value: JSON.parse(text), problems: scan.problems };
}

function stop(scan: Scan, message: string): never {
  throw new SyntaxStop(scan.at >= scan.text.length ? `${message}, but the file ends here` : message);
}

function position(text: string, at: number): string {
  const before = text.slice(0, at);
  const lineStart = before.lastIndexOf('\n') + 1;
  return `line ${before.split('\n').length}, column ${at - lineStart + 1}`;
}

function skipSpace(scan: Scan): void {
  for (;;) {
    const code = scan.text.charCodeAt(scan.at);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
    scan.at += 1;
  }
}

const literal = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

function scanValue(scan: Scan, depth: number): void {
  if (depth > maxDepth) stop(scan, `nested deeper than ${maxDepth} levels`);
  skipSpace(scan);
  const first = scan.text[scan.at];
  if (first === '{') scanObject(scan, depth);
  else if (first === '[') scanArray(scan, depth);
  else if (first === '"') scanString(scan);
  else scanLiteral(scan);
}

function scanLiteral(scan: Scan): void {
  literal.lastIndex = scan.at;
  const match = literal.exec(scan.text);
  if (match === null) stop(scan, 'expected a value');
  scan.at += match[0].length;
}

function scanObject(scan: Scan, depth: number): void {
  const seen = new Set<string>();
  scan.at += 1;
  skipSpace(scan);
  if (scan.text[scan.at] === '}') {
    scan.at += 1;
    return;
  }
  for (;;) {
    skipSpace(scan);
    if (scan.text[scan.at] !== '"') stop(scan, 'expected a property name in double quotes');
    const start = scan.at;
    const name = scanString(scan);
    scan.path.push(name);
    if (seen.has(name)) {
      const message = `this name is given twice (again at ${position(scan.text, start)})`;
      scan.problems.push({ path: formatPath(scan.path), message });
    }
    seen.add(name);
    skipSpace(scan);
    if (scan.text[scan.at] !== ':') stop(scan, 'expected ":"');
    scan.at += 1;
    scanValue(scan, depth + 1);
    scan.path.pop();
    if (endOfList(scan, '}')) return;
  }
}

function scanArray(scan: Scan, depth: number): void {
  scan.at += 1;
  skipSpace(scan);
  if (scan.text[scan.at] === ']') {
    scan.at += 1;
    return;
  }
  for (let index = 0; ; index += 1) {
    scan.path.push(index);
    scanValue(scan, depth + 1);
    scan.path.pop();
    if (endOfList(scan, ']')) return;
  }
}

function endOfList(scan: Scan, closer: '}' | ']'): boolean {
  skipSpace(scan);
  const next = scan.text[scan.at];
  if (next !== ',' && next !== closer) stop(scan, `expected "," or "${closer}"`);
  scan.at += 1;
  return next === closer;
}

const escapeSequence = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

/** Reads the string at the cursor and returns what it spells. A loop: a regex may run out of stack on long text. */
function scanString(scan: Scan): string {
  const start = scan.at;
  scan.at += 1;
  for (;;) {
    const code = scan.text.charCodeAt(scan.at);
    if (code === 0x22) break;
    if (code === 0x5c) {
      escapeSequence.lastIndex = scan.at;
      const match = escapeSequence.exec(scan.text);
      if (match === null) stop(scan, 'this escape is not allowed in a string');
      scan.at += match[0].length;
      continue;
    }
    if (Number.isNaN(code)) stop(scan, 'expected the end of a string');
    if (code < 0x20) stop(scan, 'a string may not hold a line break or control character');
    scan.at += 1;
  }
  scan.at += 1;
  return JSON.parse(scan.text.slice(start, scan.at)) as string;
}
