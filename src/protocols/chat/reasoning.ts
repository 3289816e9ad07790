import { effortOfBudget, effortOfWord, readEffort } from '../../conversation/effort.js';
import type { EffortWord, Reasoning } from '../../conversation/request.js';
import { isObject, type JsonObject, objectOf } from '../../wire/json.js';

/*
 * Other vendors with this protocol have their own members for reasoning, which their clients send to a model of any
 * other protocol as well. Anything in them that is not understood leaves it to the model, as it did before.
 *
 * - OpenRouter's `reasoning` (https://openrouter.ai/docs/use-cases/reasoning-tokens)
 * - `thinking` of DeepSeek, Z.ai, Moonshot and others (https://api-docs.deepseek.com/guides/thinking_mode)
 * - `enable_thinking` with `thinking_budget` of Model Studio
 *   (https://www.alibabacloud.com/help/en/model-studio/deep-thinking)
 */

/** What OpenRouter takes if reasoning is switched on and nothing says how much. */
const plainEffort = 'medium';

/** More than any model takes. */
const mostBudget = 1_000_000;

/**
 * Reads what a client asks for of reasoning, in OpenAI's member or another vendor's. A switch that is off wins, and leaves
 * it to the model: some clients send it to every model, and a model that cannot switch reasoning off would refuse it.
 * Then counts an effort, then a budget.
 * @throws {GatewayError} of status 400 for a `reasoning_effort` that cannot be one
 */
export function decodeReasoning(body: JsonObject): Reasoning | null {
  const own = readEffort(body.reasoning_effort, 'reasoning_effort');
  const reasoning = objectOf(body.reasoning);
  const thinking = objectOf(body.thinking);
  const show = reasoning.exclude !== true;
  if (isSwitchedOff(body)) return null;
  const effort = own ?? wordIn(reasoning);
  if (effort !== null) return { effort, budget: null, show, summary: null };
  const budget = [reasoning.max_tokens, thinking.budget_tokens, body.thinking_budget].find(isBudget) ?? null;
  if (budget !== null) return { effort: effortOfBudget(budget), budget, show, summary: null };
  const isOn = reasoning.enabled === true || isSwitchedOn(thinking.type) || body.enable_thinking === true;
  return isOn ? { effort: plainEffort, budget: null, show, summary: null } : null;
}

/** Tells whether another vendor's switch is off. */
export function isSwitchedOff({ reasoning, thinking, enable_thinking }: JsonObject): boolean {
  return (
    objectOf(reasoning).enabled === false ||
    objectOf(thinking).type === 'disabled' ||
    enable_thinking === false
  );
}

function wordIn({ effort }: JsonObject): EffortWord | null {
  return typeof effort === 'string' ? effortOfWord(effort) : null;
}

function isBudget(tokens: unknown): tokens is number {
  return typeof tokens === 'number' && Number.isInteger(tokens) && tokens >= 0 && tokens <= mostBudget;
}

/** MiniMax says `adaptive`, Volcengine `auto`. */
function isSwitchedOn(type: unknown): boolean {
  return type === 'enabled' || type === 'adaptive' || type === 'auto';
}

/** Tells whether a stream ends with its usage. OpenRouter has a member of its own for that. */
export function wantsUsage({ stream_options, usage }: JsonObject): boolean {
  return (
    (isObject(stream_options) && stream_options.include_usage === true) ||
    (isObject(usage) && usage.include === true)
  );
}
