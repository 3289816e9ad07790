import type { ConversationRequest, OutputFormat } from '../../../conversation/request.js';
import { isObject, type JsonObject, numberOrNull, textOrNull } from '../../../wire/json.js';
import { wholeOrNull } from '../../../wire/reading.js';
import { untranslatable } from '../../unsupported.js';
import { decodeReasoning } from '../reasoning.js';
import { decodeSchema } from '../schema-decode.js';
import { keyOf, memberOf } from '../spelling.js';
import { decodeToolChoice, decodeTools } from './tools-decode.js';
import { decodeContents, decodeSystem } from './turns-decode.js';

/**
 * Reads the body of a generateContent request; see `TextCodec.decodeRequest`. Members may have either of their names.
 * What no other protocol can say is dropped where the answer is the same without it.
 * @throws {GatewayError} of status 400, naming the field
 */
export function decodeRequest(body: JsonObject, stream: boolean): ConversationRequest {
  if (textOrNull(memberOf(body, 'cachedContent'))) throw untranslatable(keyOf(body, 'cachedContent'));
  const named = memberOf(body, 'generationConfig');
  const config = isObject(named) ? named : {};
  const configAt = keyOf(body, 'generationConfig');
  requireText(config, configAt);
  const { tools, hostedTools } = decodeTools(body);
  return {
    from: 'generateContent',
    stream,
    system: decodeSystem(memberOf(body, 'systemInstruction'), keyOf(body, 'systemInstruction')),
    turns: decodeContents(body.contents),
    tools,
    hostedTools,
    toolChoice: decodeToolChoice(body),
    parallelCalls: null,
    format: decodeFormat(config, configAt),
    reasoning: decodeReasoning(
      memberOf(config, 'thinkingConfig'),
      `${configAt}.${keyOf(config, 'thinkingConfig')}`,
    ),
    maxTokens: numberOrNull(memberOf(config, 'maxOutputTokens')),
    temperature: numberOrNull(config.temperature),
    topP: numberOrNull(memberOf(config, 'topP')),
    topK: wholeOrNull(memberOf(config, 'topK')),
    stop: decodeStop(memberOf(config, 'stopSequences')),
    candidates: numberOrNull(memberOf(config, 'candidateCount')) ?? 1,
    seed: numberOrNull(config.seed),
    presencePenalty: numberOrNull(memberOf(config, 'presencePenalty')),
    frequencyPenalty: numberOrNull(memberOf(config, 'frequencyPenalty')),
    logitBias: null,
    logprobs: memberOf(config, 'responseLogprobs') === true ? (numberOrNull(config.logprobs) ?? 0) : null,
    verbosity: null,
    user: null,
    includeUsage: true,
    echo: null,
    compaction: null,
  };
}

/** Refuses what asks for an answer in images or sound. */
function requireText(config: JsonObject, at: string): void {
  const modalities = memberOf(config, 'responseModalities');
  if (Array.isArray(modalities)) {
    const other: unknown = modalities.find(isNoText);
    if (other !== undefined) {
      const detail = typeof other === 'string' ? `with '${other}'` : '';
      throw untranslatable(`${at}.${keyOf(config, 'responseModalities')}`, detail);
    }
  }
  for (const name of ['imageConfig', 'speechConfig'])
    if (memberOf(config, name) !== null) throw untranslatable(`${at}.${keyOf(config, name)}`);
}

function isNoText(modality: unknown): boolean {
  if (typeof modality !== 'string') return true;
  const upper = modality.toUpperCase();
  return upper !== 'TEXT' && upper !== 'MODALITY_UNSPECIFIED';
}

function decodeFormat(config: JsonObject, at: string): OutputFormat | null {
  const mediaType = textOrNull(memberOf(config, 'responseMimeType')) ?? '';
  // The bare word of `text/x.enum` would be a JSON string elsewhere.
  if (mediaType !== '' && mediaType !== 'text/plain' && mediaType !== 'application/json')
    throw untranslatable(`${at}.${keyOf(config, 'responseMimeType')}`, `of '${mediaType}'`);
  const schema = outputSchema(config, at);
  if (schema !== null) return { kind: 'schema', name: null, description: null, schema, strict: null };
  return mediaType === 'application/json' ? { kind: 'object' } : null;
}

/** The schema of the answer as JSON Schema. Other protocols take none but that of an object. */
function outputSchema(config: JsonObject, at: string): JsonObject | null {
  for (const name of ['responseJsonSchema', '_responseJsonSchema', 'responseSchema']) {
    const given = memberOf(config, name);
    if (!isObject(given)) continue;
    const schema = name === 'responseSchema' ? decodeSchema(given) : given;
    if (!mayBeObject(schema))
      throw untranslatable(`${at}.${keyOf(config, name)}`, '(a schema of an answer that is not an object)');
    return schema;
  }
  return null;
}

/** False for a schema that no object can meet. */
function mayBeObject({ type, anyOf, enum: values, items }: JsonObject): boolean {
  if (type !== undefined) return Array.isArray(type) ? type.includes('object') : type === 'object';
  if (Array.isArray(anyOf)) return anyOf.some((branch: unknown) => !isObject(branch) || mayBeObject(branch));
  return values === undefined && items === undefined;
}

function decodeStop(sequences: unknown): string[] {
  if (!Array.isArray(sequences)) return [];
  return sequences.filter((sequence): sequence is string => typeof sequence === 'string' && sequence !== '');
}
