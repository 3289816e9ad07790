import { effortOfWord } from '../../../conversation/effort.js';
import {
  type ConversationRequest,
  efforts,
  type OutputFormat,
  type Reasoning,
} from '../../../conversation/request.js';
import { isObject, type JsonObject, numberOrNull, textOrNull } from '../../../wire/json.js';
import { decodeStop, wrongValue } from '../../../wire/reading.js';
import { untranslatable } from '../../unsupported.js';
import { decodeToolChoice, decodeTools } from './tools-decode.js';
import { decodeMessages } from './turns-decode.js';

/**
 * Reads the body of `POST /v1/chat/completions`; see `TextCodec.decodeRequest`. What no other protocol can say is
 * dropped where the answer is the same without it.
 * @throws {GatewayError} of status 400, naming the field
 */
export function decodeRequest(body: JsonObject, stream: boolean): ConversationRequest {
  requireTextOutput(body.modalities);
  const { tools, hostedTools } = decodeTools(body);
  const { system, turns } = decodeMessages(body.messages);
  return {
    from: 'chat',
    stream,
    system,
    turns,
    tools,
    hostedTools,
    toolChoice: decodeToolChoice(body),
    parallelCalls: typeof body.parallel_tool_calls === 'boolean' ? body.parallel_tool_calls : null,
    format: decodeFormat(body.response_format),
    reasoning: decodeReasoning(body.reasoning_effort),
    maxTokens: numberOrNull(body.max_completion_tokens) ?? numberOrNull(body.max_tokens),
    temperature: numberOrNull(body.temperature),
    topP: numberOrNull(body.top_p),
    topK: null,
    stop: decodeStop(body.stop),
    candidates: numberOrNull(body.n) ?? 1,
    seed: numberOrNull(body.seed),
    presencePenalty: numberOrNull(body.presence_penalty),
    frequencyPenalty: numberOrNull(body.frequency_penalty),
    logitBias: decodeBias(body.logit_bias),
    logprobs: body.logprobs === true ? (numberOrNull(body.top_logprobs) ?? 0) : null,
    verbosity: textOrNull(body.verbosity),
    user: textOrNull(body.safety_identifier) ?? textOrNull(body.user),
    includeUsage: isObject(body.stream_options) && body.stream_options.include_usage === true,
    echo: null,
    compaction: null,
  };
}

function requireTextOutput(modalities: unknown): void {
  if (!Array.isArray(modalities)) return;
  const other = modalities.find((modality) => modality !== 'text');
  if (other !== undefined) throw untranslatable('modalities', `with '${String(other)}'`);
}

function decodeFormat(format: unknown): OutputFormat | null {
  if (!isObject(format) || format.type === 'text') return null;
  if (format.type === 'json_object') return { kind: 'object' };
  if (format.type !== 'json_schema')
    throw untranslatable('response_format', `of type '${String(format.type)}'`);
  const named = format.json_schema;
  if (!isObject(named)) throw wrongValue('response_format.json_schema', 'an object');
  // Without a schema all that is asked for is JSON.
  if (!isObject(named.schema)) return { kind: 'object' };
  return {
    kind: 'schema',
    name: textOrNull(named.name),
    description: textOrNull(named.description),
    schema: named.schema,
    strict: typeof named.strict === 'boolean' ? named.strict : null,
  };
}

function decodeReasoning(word: unknown): Reasoning | null {
  if (word === undefined || word === null) return null;
  const effort = typeof word === 'string' ? effortOfWord(word) : null;
  if (effort === null) throw wrongValue('reasoning_effort', `one of ${efforts.join(', ')}`);
  return { effort, budget: null, show: true, summary: null };
}

function decodeBias(bias: unknown): JsonObject | null {
  return isObject(bias) && Object.keys(bias).length > 0 ? bias : null;
}
