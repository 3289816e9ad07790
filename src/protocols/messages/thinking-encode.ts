import type { TargetManner } from '../../conversation/codec.js';
import type { JsonObject } from '../../conversation/json.js';
import type { ConversationRequest, Effort } from '../../conversation/request.js';

export interface EncodedThinking {
  readonly thinking: JsonObject | undefined;
  /** For `output_config`. */
  readonly effort: string | undefined;
  readonly maxTokens: number;
}

type Thoughtful = Exclude<Effort, 'none'>;

/** Tokens of thinking for each effort, where the model knows budgets alone. */
const budgets: Readonly<Record<Thoughtful, number>> = {
  minimal: 1024,
  low: 2048,
  medium: 8192,
  high: 16_384,
  xhigh: 24_576,
  max: 32_000,
};
/** The protocol's least. */
const leastBudget = 1024;
/** Tokens that are left for the answer beside the thinking, which counts against the limit. */
const answerTokens = 1024;

/**
 * Writes what the client asks of reasoning, and the limit of tokens with it.
 * @param possible false where the rest of the request does not go with thinking: then there is none
 */
export function encodeThinking(
  { reasoning, maxTokens }: ConversationRequest,
  target: TargetManner,
  possible: boolean,
): EncodedThinking {
  const without = { thinking: undefined, effort: undefined, maxTokens: maxTokens ?? target.maxTokens };
  if (reasoning === null) return without;
  const { effort, show } = reasoning;
  // Models that adapt may think unless they are told not to.
  if (effort === 'none')
    return target.adaptiveThinking ? { ...without, thinking: { type: 'disabled' } } : without;
  if (target.adaptiveThinking) {
    const thinking = { type: 'adaptive', display: show ? 'summarized' : 'omitted' };
    const word = effort === 'minimal' ? 'low' : (effort ?? undefined);
    return { ...without, thinking: possible ? thinking : { type: 'disabled' }, effort: word };
  }
  const wanted = reasoning.budget ?? (effort === null ? null : budgets[effort]);
  if (wanted === null || wanted <= 0) return without;
  const { budget, limit } = fit(Math.max(leastBudget, wanted), maxTokens, target.maxTokens);
  if (budget < leastBudget) return without;
  // The limit stays what it is in the turns that think.
  if (!possible) return { ...without, maxTokens: limit };
  // What is left out of the answer is not to come back either: its signature alone stands for it.
  const display = show ? undefined : 'omitted';
  return { ...without, thinking: { type: 'enabled', budget_tokens: budget, display }, maxTokens: limit };
}

/** The budget must be below the limit. The client's own limit stands; a spare one gives way. */
function fit(
  wanted: number,
  maxTokens: number | null,
  spareLimit: number,
): { budget: number; limit: number } {
  if (maxTokens === null) return { budget: wanted, limit: Math.max(spareLimit, wanted + answerTokens) };
  return { budget: wanted < maxTokens ? wanted : maxTokens - answerTokens, limit: maxTokens };
}
