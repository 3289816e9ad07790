import { wrongValue } from '../wire/json.js';
import { type Effort, type EffortWord, efforts, type Reasoning } from './request.js';

/**
 * Highest token budget for each effort. Higher budgets are `xhigh`. None is `minimal`, which the models before and
 * after GPT-5 reject, as does Gemini Pro (https://platform.openai.com/docs/guides/reasoning).
 */
const budgetBounds: readonly (readonly [number, Effort])[] = [
  [0, 'none'],
  [4096, 'low'],
  [12_288, 'medium'],
  [20_000, 'high'],
];

/** Returns the effort for a budget of reasoning tokens. Null for a negative one, which leaves it to the model. */
export function effortOfBudget(tokens: number): Effort | null {
  if (tokens < 0) return null;
  return budgetBounds.find(([bound]) => tokens <= bound)?.[1] ?? 'xhigh';
}

/** Maximum length of an effort. */
const longestWord = 64;

/**
 * Returns the effort that a word names, in lower case. Vendors have their own words, which the rules of a target may
 * map. Unknown words are therefore efforts as well.
 * @returns null for an empty word, and for one that is too long
 */
export function effortOfWord(word: string): EffortWord | null {
  return word === '' || word.length > longestWord ? null : word.toLowerCase();
}

/**
 * Reads an effort from a client's body. Returns null if it is absent.
 * @param at path in the body
 * @throws {GatewayError} with status 400 for a value that cannot be an effort
 */
export function readEffort(value: unknown, at: string): EffortWord | null {
  if (value === undefined || value === null) return null;
  const effort = typeof value === 'string' ? effortOfWord(value) : null;
  if (effort === null) throw wrongValue(at, `a word such as ${efforts.join(', ')}`);
  return effort;
}

/** Returns the effort, or null for a word that only its vendor knows. */
export function knownEffort(word: EffortWord | null): Effort | null {
  return efforts.find((effort) => effort === word) ?? null;
}

/** Replaces the effort by the target's word for it. */
export function mapEffort(
  efforts: ReadonlyMap<string, string>,
  reasoning: Reasoning | null,
): Reasoning | null {
  const word = reasoning?.effort == null ? undefined : efforts.get(reasoning.effort);
  return reasoning === null || word === undefined ? reasoning : { ...reasoning, effort: word };
}
