import { SLASH } from '../wire/bytes.js';
export interface RouterEntry<T> {
  readonly method: string;
  /** See `parsePath`. */
  readonly path: string;
  readonly value: T;
}

export type RouterMatch<T> = Found<T> | MethodNotAllowed | { readonly kind: 'notFound' };

export interface Router<T> {
  /**
   * Finds the route of a request.
   *
   * The most specific path is chosen first: at each segment static text, then `:action`, then a parameter of one
   * segment, then one of the rest. The method is compared only after that. It is case-sensitive (RFC 9110 section 9.1),
   * and HEAD is not GET. A trailing slash is significant, and no parameter matches an empty segment. A path with a
   * malformed percent-escape in a parameter is not found. Nothing is allocated for a path without parameters.
   * @param path path of the request target, without the query
   */
  find(method: string, path: string): RouterMatch<T>;
}

const notFound = Object.freeze({ kind: 'notFound' } as const);
// What remains to be tried at a node: everything, everything but static text, or only the greedy parameter.
const tryAll = 0;
const tryWildcards = 1;
const tryGreedy = 2;
const methodSyntax = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;

/**
 * Builds a radix tree over the entries, which cannot change afterwards. find-my-way 9.10 is not used: it takes 70 ns
 * for a path without parameters among the gateway's 180, where this takes 9, and does not report the other methods of a
 * path.
 * @throws Error for an invalid path or method, a duplicate route, or a parameter with two names at one place
 */
export function createRouter<T>(entries: readonly RouterEntry<T>[]): Router<T> {
  const root = createNode<T>('');
  // Static text comes first at each segment, so a path that is literally a route's path matches that route.
  const plain = new Map<string, Leaf<T>>();
  for (const { method, path, value } of entries) {
    if (!methodSyntax.test(method)) throw new Error(`'${method}' is not a method name (route '${path}').`);
    const leaf = leafFor(root, parsePath(path));
    if (leaf.methods.includes(method)) throw new Error(`The route ${method} ${path} is given twice.`);
    addMethod(leaf, method, value);
    if (leaf.names.length === 0) plain.set(path, leaf);
  }
  const walk = createWalk(root);
  return {
    find(method, path) {
      const leaf = plain.get(path) ?? walk.locate(path);
      if (leaf === null) return notFound;
      const answer = leaf.answers[leaf.methods.indexOf(method)];
      if (answer === undefined) return leaf.notAllowed;
      if (leaf.names.length === 0) return answer;
      const params = walk.readParams(leaf.names, path);
      return params === null ? notFound : { kind: 'found', value: answer.value, params };
    },
  };
}

interface Walk<T> {
  locate(path: string): Leaf<T> | null;
  /** Returns the parameters of the last path passed to `locate`, or null for a malformed escape. */
  readParams(names: readonly string[], path: string): Record<string, string> | null;
}

/**
 * Creates the walker for all requests. One is enough, since a walk is synchronous. Its stack of untried branches is
 * held in parallel arrays that are never freed. Each node is reached at no more than one offset of a path, since only
 * the last part of a route may span segments. Backtracking therefore tries nothing twice.
 */
function createWalk<T>(root: Node<T>): Walk<T> {
  const starts: number[] = [];
  const ends: number[] = [];
  const branches: Node<T>[] = [];
  const branchOffsets: number[] = [];
  const branchCaptured: number[] = [];
  const branchStages: number[] = [];
  let depth = 0;

  const remember = (node: Node<T>, offset: number, captured: number, stage: number): void => {
    branches[depth] = node;
    branchOffsets[depth] = offset;
    branchCaptured[depth] = captured;
    branchStages[depth] = stage;
    depth++;
  };

  const locate = (path: string): Leaf<T> | null => {
    depth = 0;
    let node = root;
    let offset = 0;
    let captured = 0;
    let stage = tryAll;
    for (;;) {
      const more = offset < path.length;
      if (!more && node.leaf !== null) return node.leaf;
      const child = more && stage === tryAll ? staticChild(node, path, offset) : null;
      if (child !== null) {
        if (node.name !== null) remember(node, offset, captured, tryWildcards);
        node = child;
        offset += child.prefix.length;
        continue;
      }
      if (more && node.name !== null) {
        starts[captured] = offset;
        const acting = stage === tryGreedy ? null : actionLeaf(node, path, offset);
        if (acting !== null) {
          ends[captured] = path.lastIndexOf(':');
          return acting;
        }
        const next = stage === tryGreedy ? null : node.parameter;
        const end = segmentEnd(path, offset);
        if (next !== null && end > offset) {
          if (node.greedy !== null) remember(node, offset, captured, tryGreedy);
          ends[captured++] = end;
          node = next;
          offset = end;
          stage = tryAll;
          continue;
        }
        if (node.greedy !== null && hasNoEmptySegment(path, offset, path.length)) {
          ends[captured] = path.length;
          return node.greedy;
        }
      }
      if (depth === 0) return null;
      depth--;
      node = branches[depth] ?? root;
      offset = branchOffsets[depth] ?? 0;
      captured = branchCaptured[depth] ?? 0;
      stage = branchStages[depth] ?? tryGreedy;
    }
  };

  const readParams = (names: readonly string[], path: string): Record<string, string> | null => {
    const params: Record<string, string> = {};
    for (const [index, name] of names.entries()) {
      const value = decode(path.slice(starts[index], ends[index]));
      if (value === null) return null;
      params[name] = value;
    }
    return params;
  };

  return { locate, readParams };
}

