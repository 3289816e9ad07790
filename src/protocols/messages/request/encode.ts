import type { TargetOptions } from '../../../conversation/codec.js';
import type { ConversationRequest, Effort } from '../../../conversation/request.js';
import type { JsonObject } from '../../../wire/json.js';
import { wholeOrNull } from '../../../wire/reading.js';
import { unsupportedSetting } from '../../unsupported.js';
import { isBlank } from './content-encode.js';
import { encodeTools } from './tools-encode.js';
import { encodeMessages } from './turns-encode.js';

/** Stands for a setting that the protocol does not have. */
const jsonOnly =
  'Answer with a single valid JSON object and nothing else: no other text before or after it, no code fence.';
/** Least `top_p` that the upstream takes beside thinking. */
const leastThinkingTopP = 0.95;

/**
 * Writes the body of a messages request; see `TextCodec.encodeRequest`. Seed, penalties and verbosity are dropped.
 * @throws {GatewayError} of status 400, naming the client's field, for what the protocol cannot say
 */
export function encodeRequest(request: ConversationRequest, target: TargetOptions): string {
  refuseUnsayable(request);
  const { tools, toolChoice, forced } = encodeTools(request, target);
  const messages = encodeMessages(request);
  const { thinking, effort, maxTokens } = encodeThinking(request, target, messages.mayThink && !forced);
  const thinks = thinking !== undefined && thinking.type !== 'disabled';
  const settings = JSON.stringify({
    model: target.model,
    max_tokens: maxTokens,
    stream: request.stream || undefined,
    stop_sequences: request.stop.length > 0 ? request.stop : undefined,
    ...encodeSampling(request, thinks),
    metadata: request.user === null ? undefined : { user_id: request.user },
    thinking,
    output_config: encodeOutput(request, effort),
    system: encodeSystem(request),
    tools,
    tool_choice: toolChoice,
  });
  return `${settings.slice(0, -1)},"messages":${messages.text}}`;
}

function refuseUnsayable(request: ConversationRequest): void {
  if (request.candidates > 1)
    throw unsupportedSetting(request, 'candidates', 'messages', 'with more than one answer');
  if (request.logprobs !== null) throw unsupportedSetting(request, 'logprobs', 'messages');
  if (request.logitBias !== null && Object.keys(request.logitBias).length > 0)
    throw unsupportedSetting(request, 'logitBias', 'messages');
  if (request.stop.some(isBlank))
    throw unsupportedSetting(request, 'stop', 'messages', 'with a sequence of white space');
}

/**
 * Thinking goes with none of these. Newer models refuse temperature and `top_p` together: one that says no more than
 * its default is left out then, and where both say more the temperature alone is sent.
 */
function encodeSampling({ temperature, topP, topK }: ConversationRequest, thinks: boolean): JsonObject {
  if (thinks) return { top_p: topP !== null && topP >= leastThinkingTopP ? topP : undefined };
  // Both defaults are 1, which is as far as this protocol's temperature goes.
  const byTopP = temperature === null || (temperature >= 1 && topP !== null && topP < 1);
  return {
    temperature: byTopP ? undefined : Math.min(1, temperature),
    top_p: byTopP ? (topP ?? undefined) : undefined,
    top_k: wholeOrNull(topK) ?? undefined,
  };
}

function encodeOutput({ format }: ConversationRequest, effort: string | undefined): JsonObject | undefined {
  if (format?.kind === 'schema') return { effort, format: { type: 'json_schema', schema: format.schema } };
  return effort === undefined ? undefined : { effort };
}

function encodeSystem({ system, format }: ConversationRequest): JsonObject[] | undefined {
  const texts = system.filter((text) => !isBlank(text));
  if (format?.kind === 'object') texts.push(jsonOnly);
  return texts.length === 0 ? undefined : texts.map((text) => ({ type: 'text', text }));
}

interface EncodedThinking {
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
function encodeThinking(
  { reasoning, maxTokens }: ConversationRequest,
  target: TargetOptions,
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
