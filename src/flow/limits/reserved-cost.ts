import type { Price } from '../../config/types.js';
import { type ServiceTier, tierOf } from '../../conversation/usage.js';
import { GatewayError } from '../../errors.js';
import { costOf } from '../../usage/cost.js';
import { QUOTE } from '../../wire/bytes.js';
import { findValues, type Span } from '../../wire/json-scan.js';
import { skipSpace } from '../../wire/json-skip.js';
import type { ResolvedCall } from '../call.js';
import { factorOf } from '../record/consumption.js';
import type { Expected } from './expected-usage.js';

/*
 * Computes what a call reserves of budgets. An upstream says in its answer which service tier and which place it has
 * charged. A request that names a dearer one than the standard reserves that, since otherwise a budget could be overrun
 * by as many calls as are in flight.
 */

const tierMembers = ['service_tier', 'serviceTier', 'speed'];
const geoMember = 'inference_geo';
const members = [...tierMembers, geoMember];
/** Longer words name nothing. */
const longestWord = 64;

/** Words for the standard tier. Any other that is not the name of a tier leaves the choice to the upstream. */
const standardWords: ReadonlySet<string> = new Set([
  'default',
  'normal',
  'on_demand',
  'service_tier_standard',
  'service_tier_unspecified',
  'standard',
  'standard_only',
  'unspecified',
]);
/** Tiers that an upstream may choose on its own. */
const chosenTiers: readonly ServiceTier[] = ['priority', 'scale'];

/** Returns the reserved cost in nano-dollars: at least that of the standard tier, which an upstream may always choose. */
export function reservedCost(
  call: ResolvedCall,
  price: Price,
  { usage, seconds, characters }: Expected,
): number {
  const { units, made } = call;
  const factor = factorOf(call);
  const costAt = (tier: ServiceTier | null, geo: string): number =>
    costOf(
      price,
      {
        usage: tier === null && geo === '' ? usage : { ...usage, geo, ...(tier === null ? {} : { tier }) },
        seconds,
        characters,
        calls: units,
        made,
      },
      factor,
    );
  const plain = costAt(null, '');
  if (call.body === null || call.upload !== null || !(hasMember(price.tiers) || hasMember(price.geos)))
    return plain;
  const words = wordsOf(call.body);
  const geo = words.at(-1) ?? '';
  let most = plain;
  for (const tier of [null, ...askedTiers(words.slice(0, -1))])
    most = Math.max(most, costAt(tier, ''), costAt(tier, geo));
  return most;
}

function hasMember(object: object): boolean {
  for (const _ in object) return true;
  return false;
}

function askedTiers(words: readonly string[]): readonly ServiceTier[] {
  return words.flatMap((word) => {
    if (word === '' || standardWords.has(word.toLowerCase())) return [];
    const tier = tierOf(word);
    return tier === null ? chosenTiers : [tier];
  });
}

/** Returns the values of `members`, in their order; an empty word for each that is missing. */
function wordsOf(body: Buffer): readonly string[] {
  try {
    return findValues(body, skipSpace(body, 0), members).map((span) => wordAt(body, span));
  } catch (fault) {
    // A member occurs twice: which one the upstream reads is unknown, and its answer will say.
    if (fault instanceof GatewayError) return members.map(() => 'auto');
    throw fault;
  }
}

function wordAt(body: Buffer, span: Span | null): string {
  if (span === null || body[span.start] !== QUOTE || span.end - span.start > longestWord) return '';
  return body.toString('latin1', span.start + 1, span.end - 1);
}
