import type { AnswerPart } from '../../conversation/answer.js';
import type { TargetOptions } from '../../conversation/codec.js';
import { effortOfBudget, effortOfWord, knownEffort } from '../../conversation/effort.js';
import type { AssistantPart, Effort, EffortWord, Reasoning } from '../../conversation/request.js';
import { isObject, type JsonObject, numberOrNull, textOf, wrongValue } from '../../wire/json.js';
import { keyOf, memberOf } from './spelling.js';

/** Thinking budget, in tokens, for each effort; -1 lets the model decide. */
const budgets: Readonly<Record<Effort, number>> = {
  none: 0,
  minimal: 512,
  low: 1024,
  medium: 8192,
  high: 24_576,
  xhigh: 24_576,
  max: -1,
};
/**
 * Models with levels cannot turn their reasoning off. All of them have `LOW`. Some lack `MINIMAL`, which is sent only
 * if the client requested it by that word (https://ai.google.dev/gemini-api/docs/thinking#thinking-levels).
 */
const levels: Readonly<Record<Effort, string>> = {
  none: 'LOW',
  minimal: 'MINIMAL',
  low: 'LOW',
  medium: 'MEDIUM',
  high: 'HIGH',
  xhigh: 'HIGH',
  max: 'HIGH',
};
/**
 * The only model with budgets that cannot turn thinking off. It also takes no budget below this minimum
 * (https://ai.google.dev/gemini-api/docs/thinking#set-budget).
 */
const alwaysThinking = /(?:^|\/)gemini-2\.5-pro/;
const leastBudget = 128;
/** The largest budget that all models with budgets take. */
const mostBudget = 24_576;

/**
 * Reads `thinkingConfig`.
 * @param at path of it in the client's body
 * @throws {GatewayError} of status 400 for a level that is not documented
 */
export function decodeReasoning(config: unknown, at: string): Reasoning | null {
  if (!isObject(config)) return null;
  const show = memberOf(config, 'includeThoughts') === true;
  const tokens = numberOrNull(memberOf(config, 'thinkingBudget'));
  const budget = tokens !== null && tokens >= 0 ? tokens : null;
  const level = textOf(memberOf(config, 'thinkingLevel'));
  let effort: EffortWord | null = budget === null ? null : effortOfBudget(budget);
  if (level !== '' && level !== 'THINKING_LEVEL_UNSPECIFIED') {
    effort = effortOfWord(level);
    if (effort === null)
      throw wrongValue(`${at}.${keyOf(config, 'thinkingLevel')}`, "'MINIMAL', 'LOW', 'MEDIUM' or 'HIGH'");
  }
  return effort === null && !show ? null : { effort, budget, show, summary: null };
}

/** Writes `thinkingConfig`; undefined if everything is left to the model. */
export function encodeReasoning(
  { effort, budget, show }: Reasoning,
  { model, thinking }: Pick<TargetOptions, 'model' | 'thinking'>,
): JsonObject | undefined {
  const includeThoughts = show && effort !== 'none' ? true : undefined;
  // A word in capitals is the target's own, which its rules have put in place of the client's.
  if (thinking === 'levels' && effort !== null && effort !== effort.toLowerCase())
    return { includeThoughts, thinkingLevel: effort };
  const known = knownEffort(effort);
  if (known === null && budget === null)
    return includeThoughts === undefined ? undefined : { includeThoughts };
  if (thinking === 'levels') return { includeThoughts, thinkingLevel: levels[known ?? 'high'] };
  const wanted = budget === null ? budgets[known ?? 'max'] : Math.min(Math.round(budget), mostBudget);
  const isTooSmall = wanted >= 0 && wanted < leastBudget && alwaysThinking.test(model);
  const thinkingBudget = isTooSmall ? leastBudget : wanted;
  return { includeThoughts, thinkingBudget };
}

/**
 * Adds a thought. Consecutive thoughts, up to a signature, are one reasoning: protocols that sign it keep both in one
 * block.
 */
export function addReasoning(
  parts: AssistantPart[] | AnswerPart[],
  text: string,
  signature: string | null,
): void {
  if (text === '' && signature === null) return;
  const last = parts.at(-1);
  if (last?.kind === 'reasoning' && last.signature === null)
    parts[parts.length - 1] = { kind: 'reasoning', text: last.text + text, signature };
  else parts.push({ kind: 'reasoning', text, signature });
}
