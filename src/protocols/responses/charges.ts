import type { AnswerCharges } from '../../conversation/stream-rules.js';
import { addUsage, noParts, tierOf, type Usage, withCharges } from '../../conversation/usage.js';
import { OPEN_BRACE } from '../../wire/bytes.js';
import {
  countOf,
  isObject,
  type JsonObject,
  listOf,
  objectAt,
  objectOf,
  parseObject,
} from '../../wire/json.js';
import {
  contains,
  lastMemberAt,
  lastMemberObject,
  needleOf,
  textStart,
  wordAfter,
} from '../../wire/json-skip.js';
import { eventEnd, eventObject, lastEventEnd, parseEvent } from '../../wire/sse.js';
import { decodeTokens, levelsOfAnswer, levelsOfEvent } from './answer/usage.js';
import { isSearch, reportedSearches } from './search-item.js';

/** The results of many searches make an answer long, and the usage at its end does not count the searches. */
export const noteBytes = 8 * 1024 * 1024;

/** As it stands in an item. A quoted text cannot occur inside another one. */
const searchType = Buffer.from('"web_search_call"');
const tierKey = needleOf('"service_tier"');
const toolUsageKey = needleOf('"tool_usage"');
const svgUsageKey = needleOf('"svg_usage"');
/** A part of a stream with the usage of tools, which a response has, is longer than most others, also if it names no tier. */
const leastWithTools = 512;
const itemDone = 'response.output_item.done';
/** The name of an event, or the type in its data, is within this many bytes. */
const headBytes = 128;

/**
 * Records the searches and images of an answer, which its usage does not count, and the last tier in it; see
 * `StreamRules.noteCharges`.
 */
export function noteCharges(run: Buffer, charges: AnswerCharges): void {
  const isAnswer = run[textStart(run)] === OPEN_BRACE;
  const levels = isAnswer ? levelsOfAnswer : levelsOfEvent;
  const hasTier = contains(run, tierKey);
  if (hasTier) {
    const member = lastMemberAt(run, tierKey.whole, levels);
    // A member of that name in a tool or in the metadata says nothing about the tier.
    if (member !== -1) charges.tier = tierOf(wordAfter(run, member, tierKey.whole.length));
  }
  const isLong = isAnswer || run.length >= leastWithTools;
  const mayTell = (hasTier || isLong) && contains(run, toolUsageKey);
  const toolsAt = mayTell ? lastMemberObject(run, toolUsageKey.whole, levels) : -1;
  const tools = objectAt(run, toolsAt);
  const told = reportedSearches(tools);
  charges.searches = told ?? charges.searches;
  // What the beginning of a stream reports of its tools does not include later searches.
  if (told === null) countSearches(run, isAnswer, charges, 0);
  else if (!isAnswer) countSearches(run, isAnswer, charges, toolsAt);
  const images = usageOfImages(tools?.image_gen);
  const written = hasTier && contains(run, svgUsageKey) ? usageOfWritten(run, isAnswer) : null;
  if (images !== null || written !== null)
    charges.ofTools = written === null ? images : addUsage(images, written);
}

/** Returns the usage of a model that wrote images as SVG. It stands in their items, beside the usage of the images. */
function usageOfWritten(run: Buffer, isAnswer: boolean): Usage | null {
  const event = run.toString('utf8', isAnswer ? 0 : lastEventEnd(run, 0, run.length - 1));
  const told = parseObject(isAnswer ? event : (parseEvent(event).data ?? ''));
  let usage: Usage | null = null;
  for (const item of listOf((isAnswer ? told : objectOf(told?.response))?.output)) {
    const svg = objectOf(objectOf(item).svg_usage);
    const [input, output] = [countOf(svg.input_tokens), countOf(svg.output_tokens)];
    const reasoning = countOf(svg.reasoning_tokens);
    if (input + output > 0) usage = addUsage(usage, { input, output, cached: 0, cacheWritten: 0, reasoning });
  }
  return usage;
}

function countSearches(run: Buffer, isAnswer: boolean, charges: AnswerCharges, from: number): void {
  let at = run.indexOf(searchType, from);
  if (at === -1) return;
  if (isAnswer) {
    const output = parseObject(run.toString('utf8'))?.output;
    charges.searches += listOf(output).filter(isSearch).length;
    return;
  }
  while (at !== -1) {
    const start = lastEventEnd(run, 0, at);
    const end = eventEnd(run, at);
    // Other events of the same search, and the last event, repeat it.
    if (run.toString('latin1', start, Math.min(end, start + headBytes)).includes(itemDone)) {
      const body = eventObject(run, start, end);
      if (isObject(body?.item) && isSearch(body.item)) charges.searches++;
    }
    at = run.indexOf(searchType, end);
  }
}

/**
 * Reads the usage of a parsed response, with that of its tools.
 * @param searches number of searches among its items, for a response that does not report it
 */
export function decodeUsage(response: JsonObject, searches: number): Usage | null {
  const tools = objectOf(response.tool_usage);
  const usage = decodeTokens(response, reportedSearches(tools) ?? searches);
  const images = usageOfImages(tools.image_gen);
  return usage === null || images === null ? usage : { ...usage, ...addUsage(usage, images) };
}

/** Returns the usage of images, which another model makes; null if none were made. */
function usageOfImages(images: unknown): Usage | null {
  if (!isObject(images)) return null;
  const usage = {
    input: countOf(images.input_tokens),
    output: countOf(images.output_tokens),
    cached: countOf(images.cached_tokens),
    cacheWritten: 0,
    reasoning: 0,
  };
  if (usage.input + usage.output === 0) return null;
  const { image_tokens: ofOutput = usage.output } = objectOf(images.output_tokens_details);
  return withCharges(usage, {
    parts: {
      ...noParts,
      imageInput: countOf(objectOf(images.input_tokens_details).image_tokens),
      cachedImage: countOf(objectOf(images.cached_tokens_details).cached_image_tokens),
      imageOutput: countOf(ofOutput),
    },
  });
}
