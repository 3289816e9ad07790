import { ambiguousMembers, MemberGuard } from '../../wire/member-guard.js';
import { queryName } from '../../wire/query.js';
import type { SteeringMember } from '../../wire/routed-members.js';

/**
 * Characters that are not allowed in a query (RFC 3986 section 3.4), and those that some servers read as the end of a
 * pair.
 */
const unplain = /[^!"$-:<-~]/gu;
/** Parameters that the gateway sets or that are its own. */
const ownNames: ReadonlySet<string> = new Set([
  ...['', 'model'],
  ...['key', 'api-key', 'authorization', 'access_token', 'token'],
]);

/** Parameters that the gateway reads. An upstream receives all of them but the key. */
const guard = new MemberGuard({ reads: ['model', 'key', 'call_id', 'intent'], steers: true });

/**
 * Checks the parameters of a query that is sent to an upstream.
 * @returns those that would redirect the upstream
 * @throws {GatewayError} with status 400 for a parameter that is ambiguous or duplicated
 */
export function checkQueryMembers(query: string): readonly SteeringMember[] {
  const steering: SteeringMember[] = [];
  const seen = new Map<object, string>();
  // Some servers also split at semicolons.
  for (const pair of query.split(/[&;]/)) {
    const equals = pair.indexOf('=');
    const name = equals === -1 ? pair : pair.slice(0, equals);
    const bracket = decoded(name).indexOf('[');
    const entry = guard.entryOf(bracket > 0 ? decoded(name).slice(0, bracket) : decoded(name));
    if (entry === null) continue;
    if (entry.kind === 'steering') {
      steering.push(entry.steering);
      continue;
    }
    const before = seen.get(entry);
    if (before !== undefined) throw ambiguousMembers('query', '', entry, [before, name]);
    if (!entry.spellings.includes(name)) throw ambiguousMembers('query', '', entry, [name]);
    seen.set(entry, name);
  }
  return steering;
}

function decoded(name: string): string {
  const spaced = name.replaceAll('+', ' ');
  try {
    return decodeURIComponent(spaced);
  } catch {
    return spaced.replaceAll(/%([0-7][0-9a-f])/gi, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
  }
}

/**
 * Makes the query of the upgrade at an upstream: the client's, with the upstream's name of the model and without a key.
 * @param query the client's query, without the question mark
 * @param model the upstream's name of the model, or null to name none
 * @param baseQuery the upstream's own query, which takes precedence over the client's parameters of the same names
 */
export function upstreamQuery(query: string, model: string | null, baseQuery = ''): string {
  const others = new Set(baseQuery.split('&').map((pair) => queryName(pair).toLowerCase()));
  const pairs = model === null ? [] : [`model=${encodeURIComponent(model)}`];
  for (const pair of query.split('&')) {
    // In any spelling: the upstream decodes the name, and some servers use the last of two models.
    const name = queryName(pair).trim().toLowerCase();
    if (!ownNames.has(name) && !others.has(name)) pairs.push(pair.replaceAll(unplain, percentEncoded));
  }
  return pairs.join('&');
}

function percentEncoded(character: string): string {
  return Buffer.from(character).toString('hex').toUpperCase().replaceAll(/../g, '%$&');
}
