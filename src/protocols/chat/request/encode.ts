import type { TargetOptions } from '../../../conversation/codec.js';
import type { ConversationRequest, OutputFormat } from '../../../conversation/request.js';
import type { JsonObject } from '../../../wire/json.js';
import { refuseHostedTools, unsupportedSetting } from '../../unsupported.js';
import { encodeTool, encodeToolChoice } from './tools-encode.js';
import { encodeMessages } from './turns-encode.js';

/** Stop sequences that the protocol takes. */
const maxStops = 4;

/**
 * Writes the body of a chat request; see `TextCodec.encodeRequest`. `top_k` is dropped.
 * @throws {GatewayError} of status 400, naming the client's field, for what the protocol cannot say
 */
export function encodeRequest(request: ConversationRequest, target: TargetOptions): string {
  const { stop, tools, toolChoice, logprobs } = request;
  refuseHostedTools(request, target, 'chat');
  if (stop.length > maxStops)
    throw unsupportedSetting(request, 'stop', 'chat', `with more than ${maxStops} sequences`);
  // Upstreams refuse settings of tools where there are none, and the hosted ones may just have been dropped.
  const withTools = tools.length > 0;
  return (
    `{"model":${JSON.stringify(target.model)}` +
    streaming(request, target) +
    member(target.maxTokensField, request.maxTokens) +
    member('temperature', request.temperature) +
    member('top_p', request.topP) +
    member('n', request.candidates > 1 ? request.candidates : null) +
    member('stop', stop.length > 0 ? stop : null) +
    member('seed', request.seed) +
    member('presence_penalty', request.presencePenalty) +
    member('frequency_penalty', request.frequencyPenalty) +
    member('logit_bias', request.logitBias) +
    member('logprobs', logprobs === null ? null : true) +
    member('top_logprobs', logprobs || null) +
    member('user', request.user) +
    member('verbosity', request.verbosity) +
    member('reasoning_effort', request.reasoning?.effort ?? null) +
    member('response_format', request.format === null ? null : encodeFormat(request.format)) +
    member('tools', withTools ? tools.map(encodeTool) : null) +
    member('tool_choice', withTools ? (encodeToolChoice(toolChoice, tools) ?? null) : null) +
    member('parallel_tool_calls', withTools ? request.parallelCalls : null) +
    `,"messages":[${encodeMessages(request.system, request.turns).join(',')}]}`
  );
}

function streaming({ stream }: ConversationRequest, { streamUsage }: TargetOptions): string {
  if (!stream) return '';
  return streamUsage ? ',"stream":true,"stream_options":{"include_usage":true}' : ',"stream":true';
}

/** @returns a member with its comma, or nothing for one that is not set */
function member(name: string, value: unknown): string {
  return value === null ? '' : `,"${name}":${JSON.stringify(value)}`;
}

function encodeFormat(format: OutputFormat): JsonObject {
  if (format.kind === 'object') return { type: 'json_object' };
  return {
    type: 'json_schema',
    json_schema: {
      name: format.name ?? 'response',
      description: format.description ?? undefined,
      schema: format.schema,
      strict: format.strict ?? undefined,
    },
  };
}
