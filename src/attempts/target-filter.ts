import type { Target } from '../config/types.js';

/** Longest value of the header, in characters, and most names in it. */
const longestValue = 2048;
const mostNames = 32;
/** Characters of a name that an error repeats. */
const shownCharacters = 64;

/**
 * The targets that one request demands. A name is that of an upstream, or of an upstream and its model with a slash between
 * them.
 */
export interface TargetFilter {
  /** Only these; empty if every target is allowed. */
  readonly wanted: readonly string[];
  /** None of these, even if `wanted` allows one by a less specific name. */
  readonly excluded: readonly string[];
}

/** The result of parsing the header, or what is wrong with it, as a sentence for its sender. */
type ParsedTargetFilter =
  | { readonly ok: true; readonly targetFilter: TargetFilter }
  | { readonly ok: false; readonly problem: string };

/**
 * Reads the value of `x-gateway-target`: names with commas between them, and an exclamation mark before each that is
 * not wanted. `main, !claude/x` is every target of the upstream main but not the model x of the upstream claude. The
 * order of names means nothing. Whether a model has such targets is not looked at.
 */
export function parseTargetFilter(value: string): ParsedTargetFilter {
  if (value.length > longestValue) return wrong(`has more than ${longestValue} characters`);
  const wanted: string[] = [];
  const excluded: string[] = [];
  for (const part of value.split(',')) {
    const item = part.trim();
    // A list may have empty elements (RFC 9110 section 5.6.1).
    if (item === '') continue;
    const isExcluded = item.startsWith('!');
    const name = isExcluded ? item.slice(1).trim() : item;
    if (name === '') return wrong('has an exclamation mark without the name of a target');
    if (name.startsWith('!')) return wrong(`has two exclamation marks in ${shown(item)}`);
    if (name.startsWith('/') || name.endsWith('/'))
      return wrong(`has ${shown(name)}, which is neither an upstream nor upstream/model`);
    const [list, others] = isExcluded ? [excluded, wanted] : [wanted, excluded];
    if (others.includes(name)) return wrong(`both wants and excludes ${shown(name)}`);
    if (!list.includes(name)) list.push(name);
    if (wanted.length + excluded.length > mostNames) return wrong(`names more than ${mostNames} targets`);
  }
  if (wanted.length + excluded.length === 0) return wrong('names no target');
  return { ok: true, targetFilter: { wanted, excluded } };
}

function wrong(what: string): ParsedTargetFilter {
  return { ok: false, problem: `The header x-gateway-target ${what}.` };
}

function shown(name: string): string {
  return JSON.stringify(name.length > shownCharacters ? `${name.slice(0, shownCharacters)}…` : name);
}

/** Whether a request with this filter may go to a target. */
export function isAllowed(target: Target, { wanted, excluded }: TargetFilter): boolean {
  return (wanted.length === 0 || isAmong(target, wanted)) && !isAmong(target, excluded);
}

function isAmong(target: Target, names: readonly string[]): boolean {
  for (const name of names) if (isNamed(target, name)) return true;
  return false;
}

/** Compares without writing the target's own name. */
function isNamed({ upstream, model }: Target, name: string): boolean {
  const { length } = upstream.name;
  if (name.length === length) return name === upstream.name;
  return (
    name.length === length + 1 + model.length &&
    name[length] === '/' &&
    name.startsWith(upstream.name) &&
    name.endsWith(model)
  );
}
