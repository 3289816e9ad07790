import { effortOfWord } from '../../../conversation/effort.js';
import type { ConversationRequest, OutputFormat, Reasoning } from '../../../conversation/request.js';
import { isObject, type JsonObject, numberOrNull, textOrNull } from '../../../wire/json.js';
import type { Sealer } from '../../../wire/seal.js';
import { untranslatable } from '../../unsupported.js';
import { asCompaction, keptContents } from '../compact.js';
import { listTools } from '../namespaces.js';
import { invalid, missing, ofType } from '../refusals.js';
import { decodeTool, decodeToolChoice } from './tools-decode.js';
import { decodeInput } from './turns-decode.js';

/** Settings that a response repeats. */
const echoed = [
  'instructions',
  'max_output_tokens',
  'max_tool_calls',
  'parallel_tool_calls',
  'prompt_cache_key',
  'reasoning',
  'safety_identifier',
  'service_tier',
  'temperature',
  'text',
  'tool_choice',
  'tools',
  'top_logprobs',
  'top_p',
  'truncation',
  'user',
  'metadata',
] as const;

/**
 * Decodes the body of `POST /v1/responses`; see `TextCodec.decodeRequest`. An input that ends with a
 * `compaction_trigger` becomes the question for a summary.
 */
export function decodeRequest(body: JsonObject, stream: boolean, sealer: Sealer): ConversationRequest {
  const { request, wantsCompaction } = decodeBody(body, stream, sealer);
  return wantsCompaction ? asCompaction(request, 'item') : request;
}

/** What a compaction is made of; clients send the settings of their turns along, which mean nothing here. */
const compacted = [
  'input',
  'instructions',
  'previous_response_id',
  'tools',
  'safety_identifier',
  'user',
] as const;

/** Decodes the body of `POST /v1/responses/compact`, as the question for a summary. */
export function decodeCompactRequest(
  body: JsonObject,
  _stream: boolean,
  sealer: Sealer,
): ConversationRequest {
  const { request } = decodeBody(pick(body, compacted), false, sealer);
  return { ...asCompaction(request, 'object'), echo: { kept: keptContents(body.input) } };
}

interface DecodedBody {
  readonly request: ConversationRequest;
  readonly wantsCompaction: boolean;
}

function decodeBody(body: JsonObject, stream: boolean, sealer: Sealer): DecodedBody {
  refuseServerState(body);
  const list = listTools(body.tools);
  const input = decodeInput(body.input, list, sealer);
  const text = isObject(body.text) ? body.text : {};
  const { choice, hosted } = decodeToolChoice(body.tool_choice, list);
  const request: ConversationRequest = {
    from: 'responses',
    stream,
    system:
      typeof body.instructions === 'string' && body.instructions !== ''
        ? [body.instructions, ...input.system]
        : input.system,
    turns: input.turns,
    tools: list.listed.map(decodeTool),
    hostedTools: [...list.hosted, ...hosted, ...input.hosted],
    toolChoice: choice,
    parallelCalls: typeof body.parallel_tool_calls === 'boolean' ? body.parallel_tool_calls : null,
    format: decodeFormat(text.format),
    reasoning: decodeReasoning(body.reasoning),
    maxTokens: numberOrNull(body.max_output_tokens),
    temperature: numberOrNull(body.temperature),
    topP: numberOrNull(body.top_p),
    topK: null,
    stop: [],
    candidates: 1,
    seed: null,
    presencePenalty: null,
    frequencyPenalty: null,
    logitBias: null,
    logprobs: decodeLogprobs(body),
    verbosity: textOrNull(text.verbosity),
    user: textOrNull(body.safety_identifier) ?? textOrNull(body.user),
    includeUsage: true,
    echo: pick(body, echoed),
    compaction: null,
  };
  return { request, wantsCompaction: input.wantsCompaction };
}

/** Refuses what lives at an upstream of this protocol, and a body without an input. */
function refuseServerState(body: JsonObject): void {
  for (const member of ['previous_response_id', 'conversation', 'prompt']) {
    if ((body[member] ?? null) !== null) throw untranslatable(member);
  }
  if (body.background === true) throw untranslatable('background');
  if (Array.isArray(body.instructions)) throw untranslatable('instructions', 'as a list of items');
  if ((body.input ?? null) !== null) return;
  throw missing('input', 'a string or an array');
}

function decodeFormat(format: unknown): OutputFormat | null {
  if (!isObject(format) || format.type === 'text') return null;
  if (format.type === 'json_object') return { kind: 'object' };
  if (format.type !== 'json_schema') throw untranslatable('text.format', ofType(format.type));
  if (!isObject(format.schema)) throw missing('text.format.schema', 'an object');
  return {
    kind: 'schema',
    name: textOrNull(format.name),
    description: textOrNull(format.description),
    schema: format.schema,
    strict: typeof format.strict === 'boolean' ? format.strict : null,
  };
}

function decodeReasoning(value: unknown): Reasoning | null {
  if (!isObject(value)) return null;
  const word = textOrNull(value.effort);
  const effort = word === null ? null : effortOfWord(word);
  if (word !== null && effort === null)
    throw invalid('reasoning.effort', `'${word.slice(0, 64)}' is no effort`);
  const wanted = textOrNull(value.summary) ?? textOrNull(value.generate_summary);
  const summary = wanted === 'none' ? null : wanted;
  if (effort === null && summary === null) return null;
  return { effort, budget: null, show: summary !== null, summary };
}

function decodeLogprobs(body: JsonObject): number | null {
  const { include } = body;
  if (!Array.isArray(include) || !include.includes('message.output_text.logprobs')) return null;
  return numberOrNull(body.top_logprobs) ?? 0;
}

/** The members of these names that are there. */
function pick(body: JsonObject, names: readonly string[]): JsonObject {
  const picked: Record<string, unknown> = {};
  for (const name of names) {
    const value = body[name] ?? null;
    if (value !== null) picked[name] = value;
  }
  return picked;
}
