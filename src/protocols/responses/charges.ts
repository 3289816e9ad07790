import type { AnswerCharges } from '../../conversation/stream-rules.js';
import { tierOf } from '../../conversation/usage.js';
import { isObject, listOf, parseObject } from '../../wire/json.js';
import { contains, lastMemberAt, needleOf, textStart, wordAfter } from '../../wire/json-skip.js';
import { eventEnd, lastEventEnd, parseEvent } from '../../wire/sse.js';
import { levelsOfAnswer, levelsOfEvent } from './answer/usage.js';
import { isSearch } from './search-item.js';

/** What many searches have found makes an answer long, and the usage at its end does not count them. */
export const noteBytes = 8 * 1024 * 1024;

/** As it stands in an item: a quoted text cannot stand inside another one. */
const searchType = Buffer.from('"web_search_call"');
const tierKey = needleOf('"service_tier"');
const itemDone = 'response.output_item.done';
/** An event's name, or the type in its data, is within so many bytes. */
const headBytes = 128;
const OPEN_BRACE = 0x7b;

/**
 * Takes note of the searches of an answer, which its usage does not count, and of the tier that it names last; see
 * `StreamRules.noteCharges`.
 */
export function noteCharges(run: Buffer, charges: AnswerCharges): void {
  const isAnswer = run[textStart(run)] === OPEN_BRACE;
  if (contains(run, tierKey)) {
    const member = lastMemberAt(run, tierKey.whole, isAnswer ? levelsOfAnswer : levelsOfEvent);
    // What a tool or the metadata calls so says nothing of the tier, not even that there is none.
    if (member !== -1) charges.tier = tierOf(wordAfter(run, member, tierKey.whole.length));
  }
  let at = run.indexOf(searchType);
  if (at === -1) return;
  if (isAnswer) {
    const output = parseObject(run.toString('utf8'))?.output;
    charges.searches += listOf(output).filter(isSearch).length;
    return;
  }
  while (at !== -1) {
    const start = lastEventEnd(run, 0, at);
    const end = eventEnd(run, at);
    // The events around it, and the last one, tell of the same search.
    if (run.toString('latin1', start, Math.min(end, start + headBytes)).includes(itemDone)) {
      const body = parseObject(parseEvent(run.toString('utf8', start, end)).data ?? '');
      if (isObject(body?.item) && isSearch(body.item)) charges.searches++;
    }
    at = run.indexOf(searchType, end);
  }
}
