import type { Price } from '../../config/types.js';
import { ofImages } from '../../conversation/estimate-usage.js';
import { noParts, type ServiceTier, tierOf, type Usage, withCharges } from '../../conversation/usage.js';
import { GatewayError } from '../../errors.js';
import { textEndpoints } from '../../protocols/text.js';
import { costOf } from '../../usage/cost.js';
import { COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE } from '../../wire/bytes.js';
import { findValues, type Span } from '../../wire/json-scan.js';
import { endOfValue, mostDepth, skipSpace } from '../../wire/json-skip.js';
import { outputMembers, toolsMember } from '../../wire/routed-members.js';
import type { ResolvedCall } from '../call.js';
import { factorOf } from '../record/consumption.js';
import { type Expected, numberAt } from './expected-usage.js';

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

/** Names of the modalities of an answer: in chat, and in the `outputMembers.configs` of generateContent. */
const modalityMembers = ['modalities', 'responseModalities', 'response_modalities'];

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
  const most = withSearches(call, price, ofDearestKind(call, price, usage));
  const factor = factorOf(call);
  const costAt = (tier: ServiceTier | null, geo: string): number =>
    costOf(
      price,
      {
        usage: tier === null && geo === '' ? most : { ...most, geo, ...(tier === null ? {} : { tier }) },
        seconds,
        characters,
        units,
        made,
      },
      factor,
    );
  const plain = costAt(null, '');
  if (call.body === null || call.upload !== null || !(hasMember(price.tiers) || hasMember(price.geos)))
    return plain;
  const words = wordsOf(call.body);
  const geo = words.at(-1) ?? '';
  let dearest = plain;
  for (const tier of [null, ...askedTiers(words.slice(0, -1))])
    dearest = Math.max(dearest, costAt(tier, ''), costAt(tier, geo));
  return dearest;
}

/** Returns the usage with all of its output as the dearest kind that the body allows. */
function ofDearestKind({ body, upload, route, model }: ResolvedCall, { rates }: Price, usage: Usage): Usage {
  const { output, audioOutput, imageOutput } = rates;
  if (body === null || upload !== null || usage.parts !== undefined) return usage;
  if (Math.max(audioOutput, imageOutput) <= output) return usage;
  const asked = modalitiesIn(body);
  // Models make sound only if it is asked for.
  const isUnasked =
    route.endpoint?.translation?.makesImagesUnasked === true ||
    model.targets.some(
      ({ translatesTo }) =>
        translatesTo !== null && textEndpoints[translatesTo].translation.makesImagesUnasked,
    );
  const isImage = (asked === '' && isUnasked) || asked.includes('image') || hasImageTool(body);
  const ofImage = isImage ? imageOutput : 0;
  if (asked.includes('audio') && audioOutput > Math.max(output, ofImage))
    return withCharges(usage, { parts: { ...noParts, audioOutput: usage.output } });
  return ofImage > output ? ofImages(usage) : usage;
}

/** Returns the text of the list of modalities in lower case; empty if there is none. */
function modalitiesIn(body: Buffer): string {
  return tolerant('', () => {
    const start = skipSpace(body, 0);
    const configs = findValues(body, start, outputMembers.configs).flatMap((span) =>
      span !== null && body[span.start] === OPEN_BRACE ? [span.start] : [],
    );
    const spans = [start, ...configs].flatMap((from) => findValues(body, from, modalityMembers));
    return spans
      .map((span) => (span === null ? '' : body.toString('latin1', span.start, span.end)))
      .join('')
      .toLowerCase();
  });
}

/** Adds the searches that the tools of a messages body allow, as far as they have a price. A count of tokens makes none. */
function withSearches({ body, upload, units }: ResolvedCall, { rates }: Price, usage: Usage): Usage {
  if (body === null || upload !== null || units === 0 || rates.perSearch === 0) return usage;
  return withCharges(usage, { ...usage, searches: tolerant(0, () => searchesIn(body)) });
}

function searchesIn(body: Buffer): number {
  let searches = 0;
  for (const at of toolsIn(body)) {
    const [type = null, uses = null] = findValues(body, at, ['type', 'max_uses']);
    if (wordAt(body, type).startsWith('web_search')) searches += numberAt(body, uses) ?? 0;
  }
  return searches;
}

/** Whether a responses body has the tool by which its model makes images. */
function hasImageTool(body: Buffer): boolean {
  return tolerant(true, () => {
    for (const at of toolsIn(body)) {
      const [type = null] = findValues(body, at, ['type']);
      if (wordAt(body, type) === 'image_generation') return true;
    }
    return false;
  });
}

/** Yields where each tool of a body begins. */
function* toolsIn(body: Buffer): Generator<number> {
  const [tools = null] = findValues(body, skipSpace(body, 0), [toolsMember]);
  if (tools === null || body[tools.start] !== OPEN_BRACKET) return;
  let at = skipSpace(body, tools.start + 1);
  while (body[at] === OPEN_BRACE) {
    yield at;
    at = skipSpace(body, endOfValue(body, at, mostDepth));
    at = body[at] === COMMA ? skipSpace(body, at + 1) : tools.end;
  }
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
  // If a member occurs twice, it is unknown which one the upstream reads, and its answer will say.
  const unclear = members.map(() => 'auto');
  return tolerant(unclear, () =>
    findValues(body, skipSpace(body, 0), members).map((span) => wordAt(body, span)),
  );
}

/** Reads a body in which a member may occur twice. @param unclear the result if one does */
function tolerant<Result>(unclear: Result, read: () => Result): Result {
  try {
    return read();
  } catch (fault) {
    if (fault instanceof GatewayError) return unclear;
    throw fault;
  }
}

function wordAt(body: Buffer, span: Span | null): string {
  if (span === null || body[span.start] !== QUOTE || span.end - span.start > longestWord) return '';
  return body.toString('latin1', span.start + 1, span.end - 1);
}
