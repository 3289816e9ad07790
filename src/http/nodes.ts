import type { PathPart } from './path.js';

export interface Found<T> {
  readonly kind: 'found';
  readonly value: T;
  /** Percent-decoded values of the path's parameters. */
  readonly params: Readonly<Record<string, string>>;
}

/** The path is known, the method is not; `allow` is the value of the `Allow` header. */
export interface MethodNotAllowed {
  readonly kind: 'methodNotAllowed';
  readonly allow: string;
}

/** The end of a path: its methods, and beside them the answers, made at registration. */
export interface Leaf<T> {
  /** Names of the path's parameters, in order. */
  readonly names: readonly string[];
  readonly methods: string[];
  /** Parallel to `methods`; without parameters. */
  readonly answers: Found<T>[];
  refused: MethodNotAllowed;
}

/**
 * A place in the tree, reached after `prefix`. The wildcards are those that may begin here; they share one name,
 * so that a parameter has the same meaning whichever route matches.
 */
export interface Node<T> {
  prefix: string;
  /** First character codes of the children, beside them: a scan of few integers costs less than a Map. */
  readonly codes: number[];
  readonly children: Node<T>[];
  leaf: Leaf<T> | null;
  /** Name of the parameter that may begin here, or null where none does. */
  name: string | null;
  /** Parallel: the action behind the last colon, and where it leads. */
  readonly actions: string[];
  readonly actionLeaves: Leaf<T>[];
  /** Where a parameter of one segment leads. */
  parameter: Node<T> | null;
  greedy: Leaf<T> | null;
}

const noParams: Readonly<Record<string, string>> = Object.freeze({});

/** Makes a node with nothing below it. */
export function createNode<T>(prefix: string): Node<T> {
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
 * Finds the leaf of a path below `root`, and makes what is missing on the way.
 * @throws Error when the path names a parameter otherwise than another route does at the same place.
 */
export function leafFor<T>(root: Node<T>, parts: readonly PathPart[]): Leaf<T> {
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
        return actionLeaf(node, part.action, names);
      case 'greedy':
        node.greedy ??= createLeaf(names);
        return node.greedy;
    }
  }
  node.leaf ??= createLeaf(names);
  return node.leaf;
}

/** Adds a method to the end of a path. */
export function addMethod<T>(leaf: Leaf<T>, method: string, value: T): void {
  leaf.methods.push(method);
  leaf.answers.push(Object.freeze({ kind: 'found', value, params: noParams }));
  leaf.refused = refusal(leaf.methods);
}

/** The child that continues with `path` at `offset`, or null. */
export function staticChild<T>(node: Node<T>, path: string, offset: number): Node<T> | null {
  const index = node.codes.indexOf(path.charCodeAt(offset));
  if (index === -1) return null;
  const child = node.children[index];
  return child !== undefined && path.startsWith(child.prefix, offset) ? child : null;
}

function createLeaf<T>(names: readonly string[]): Leaf<T> {
  return { names, methods: [], answers: [], refused: refusal([]) };
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

function actionLeaf<T>(node: Node<T>, action: string, names: readonly string[]): Leaf<T> {
  const known = node.actionLeaves[node.actions.indexOf(action)];
  if (known !== undefined) return known;
  const leaf = createLeaf<T>(names);
  node.actions.push(action);
  node.actionLeaves.push(leaf);
  return leaf;
}

/** Follows static text from a node, splitting a child where the text leaves its prefix half-way. */
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
