/**
 * Reads one parameter from a raw query string without parsing the others, since this runs for every request that may
 * have its key there. Decodes like URLSearchParams, but only finds a name that is written without escapes.
 * @param query without the question mark
 * @returns the first value of that name; empty if it is absent. A value with a malformed escape is returned unchanged
 */
export function queryParameter(query: string, name: string): string {
  let offset = 0;
  while (offset < query.length) {
    const next = query.indexOf('&', offset);
    const end = next === -1 ? query.length : next;
    const equals = offset + name.length;
    if (equals < end && query[equals] === '=' && query.startsWith(name, offset)) {
      return decode(query.slice(equals + 1, end));
    }
    offset = end + 1;
  }
  return '';
}

/** Returns the decoded name of one pair of a raw query string. */
export function queryName(pair: string): string {
  const equals = pair.indexOf('=');
  return decode(equals === -1 ? pair : pair.slice(0, equals));
}

/** Appends a query to a path, which may have one. @param query without the question mark; may be empty */
export function withQuery(path: string, query: string): string {
  return query === '' ? path : `${path}${path.includes('?') ? '&' : '?'}${query}`;
}

function decode(text: string): string {
  if (!text.includes('%') && !text.includes('+')) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return text;
  }
}
