type Node =
  | { readonly kind: 'character'; readonly value: string }
  | { readonly kind: 'sequence'; readonly nodes: readonly Node[] }
  | { readonly kind: 'choice'; readonly nodes: readonly Node[] }
  | { readonly kind: 'repeat'; readonly node: Node; readonly min: number; readonly max: number };

const mostRepeats = 256;
const shorthands: Readonly<Record<string, string>> = { d: '0', w: 'a', s: ' ', D: 'a', W: '-', S: 'a' };
const controls: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', f: '\f', v: '\v', 0: '\0' };
const properties: Readonly<Record<string, string>> = { L: 'a', Ll: 'a', Lu: 'A', N: '0', Nd: '0', P: '-' };

/** Raised inside for what the generator does not do: lookaround, back references, unknown escapes. */
class Unsupported extends Error {}

/**
 * A short text that a regular expression matches.
 * @param minLength what the text should at least count; repetitions grow until it does, as far as they can.
 * @returns null for an expression that is not valid, or that is beyond this generator.
 */
export function patternExample(pattern: string, minLength: number): string | null {
  try {
    const expression = new RegExp(pattern, 'u');
    const tree = parse(pattern);
    let best: string | null = null;
    for (let growth = 0; growth <= mostRepeats; growth = growth < 16 ? growth + 1 : growth * 2) {
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
      return write(node.node, growth).repeat(Math.min(node.max, node.min + growth, mostRepeats));
  }
}

function parse(pattern: string): Node {
  const characters = [...pattern];
  let at = 0;

  function choice(): Node {
    const nodes = [sequence()];
    while (characters[at] === '|') {
      at += 1;
      nodes.push(sequence());
    }
    return nodes.length === 1 && nodes[0] !== undefined ? nodes[0] : { kind: 'choice', nodes };
  }

  function sequence(): Node {
    const nodes: Node[] = [];
    while (at < characters.length && characters[at] !== '|' && characters[at] !== ')') {
      nodes.push(repeated(atom()));
    }
    return { kind: 'sequence', nodes };
  }

  function atom(): Node {
    const character = characters[at] ?? '';
    at += 1;
    switch (character) {
      case '(':
        return group();
      case '[':
        return { kind: 'character', value: set() };
      case '.':
        return { kind: 'character', value: 'a' };
      case '^':
      case '$':
        return { kind: 'sequence', nodes: [] };
      case '\\':
        return { kind: 'character', value: escaped() };
      default:
        return { kind: 'character', value: character };
    }
  }

  function group(): Node {
    if (characters[at] === '?') {
      const name = /^\?(?::|<[A-Za-z_]\w*>)/.exec(characters.slice(at, at + 80).join(''))?.[0];
      if (name === undefined) {
        throw new Unsupported();
      }
      at += name.length;
    }
    const node = choice();
    at += 1;
    return node;
  }

  function escaped(): string {
    const letter = characters[at] ?? '';
    at += 1;
    if (letter === 'b' || letter === 'B') {
      return '';
    }
    if (letter === 'u' || letter === 'x' || letter === 'p' || letter === 'P') {
      return longEscape(letter);
    }
    const known = shorthands[letter] ?? controls[letter];
    if (known === undefined && /[A-Za-z1-9]/.test(letter)) {
      throw new Unsupported();
    }
    return known ?? letter;
  }

  function longEscape(letter: string): string {
    const rest = characters.slice(at, at + 40).join('');
    const match = /^(?:\{([^}]*)\}|([0-9A-Fa-f]{4})|([0-9A-Fa-f]{2}))/.exec(rest);
    const hex = letter === 'x' ? match?.[0].slice(0, 2) : (match?.[1] ?? match?.[2]);
    if (match === null || hex === undefined) {
      throw new Unsupported();
    }
    if (letter === 'p' || letter === 'P') {
      const value = letter === 'p' ? properties[hex] : '-';
      at += match[0].length;
      if (value === undefined) {
        throw new Unsupported();
      }
      return value;
    }
    at += letter === 'x' ? 2 : match[0].length;
    return String.fromCodePoint(Number.parseInt(hex, 16));
  }

  /** One character of a set such as `[a-z0-9_]`: its first, or for a negated set the first plain one outside it. */
  function set(): string {
    const open = at - 1;
    const negated = characters[at] === '^';
    at += negated ? 1 : 0;
    const start = at;
    at += characters[at] === '\\' ? 1 : 0;
    const first = characters[start] === '\\' ? escaped() : (characters[start] ?? '');
    at = start;
    while (at < characters.length && characters[at] !== ']') {
      at += characters[at] === '\\' ? 2 : 1;
    }
    at += 1;
    if (!negated) {
      return first;
    }
    const expression = new RegExp(characters.slice(open, at).join(''), 'u');
    const outside = [...'a0A_-. é~\n'].find((candidate) => expression.test(candidate));
    if (outside === undefined) {
      throw new Unsupported();
    }
    return outside;
  }

  function repeated(node: Node): Node {
    const match = /^(?:[*+?]|\{(\d+)(,?)(\d*)\})\??/.exec(characters.slice(at, at + 24).join(''));
    if (match === null) {
      return node;
    }
    at += match[0].length;
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

  return choice();
}
