export interface RouterEntry<T> {
  readonly method: string;
  /** See `leafAt`. */
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
 * A place between two segments. All parameters that may begin here share one name, so that a parameter has the same
 * meaning whichever route matches.
 */
interface Node<T> {
  /** By static segment. */
  readonly children: Map<string, Node<T>>;
  leaf: Leaf<T> | null;
  /** Name of the parameters that may begin here, or null if there are none. */
  name: string | null;
  /** By what may follow the last colon. */
  readonly actions: Map<string, Leaf<T>>;
  /** The node after a parameter of one segment. */
  parameter: Node<T> | null;
  greedy: Leaf<T> | null;
}

const notFound = Object.freeze({ kind: 'notFound' } as const);
const noParams: Readonly<Record<string, string>> = Object.freeze({});
const methodSyntax = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;

/**
 * Builds a tree over the segments of the entries, which cannot change afterwards. find-my-way 9.10 is not used: it takes
 * 70 ns for a path without parameters among the gateway's 180, where this takes 9, and does not report the other methods
 * of a path.
 * @throws Error for an invalid path or method, a duplicate route, or a parameter with two names at one place
 */
export function createRouter<T>(entries: readonly RouterEntry<T>[]): Router<T> {
  const root = createNode<T>();
  // Static text comes first at each segment, so a path that is literally a route's path matches that route.
  const plain = new Map<string, Leaf<T>>();
  for (const { method, path, value } of entries) {
    if (!methodSyntax.test(method)) throw new Error(`'${method}' is not a method name (route '${path}').`);
    const leaf = leafAt(root, path);
    if (leaf.methods.includes(method)) throw new Error(`The route ${method} ${path} is given twice.`);
    addMethod(leaf, method, value);
    if (leaf.names.length === 0) plain.set(path, leaf);
  }
  return {
    find(method, path) {
      const known = plain.get(path);
      if (known !== undefined) return answerOf(known, method);
      const values: string[] = [];
      const leaf = path.startsWith('/') ? locate(root, path, 1, values, 0) : null;
      if (leaf === null) return notFound;
      const answer = answerOf(leaf, method);
      if (answer.kind === 'methodNotAllowed') return answer;
      const params = readParams(leaf.names, values);
      return params === null ? notFound : { kind: 'found', value: answer.value, params };
    },
  };
}

function answerOf<T>(leaf: Leaf<T>, method: string): Found<T> | MethodNotAllowed {
  return leaf.answers[leaf.methods.indexOf(method)] ?? leaf.notAllowed;
}

/**
 * Finds the most specific path from a node on. Each node is reached at no more than one offset of a path, since only the
 * last part of a route may span segments. So nothing is tried twice.
 * @param offset of the next segment; beyond the end if none is left
 * @param values receives the raw values of the path's parameters, from `count` on
 */
function locate<T>(
  node: Node<T>,
  path: string,
  offset: number,
  values: string[],
  count: number,
): Leaf<T> | null {
  if (offset > path.length) return node.leaf;
  const slash = path.indexOf('/', offset);
  const end = slash === -1 ? path.length : slash;
  const segment = path.slice(offset, end);
  const child = node.children.get(segment);
  const found = child === undefined ? null : locate(child, path, end + 1, values, count);
  if (found !== null || node.name === null || segment === '') return found;
  if (node.actions.size > 0) {
    const colon = path.lastIndexOf(':');
    const acting = colon > offset ? node.actions.get(path.slice(colon + 1)) : undefined;
    values[count] = path.slice(offset, colon);
    if (acting !== undefined && !hasEmptySegment(values[count])) return acting;
  }
  if (node.parameter !== null) {
    values[count] = segment;
    const below = locate(node.parameter, path, end + 1, values, count + 1);
    if (below !== null) return below;
  }
  values[count] = path.slice(offset);
  return hasEmptySegment(values[count]) ? null : node.greedy;
}

function hasEmptySegment(text: string | undefined = ''): boolean {
  return text.startsWith('/') || text.endsWith('/') || text.includes('//');
}

/** @returns null for a malformed escape */
function readParams(names: readonly string[], values: readonly string[]): Record<string, string> | null {
  const params: Record<string, string> = {};
  for (const [index, name] of names.entries()) {
    const text = values[index] ?? '';
    try {
      params[name] = text.includes('%') ? decodeURIComponent(text) : text;
    } catch {
      return null;
    }
  }
  return params;
}

function createNode<T>(): Node<T> {
  return {
    children: new Map(),
    leaf: null,
    name: null,
    actions: new Map(),
    parameter: null,
    greedy: null,
  };
}

function createLeaf<T>(names: readonly string[]): Leaf<T> {
  return { names, methods: [], answers: [], notAllowed: refusal([]) };
}

/** Adds a method to the end of a path. */
function addMethod<T>(leaf: Leaf<T>, method: string, value: T): void {
  leaf.methods.push(method);
  leaf.answers.push(Object.freeze({ kind: 'found', value, params: noParams }));
  leaf.notAllowed = refusal(leaf.methods);
}

function refusal(methods: readonly string[]): MethodNotAllowed {
  return Object.freeze({ kind: 'methodNotAllowed', allow: methods.toSorted().join(', ') });
}

// A name starts with a letter, so it can never be `__proto__`.
const wildcard = /^\{([A-Za-z][A-Za-z0-9_]*)(\.\.\.)?\}(?::([A-Za-z0-9_-]+))?$/;
const staticText = /^[^{}?#\s]*$/;

/**
 * Finds the leaf of a route's path, and creates what is missing. A path has segments of static text and of `{name}`, one
 * segment, and as the last one perhaps `{name...}`, the rest of the path, or `{name}:action`: everything up to the path's
 * last `:action`.
 * @throws Error if the text does not have this syntax, or another route has a parameter with a different name at the same
 * place
 */
function leafAt<T>(root: Node<T>, path: string): Leaf<T> {
  if (!path.startsWith('/')) throw syntaxError(path, 'it must begin with a slash');
  const segments = path.slice(1).split('/');
  const names: string[] = [];
  let node = root;
  for (const [index, segment] of segments.entries()) {
    const last = index === segments.length - 1;
    if (segment === '' && !last) throw syntaxError(path, 'it has an empty segment');
    const match = wildcard.exec(segment);
    if (match === null) {
      if (!staticText.test(segment))
        throw syntaxError(path, `the segment '${segment}' is neither static text nor a parameter`);
      const child: Node<T> = node.children.get(segment) ?? createNode();
      node.children.set(segment, child);
      node = child;
      continue;
    }
    const [, name = '', dots, action] = match;
    if (dots !== undefined && action !== undefined)
      throw syntaxError(path, 'a parameter that takes the rest has no action');
    if (names.includes(name)) throw syntaxError(path, `the parameter '${name}' is named twice`);
    claimName(node, name);
    names.push(name);
    if (dots === undefined && action === undefined) {
      node.parameter ??= createNode();
      node = node.parameter;
      continue;
    }
    if (!last) throw syntaxError(path, `'${segment}' must be the last segment`);
    if (action === undefined) {
      node.greedy ??= createLeaf(names);
      return node.greedy;
    }
    const leaf: Leaf<T> = node.actions.get(action) ?? createLeaf(names);
    node.actions.set(action, leaf);
    return leaf;
  }
  node.leaf ??= createLeaf(names);
  return node.leaf;
}

function claimName<T>(node: Node<T>, name: string): void {
  node.name ??= name;
  if (node.name !== name)
    throw new Error(`The parameter '${name}' is called '${node.name}' by another route at the same place.`);
}

function syntaxError(path: string, reason: string): Error {
  return new Error(`Route path '${path}' is not valid: ${reason}.`);
}
