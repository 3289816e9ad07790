type Node =
  | { readonly kind: 'character'; readonly value: string }
  | { readonly kind: 'sequence'; readonly nodes: readonly Node[] }
  | { readonly kind: 'choice'; readonly nodes: readonly Node[] }
  | { readonly kind: 'repeat'; readonly node: Node; readonly min: number; readonly max: number };

const maxRepeats = 256;
const shorthands: Readonly<Record<string, string>> = { d: '0', w: 'a', s: ' ', D: 'a', W: '-', S: 'a' };
const controls: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', f: '\f', v: '\v', 0: '\0' };
const properties: Readonly<Record<string, string>> = { L: 'a', Ll: 'a', Lu: 'A', N: '0', Nd: '0', P: '-' };

/** Thrown internally for unsupported syntax: lookaround, back references, unknown escapes. */
class Unsupported extends Error {}

/**
 * Generates a short text that a regular expression matches.
 * @param minLength desired minimum length; repetitions grow toward it as far as they can.
 * @returns null for an invalid or unsupported expression.
 */
export function patternExample(pattern: string, minLength: number): string | null {
  try {
    const expression = new RegExp(pattern, 'u');
    const tree = parse(pattern);
    let best: string | null = null;
    for (let growth = 0; growth <= maxRepeats; growth = growth < 16 ? growth + 1 : growth * 2) {
      const text = write(tree, growth);
      if (expression.test(text)) {
        best = text;
        if ([...text].length >= minLength) {
          return text;
        }
      }
    }
    return best;
  } catch {
    return null;
  }
}

function write(node: Node, growth: number): string {
  switch (node.kind) {
    case 'character':
      return node.value;
    case 'sequence':
      return node.nodes.map((part) => write(part, growth)).join('');
    case 'choice':
      return node.nodes[0] === undefined ? '' : write(node.nodes[0], growth);
    case 'repeat':
      return write(node.node, growth).repeat(Math.min(node.max, node.min + growth, maxRepeats));
  }
}

function parse(pattern: string): Node {
  return new Parser(pattern).choice();
}

/** Recursive descent parser of a pattern. */
class Parser {
  readonly #characters: readonly string[];
  #at = 0;

  constructor(pattern: string) {
    this.#characters = [...pattern];
  }

  choice(): Node {
    const nodes = [this.#sequence()];
    while (this.#characters[this.#at] === '|') {
      this.#at += 1;
      nodes.push(this.#sequence());
    }
    return nodes.length === 1 && nodes[0] !== undefined ? nodes[0] : { kind: 'choice', nodes };
  }

  #sequence(): Node {
    const nodes: Node[] = [];
    while (
      this.#at < this.#characters.length &&
      this.#characters[this.#at] !== '|' &&
      this.#characters[this.#at] !== ')'
    ) {
      nodes.push(this.#repeated(this.#atom()));
    }
    return { kind: 'sequence', nodes };
  }

  #atom(): Node {
    const character = this.#characters[this.#at] ?? '';
    this.#at += 1;
    switch (character) {
      case '(':
        return this.#group();
      case '[':
        return { kind: 'character', value: this.#set() };
      case '.':
        return { kind: 'character', value: 'a' };
      case '^':
      case '$':
        return { kind: 'sequence', nodes: [] };
      case '\\':
        return { kind: 'character', value: this.#escaped() };
      default:
        return { kind: 'character', value: character };
    }
  }

  #group(): Node {
    if (this.#characters[this.#at] === '?') {
      const name = /^\?(?::|<[A-Za-z_]\w*>)/.exec(
        this.#characters.slice(this.#at, this.#at + 80).join(''),
      )?.[0];
      if (name === undefined) {
        throw new Unsupported();
      }
      this.#at += name.length;
    }
    const node = this.choice();
    this.#at += 1;
    return node;
  }

  #escaped(): string {
    const letter = this.#characters[this.#at] ?? '';
    this.#at += 1;
    if (letter === 'b' || letter === 'B') {
      return '';
    }
    if (letter === 'u' || letter === 'x' || letter === 'p' || letter === 'P') {
      return this.#longEscape(letter);
    }
    const known = shorthands[letter] ?? controls[letter];
    if (known === undefined && /[A-Za-z1-9]/.test(letter)) {
      throw new Unsupported();
    }
    return known ?? letter;
  }

  #longEscape(letter: string): string {
    const rest = this.#characters.slice(this.#at, this.#at + 40).join('');
    const match = /^(?:\{([^}]*)\}|([0-9A-Fa-f]{4})|([0-9A-Fa-f]{2}))/.exec(rest);
    const hex = letter === 'x' ? match?.[0].slice(0, 2) : (match?.[1] ?? match?.[2]);
    if (match === null || hex === undefined) {
      throw new Unsupported();
    }
    if (letter === 'p' || letter === 'P') {
      const value = letter === 'p' ? properties[hex] : '-';
      this.#at += match[0].length;
      if (value === undefined) {
        throw new Unsupported();
      }
      return value;
    }
    this.#at += letter === 'x' ? 2 : match[0].length;
    return String.fromCodePoint(Number.parseInt(hex, 16));
  }

  /** A character of a set such as `[a-z0-9_]`: the first, or for a negated set the first plain character outside it. */
  #set(): string {
    const open = this.#at - 1;
    const negated = this.#characters[this.#at] === '^';
    this.#at += negated ? 1 : 0;
    const start = this.#at;
    this.#at += this.#characters[this.#at] === '\\' ? 1 : 0;
    const first = this.#characters[start] === '\\' ? this.#escaped() : (this.#characters[start] ?? '');
    this.#at = start;
    while (this.#at < this.#characters.length && this.#characters[this.#at] !== ']') {
      this.#at += this.#characters[this.#at] === '\\' ? 2 : 1;
    }
    this.#at += 1;
    if (!negated) {
      return first;
    }
    const expression = new RegExp(this.#characters.slice(open, this.#at).join(''), 'u');
    const outside = [...'a0A_-. é~\n'].find((candidate) => expression.test(candidate));
    if (outside === undefined) {
      throw new Unsupported();
    }
    return outside;
  }

  #repeated(node: Node): Node {
    const match = /^(?:[*+?]|\{(\d+)(,?)(\d*)\})\??/.exec(
      this.#characters.slice(this.#at, this.#at + 24).join(''),
    );
    if (match === null) {
      return node;
    }
    this.#at += match[0].length;
    const sign = match[0][0];
    if (sign !== '{') {
      return {
        kind: 'repeat',
        node,
        min: sign === '+' ? 1 : 0,
        max: sign === '?' ? 1 : Number.POSITIVE_INFINITY,
      };
    }
    const min = Number(match[1]);
    const most = match[3] === '' ? Number.POSITIVE_INFINITY : Number(match[3]);
    return { kind: 'repeat', node, min, max: match[2] === '' ? min : most };
  }
}
