import { type Effort, efforts } from './request.js';

/** Highest budget in tokens that still counts as the effort; above the last it is `xhigh`. */
const budgetBounds: readonly (readonly [number, Effort])[] = [
  [0, 'none'],
  [1024, 'minimal'],
  [4096, 'low'],
  [12_288, 'medium'],
  [20_000, 'high'],
];

/** The effort that a budget of reasoning tokens stands for; null for a negative one, which leaves it to the model. */
export function effortOfBudget(tokens: number): Effort | null {
  if (tokens < 0) return null;
  return budgetBounds.find(([bound]) => tokens <= bound)?.[1] ?? 'xhigh';
}

/** The effort that a word names, in any case, or null for one that is none. */
export function effortOfWord(word: string): Effort | null {
  const lower = word.toLowerCase();
  return efforts.find((effort) => effort === lower) ?? null;
}
