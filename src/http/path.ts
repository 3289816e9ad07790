/** One piece of a route's path. */
export type PathPart =
  | { readonly kind: 'static'; readonly text: string }
  /** `{name}`: one segment. */
  | { readonly kind: 'parameter'; readonly name: string }
  /** `{name}:action`, last: everything up to the path's last `:action`. */
  | { readonly kind: 'suffix'; readonly name: string; readonly action: string }
  /** `{name...}`, last: everything that is left. */
  | { readonly kind: 'greedy'; readonly name: string };

// A name starts with a letter, so it can never be `__proto__`.
const wildcard = /^\{([A-Za-z][A-Za-z0-9_]*)(\.\.\.)?\}(?::([A-Za-z0-9_-]+))?$/;
const staticText = /^[^{}?#\s]*$/;

/**
 * Reads a route's path: static text, `{name}`, and as the last segment `{name}:action` or `{name...}`.
 * @throws Error when the text is not of this syntax.
 */
export function parsePath(path: string): readonly PathPart[] {
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
