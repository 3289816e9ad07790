import { wrongValue } from '../wire/reading.js';
import { type Effort, type EffortWord, efforts, type Reasoning } from './request.js';

/**
 * Highest budget in tokens that still counts as the effort; above the last it is `xhigh`. None is `minimal`, which the
 * models before and after GPT-5 refuse, as Gemini Pro does (https://platform.openai.com/docs/guides/reasoning).
 */
const budgetBounds: readonly (readonly [number, Effort])[] = [
  [0, 'none'],
  [4096, 'low'],
  [12_288, 'medium'],
  [20_000, 'high'],
];

/** The effort that a budget of reasoning tokens stands for; null for a negative one, which leaves it to the model. */
export function effortOfBudget(tokens: number): Effort | null {
  if (tokens < 0) return null;
  return budgetBounds.find(([bound]) => tokens <= bound)?.[1] ?? 'xhigh';
}

/** Longer words are none. */
const longestWord = 64;

/**
 * The effort that a word names, in lower case. Vendors have words of their own, which the rules of a target may map, so
 * one that is not known here is an effort as well.
 * @returns null for an empty word, and for one that is too long to be one
 */
export function effortOfWord(word: string): EffortWord | null {
  return word === '' || word.length > longestWord ? null : word.toLowerCase();
}

/**
 * Reads an effort of a client's body; null where it says none.
 * @param at path of it in the body
 * @throws {GatewayError} of status 400 for what can be no effort
 */
export function readEffort(value: unknown, at: string): EffortWord | null {
  if (value === undefined || value === null) return null;
  const effort = typeof value === 'string' ? effortOfWord(value) : null;
  if (effort === null) throw wrongValue(at, `a word such as ${efforts.join(', ')}`);
  return effort;
}

/** The effort, or null for a word that only its vendor knows. */
export function knownEffort(word: EffortWord | null): Effort | null {
  return efforts.find((effort) => effort === word) ?? null;
}

/** What a client asks of reasoning, in the words of a target. */
export function inWordsOf(
  efforts: ReadonlyMap<string, string>,
  reasoning: Reasoning | null,
): Reasoning | null {
  const word = reasoning?.effort == null ? undefined : efforts.get(reasoning.effort);
  return reasoning === null || word === undefined ? reasoning : { ...reasoning, effort: word };
}
