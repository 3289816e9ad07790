import type { RouterEntry, RouterMatch } from '../../src/http/router.js';

/** How specific a matched segment is; lower wins. */
const rank = { static: 0, action: 1, parameter: 2, greedy: 3 };

interface Attempt {
  readonly ranks: readonly number[];
  readonly raw: Readonly<Record<string, string>>;
}

/** The router's rules said plainly: try every route, keep the most specific path, then look at the method. */
export function findNaively<T>(
  entries: readonly RouterEntry<T>[],
  method: string,
  path: string,
): RouterMatch<T> {
  let best: { readonly pattern: string; readonly attempt: Attempt } | null = null;
  for (const entry of entries) {
    const attempt = matchPath(entry.path, path);
    if (attempt === null) continue;
    if (best === null || isBefore(attempt.ranks, best.attempt.ranks)) best = { pattern: entry.path, attempt };
  }
  if (best === null) return { kind: 'notFound' };
  const { pattern, attempt } = best;
  const siblings = entries.filter((entry) => entry.path === pattern);
  const hit = siblings.find((entry) => entry.method === method);
  if (hit === undefined) {
    const allow = siblings.map((entry) => entry.method).sort();
    return { kind: 'methodNotAllowed', allow: allow.join(', ') };
  }
  try {
    const decoded = Object.entries(attempt.raw).map(
      ([name, raw]) => [name, decodeURIComponent(raw)] as const,
    );
    return { kind: 'found', value: hit.value, params: Object.fromEntries(decoded) };
  } catch {
    return { kind: 'notFound' };
  }
}

function matchPath(pattern: string, path: string): Attempt | null {
  const wanted = pattern.split('/');
  const given = path.split('/');
  const ranks: number[] = [];
  const raw: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const segment = given[index];
    if (segment === undefined) return null;
    const greedy = /^\{(\w+)\.\.\.\}$/.exec(part);
    const action = /^\{(\w+)\}:(.+)$/.exec(part);
    const parameter = /^\{(\w+)\}$/.exec(part);
    if (greedy !== null || action !== null) {
      let rest = given.slice(index).join('/');
      if (action !== null) {
        const colon = rest.lastIndexOf(':');
        if (colon === -1 || rest.slice(colon + 1) !== action[2]) return null;
        rest = rest.slice(0, colon);
      }
      if (rest.split('/').includes('')) return null;
      raw[(greedy ?? action)?.[1] ?? ''] = rest;
      return { ranks: [...ranks, greedy === null ? rank.action : rank.greedy], raw };
    }
    if (parameter === null) {
      if (part !== segment) return null;
      ranks.push(rank.static);
      continue;
    }
    if (segment === '') return null;
    raw[parameter[1] ?? ''] = segment;
    ranks.push(rank.parameter);
  }
  return given.length === wanted.length ? { ranks, raw } : null;
}

function isBefore(one: readonly number[], other: readonly number[]): boolean {
  const length = Math.min(one.length, other.length);
  for (let index = 0; index < length; index++) {
    const difference = (one[index] ?? 0) - (other[index] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return false;
}
