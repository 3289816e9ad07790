import type { TargetOptions } from '../../../conversation/codec.js';
import type { ConversationRequest, OutputFormat } from '../../../conversation/request.js';
import type { JsonObject } from '../../../wire/json.js';
import { wholeOrNull } from '../../../wire/reading.js';
import { unsupportedSetting } from '../../unsupported.js';
import { encodeReasoning } from '../reasoning.js';
import { encodeSchema } from '../schema-encode.js';
import { encodeToolChoice, encodeTools } from './tools-encode.js';
import { encodeContents } from './turns-encode.js';

/** Stop sequences that the protocol takes. */
const maxStops = 5;

/**
 * Writes the body of a generateContent request; see `TextCodec.encodeRequest`. The model and whether the answer is
 * streamed stand in the path. `parallel_tool_calls`, `verbosity` and the user's id are dropped.
 * @throws {GatewayError} of status 400, naming the client's field, for what the protocol cannot say
 */
export function encodeRequest(request: ConversationRequest, target: TargetOptions): string {
  if (request.logitBias !== null && Object.keys(request.logitBias).length > 0)
    throw unsupportedSetting(request, 'logitBias', 'generateContent');
  if (request.stop.length > maxStops)
    throw unsupportedSetting(request, 'stop', 'generateContent', `with more than ${maxStops} sequences`);
  const tools = encodeTools(request, target);
  const contents = encodeContents(request.turns, target);
  if (contents === '[]')
    throw unsupportedSetting(request, 'prefill', 'generateContent', 'without a message that says something');
  const system = request.system.join('\n\n');
  const head = JSON.stringify({
    systemInstruction: system === '' ? undefined : { parts: [{ text: system }] },
    tools,
    // A choice without tools is refused, and the hosted ones may just have been dropped.
    toolConfig:
      tools === undefined || request.toolChoice === null
        ? undefined
        : encodeToolChoice(request, request.toolChoice),
    generationConfig: encodeConfig(request, target),
  });
  return `${head.slice(0, -1)}${head === '{}' ? '' : ','}"contents":${contents}}`;
}

function encodeConfig(request: ConversationRequest, target: TargetOptions): JsonObject | undefined {
  const { stop, candidates, logprobs, format, reasoning } = request;
  const config: Record<string, unknown> = {};
  const put = (name: string, value: unknown): void => {
    if (value !== null && value !== undefined) config[name] = value;
  };
  put('temperature', request.temperature);
  put('topP', request.topP);
  put('topK', wholeOrNull(request.topK));
  put('candidateCount', candidates > 1 ? candidates : null);
  put('maxOutputTokens', wholeOrNull(request.maxTokens));
  put('stopSequences', stop.length > 0 ? stop : null);
  put('presencePenalty', request.presencePenalty);
  put('frequencyPenalty', request.frequencyPenalty);
  put('seed', wholeOrNull(request.seed));
  put('responseLogprobs', logprobs === null ? null : true);
  put('logprobs', wholeOrNull(logprobs) || null);
  if (format !== null) putFormat(put, format, target);
  if (reasoning !== null) put('thinkingConfig', encodeReasoning(reasoning, target));
  return Object.keys(config).length === 0 ? undefined : config;
}

function putFormat(
  put: (name: string, value: unknown) => void,
  format: OutputFormat,
  { jsonSchema }: TargetOptions,
): void {
  put('responseMimeType', 'application/json');
  if (format.kind === 'object') return;
  if (jsonSchema) put('responseJsonSchema', format.schema);
  // Without a schema the answer is any object.
  else put('responseSchema', encodeSchema(format.schema));
}
