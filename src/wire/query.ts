/**
 * Reads one parameter out of a raw query string without parsing the others: this runs for every request that may
 * carry its key there. Form decoding as URLSearchParams does it, but a name is only known in its plain spelling.
 * @param query without the question mark.
 * @returns the first value of that name; empty where it is absent. A malformed escape leaves the value as it came.
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

/** The name of one pair of a raw query string, as whoever decodes it reads it. */
export function queryName(pair: string): string {
  const equals = pair.indexOf('=');
  return decode(equals === -1 ? pair : pair.slice(0, equals));
}

/** A path with its query and more of one. @param query without the question mark; empty for nothing more */
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
