import type { AnswerCharges } from '../../conversation/stream-rules.js';
import { textsIn } from '../../conversation/web-search.js';
import { isObject, parseObject } from '../../wire/json.js';
import { textStart } from '../../wire/json-skip.js';
import { eventEnd, lastEventEnd, parseEvent } from '../../wire/sse.js';
import { candidatesOf } from './answer/decode.js';

/** A quoted key cannot occur inside a string, where its quotes would be escaped. */
const queriesKey = Buffer.from('"webSearchQueries"');
/** So many queries of one answer are told apart. */
const mostQueries = 1000;
const OPEN_BRACE = 0x7b;

/**
 * Takes note of the queries of an answer, of which its usage says nothing
 * (https://ai.google.dev/gemini-api/docs/google-search#pricing); see `StreamRules.noteCharges`.
 */
export function noteCharges(run: Buffer, charges: AnswerCharges): void {
  let at = run.indexOf(queriesKey);
  if (at === -1) return;
  if (run[textStart(run)] === OPEN_BRACE) {
    addQueries(run.toString('utf8'), charges);
    return;
  }
  while (at !== -1) {
    const start = lastEventEnd(run, 0, at);
    const end = eventEnd(run, at);
    addQueries(parseEvent(run.toString('utf8', start, end)).data ?? '', charges);
    at = run.indexOf(queriesKey, end);
  }
}

function addQueries(text: string, { queries }: AnswerCharges): void {
  for (const { groundingMetadata: metadata } of candidatesOf(parseObject(text) ?? {})) {
    if (!isObject(metadata)) continue;
    for (const query of textsIn(metadata.webSearchQueries))
      if (queries.size < mostQueries) queries.add(query);
  }
}