/** Returns the leaf of the node's action that follows the path's last colon, or null. */
function actionLeaf<T>(node: Node<T>, path: string, offset: number): Leaf<T> | null {
  if (node.actions.length === 0) return null;
  const colon = path.lastIndexOf(':');
  if (colon <= offset || !hasNoEmptySegment(path, offset, colon)) return null;
  const length = path.length - colon - 1;
  for (let index = 0; index < node.actions.length; index++) {
    const action = node.actions[index];
    if (action?.length === length && path.endsWith(action)) return node.actionLeaves[index] ?? null;
  }
  return null;
}

function segmentEnd(path: string, offset: number): number {
  const end = path.indexOf('/', offset);
  return end === -1 ? path.length : end;
}

function hasNoEmptySegment(path: string, start: number, end: number): boolean {
  if (path.charCodeAt(start) === SLASH || path.charCodeAt(end - 1) === SLASH) return false;
  const doubled = path.indexOf('//', start);
  return doubled === -1 || doubled >= end;
}

function decode(text: string): string | null {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

interface Found<T> {
  readonly kind: 'found';
  readonly value: T;
  /** Percent-decoded values of the path's parameters. */
  readonly params: Readonly<Record<string, string>>;
}

/** The path exists, but not with the request's method. `allow` is the value of the `Allow` header. */
interface MethodNotAllowed {
  readonly kind: 'methodNotAllowed';
  readonly allow: string;
}

/** The end of a path: its methods, and their results, which are made at registration. */
interface Leaf<T> {
  /** Names of the path's parameters, in order. */
  readonly names: readonly string[];
  readonly methods: string[];
  /** Results without parameters, parallel to `methods`. */
  readonly answers: Found<T>[];
  notAllowed: MethodNotAllowed;
}

/**
 * A place in the tree, reached after `prefix`. All parameters that may begin here share one name, so that a parameter
 * has the same meaning whichever route matches.
 */
interface Node<T> {
  prefix: string;
  /** First character codes of the children, parallel to them: scanning a few integers costs less than a Map. */
  readonly codes: number[];
  readonly children: Node<T>[];
  leaf: Leaf<T> | null;
  /** Name of the parameters that may begin here, or null if there are none. */
  name: string | null;
  /** Actions that may follow the last colon, and their leaves, in parallel. */
  readonly actions: string[];
  readonly actionLeaves: Leaf<T>[];
  /** The node after a parameter of one segment. */
  parameter: Node<T> | null;
  greedy: Leaf<T> | null;
}

const noParams: Readonly<Record<string, string>> = Object.freeze({});

/** Creates a node without children. */
function createNode<T>(prefix: string): Node<T> {
  return {
    prefix,
    codes: [],
    children: [],
    leaf: null,
    name: null,
    actions: [],
    actionLeaves: [],
    parameter: null,
    greedy: null,
  };
}

/**
 * Finds the leaf of a path below `root`, and creates missing nodes.
 * @throws Error if another route has a parameter with a different name at the same place
 */
function leafFor<T>(root: Node<T>, parts: readonly PathPart[]): Leaf<T> {
  let node = root;
  const names: string[] = [];
  for (const part of parts) {
    if (part.kind === 'static') {
      node = descend(node, part.text);
      continue;
    }
    claimName(node, part.name);
    names.push(part.name);
    switch (part.kind) {
      case 'parameter':
        node.parameter ??= createNode('');
        node = node.parameter;
        break;
      case 'suffix':
        return actingLeaf(node, part.action, names);
      case 'greedy':
        node.greedy ??= createLeaf(names);
        return node.greedy;
    }
  }
  node.leaf ??= createLeaf(names);
  return node.leaf;
}

/** Adds a method to the end of a path. */
function addMethod<T>(leaf: Leaf<T>, method: string, value: T): void {
  leaf.methods.push(method);
  leaf.answers.push(Object.freeze({ kind: 'found', value, params: noParams }));
  leaf.notAllowed = refusal(leaf.methods);
}

/** Returns the child whose prefix matches `path` at `offset`, or null. */
function staticChild<T>(node: Node<T>, path: string, offset: number): Node<T> | null {
  const index = node.codes.indexOf(path.charCodeAt(offset));
  if (index === -1) return null;
  const child = node.children[index];
  return child !== undefined && path.startsWith(child.prefix, offset) ? child : null;
}

function createLeaf<T>(names: readonly string[]): Leaf<T> {
  return { names, methods: [], answers: [], notAllowed: refusal([]) };
}

function refusal(methods: readonly string[]): MethodNotAllowed {
  return Object.freeze({ kind: 'methodNotAllowed', allow: methods.toSorted().join(', ') });
}

function claimName<T>(node: Node<T>, name: string): void {
  node.name ??= name;
  if (node.name !== name) {
    throw new Error(`The parameter '${name}' is called '${node.name}' by another route at the same place.`);
  }
}

function actingLeaf<T>(node: Node<T>, action: string, names: readonly string[]): Leaf<T> {
  const known = node.actionLeaves[node.actions.indexOf(action)];
  if (known !== undefined) return known;
  const leaf = createLeaf<T>(names);
  node.actions.push(action);
  node.actionLeaves.push(leaf);
  return leaf;
}

/** Follows static text from a node. Splits a child if the text differs from its prefix half-way. */
function descend<T>(from: Node<T>, text: string): Node<T> {
  let node = from;
  let rest = text;
  while (rest !== '') {
    const code = rest.charCodeAt(0);
    const index = node.codes.indexOf(code);
    const child = node.children[index];
    if (child === undefined) {
      const added = createNode<T>(rest);
      node.codes.push(code);
      node.children.push(added);
      return added;
    }
    const shared = sharedLength(child.prefix, rest);
    rest = rest.slice(shared);
    if (shared === child.prefix.length) {
      node = child;
      continue;
    }
    const upper = createNode<T>(child.prefix.slice(0, shared));
    child.prefix = child.prefix.slice(shared);
    upper.codes.push(child.prefix.charCodeAt(0));
    upper.children.push(child);
    node.children[index] = upper;
    node = upper;
  }
  return node;
}

function sharedLength(one: string, other: string): number {
  const limit = Math.min(one.length, other.length);
  let length = 0;
  while (length < limit && one.charCodeAt(length) === other.charCodeAt(length)) length++;
  return length;
}

/** One piece of a route's path. */
type PathPart =
  | { readonly kind: 'static'; readonly text: string }
  /** `{name}`: one segment. */
  | { readonly kind: 'parameter'; readonly name: string }
  /** `{name}:action`, only last: everything up to the path's last `:action`. */
  | { readonly kind: 'suffix'; readonly name: string; readonly action: string }
  /** `{name...}`, only last: the rest of the path. */
  | { readonly kind: 'greedy'; readonly name: string };

// A name starts with a letter, so it can never be `__proto__`.
const wildcard = /^\{([A-Za-z][A-Za-z0-9_]*)(\.\.\.)?\}(?::([A-Za-z0-9_-]+))?$/;
const staticText = /^[^{}?#\s]*$/;

/**
 * Parses a route's path: static text, `{name}`, and as the last segment `{name}:action` or `{name...}`.
 * @throws Error if the text does not have this syntax
 */
function parsePath(path: string): readonly PathPart[] {
  if (!path.startsWith('/')) throw syntaxError(path, 'it must begin with a slash');
  const parts: PathPart[] = [];
  const names = new Set<string>();
  const segments = path.slice(1).split('/');
  let text = '/';
  for (const [index, segment] of segments.entries()) {
    const last = index === segments.length - 1;
    if (index > 0) text += '/';
    if (segment === '' && !last) throw syntaxError(path, 'it has an empty segment');
    const match = wildcard.exec(segment);
    if (match === null) {
      if (!staticText.test(segment))
        throw syntaxError(path, `the segment '${segment}' is neither static text nor a parameter`);
      text += segment;
      continue;
    }
    parts.push({ kind: 'static', text });
    text = '';
    const part = wildcardPart(path, match);
    if (part.kind !== 'parameter' && !last) throw syntaxError(path, `'${segment}' must be the last segment`);
    if (names.has(part.name)) throw syntaxError(path, `the parameter '${part.name}' is named twice`);
    names.add(part.name);
    parts.push(part);
  }
  if (text !== '') parts.push({ kind: 'static', text });
  return parts;
}

function wildcardPart(path: string, match: RegExpExecArray): Exclude<PathPart, { kind: 'static' }> {
  const [, name = '', dots, action] = match;
  if (dots !== undefined && action !== undefined) {
    throw syntaxError(path, 'a parameter that takes the rest has no action');
  }
  if (dots !== undefined) return { kind: 'greedy', name };
  if (action !== undefined) return { kind: 'suffix', name, action };
  return { kind: 'parameter', name };
}

function syntaxError(path: string, reason: string): Error {
  return new Error(`Route path '${path}' is not valid: ${reason}.`);
}
