import type { TargetManner } from '../../conversation/codec.js';
import type { JsonObject } from '../../conversation/json.js';
import { wholeOrNull } from '../../conversation/reading.js';
import type { ConversationRequest } from '../../conversation/request.js';
import { unsupportedSetting } from '../../conversation/unsupported.js';
import { isBlank } from './content-encode.js';
import { encodeMessages } from './messages-encode.js';
import { encodeThinking } from './thinking-encode.js';
import { encodeTools } from './tools-encode.js';

/** Stands for a setting that the protocol does not have. */
const jsonOnly =
  'Answer with a single valid JSON object and nothing else: no other text before or after it, no code fence.';
/** Least `top_p` that the upstream takes beside thinking. */
const leastThinkingTopP = 0.95;

/**
 * Writes the body of a messages request; see `TextCodec.encodeRequest`. Seed, penalties and verbosity are dropped.
 * @throws {GatewayError} of status 400, naming the client's field, for what the protocol cannot say
 */
export function encodeRequest(request: ConversationRequest, target: TargetManner): string {
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
