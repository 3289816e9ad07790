import type { TargetOptions } from '../../../conversation/codec.js';
import type {
  AssistantPart,
  ContentPart,
  ConversationRequest,
  MediaPart,
  OutputFormat,
  Tool,
  ToolChoice,
  ToolResultPart,
  Turn,
} from '../../../conversation/request.js';
import { type Signature, signatureFor } from '../../../conversation/signature.js';
import { toolParameters } from '../../../conversation/tool-calls.js';
import { isObjectText, type JsonObject, wholeOrNull } from '../../../wire/json.js';
import { quoted } from '../../../wire/quoted.js';
import { refuseUnsupported, unsupportedSetting } from '../../unsupported.js';
import { encodeReasoning } from '../reasoning.js';
import { encodeSchema, type SchemaSpare, schemaSpare } from '../schema-encode.js';

/**
 * Writes the body of a generateContent request; see `TextCodec.encodeRequest`. The path contains the model, and whether
 * the answer is streamed. `parallel_tool_calls`, `verbosity` and the user's id are dropped.
 * @throws {GatewayError} of status 400, naming the client's field, for what the protocol cannot express
 */
export function encodeRequest(request: ConversationRequest, target: TargetOptions): string {
  refuseUnsupported(request, target, 'generateContent', ['logitBias']);
  const tools = encodeTools(request, target);
  const contents = encodeContents(request.turns, target);
  if (contents === '[]')
    throw unsupportedSetting(request, 'prefill', 'generateContent', 'without a message that says something');
  const system = request.system.join('\n\n');
  const head = JSON.stringify({
    systemInstruction: system === '' ? undefined : { parts: [{ text: system }] },
    tools,
    toolConfig: encodeToolConfig(request),
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
  // Without a schema, the answer is any object.
  else put('responseSchema', encodeSchema(format.schema));
}

/**
 * Writes the part of a tool's result.
 * @param names of the functions by the ids of their calls
 * @param inside the part contains the media of the result
 */
function resultPart(result: ToolResultPart, names: ReadonlyMap<string, string>, inside: boolean): string {
  const { callId, content, isError } = result;
  const name = names.get(callId) ?? result.name;
  const response = responseText(textOf(content), isError);
  let media = '';
  if (inside) for (const part of content) if (part.kind !== 'text') media = joined(media, spokenPart(part));
  const parts = media === '' ? '' : `,"parts":[${media}]`;
  const named = `"id":${JSON.stringify(callId)},"name":${JSON.stringify(name)}`;
  return `{"functionResponse":{${named},"response":${response}${parts}}}`;
}

/** Writes the text of a result. The protocol requires an object: the text of one is inserted unchanged. */
function responseText(text: string, isError: boolean): string {
  if (isError) return `{"error":${JSON.stringify(text === '' ? 'The tool failed.' : text)}}`;
  return isObjectText(text) ? text : `{"result":${JSON.stringify(text)}}`;
}

function textOf(content: readonly ContentPart[]): string {
  let text: string | null = null;
  for (const part of content)
    if (part.kind === 'text') text = text === null ? part.text : `${text}\n${part.text}`;
  return text ?? '';
}

/** Writes the media of a result as separate parts. A text before them names the result. */
function attachments({ content, callId }: ToolResultPart): string {
  let parts = '';
  for (const part of content) {
    if (part.kind === 'text') continue;
    if (parts === '') parts = textPart(`Attachments of the result of tool call ${callId}:`);
    parts = joined(parts, spokenPart(part));
  }
  return parts;
}

/** Writes a part of the user; empty for an empty text. */
function spokenPart(part: ContentPart): string {
  return part.kind === 'text' ? textPart(part.text) : `{${mediaMembers(part)}}`;
}

/** Writes a text; empty for an empty one. */
function textPart(text: string): string {
  return text === '' ? '' : `{"text":${quoted(text)}}`;
}

/** Returns the members of a part that is a medium. */
function mediaMembers({ source }: MediaPart): string {
  if (source.kind === 'data')
    return `"inlineData":{"mimeType":${JSON.stringify(source.mediaType)},"data":${quoted(source.data)}}`;
  const mediaType = source.mediaType === null ? '' : `,"mimeType":${JSON.stringify(source.mediaType)}`;
  return `"fileData":{"fileUri":${JSON.stringify(source.url)}${mediaType}}`;
}

/** Joins two lists of parts. */
function joined(parts: string, more: string): string {
  return parts === '' || more === '' ? parts + more : `${parts},${more}`;
}

/**
 * Replaces the signature of a call that another vendor's model made, or that a client sent back without it. Models with
 * levels of reasoning refuse a call without a signature (https://ai.google.dev/gemini-api/docs/thought-signatures,
 * "FAQs").
 */
export const unsigned = 'skip_thought_signature_validator';

/** State while the turns are written in their order. */
interface Writing {
  readonly target: Pick<TargetOptions, 'thinking'>;
  /** Names of the functions by the ids of their calls. */
  readonly names: Map<string, string>;
}

/**
 * Writes `contents`: the JSON text of the array. Consecutive turns of one role are one content, since the protocol
 * requires user and model to alternate. Instructions in the middle of a conversation are texts of the user.
 * @returns `[]` if the turns have no content
 * @throws {GatewayError} of status 400, naming the client's field, for parts that the protocol cannot express
 */
function encodeContents(turns: readonly Turn[], target: Pick<TargetOptions, 'thinking'>): string {
  const writing: Writing = { target, names: new Map() };
  let text = '';
  let parts = '';
  let wasModel = false;
  for (let index = 0; index < turns.length; ) {
    const isModel = turns[index]?.role === 'assistant';
    let end = index + 1;
    while (end < turns.length && (turns[end]?.role === 'assistant') === isModel) end++;
    const row = turns.slice(index, end);
    index = end;
    const more = isModel ? modelParts(row, writing) : userParts(row, writing);
    // A row without content is not written, so those around it are one content.
    if (more === '') continue;
    if (isModel !== wasModel) {
      text = joined(text, contentOf(wasModel, parts));
      parts = '';
      wasModel = isModel;
    }
    parts = joined(parts, more);
  }
  text = joined(text, contentOf(wasModel, parts));
  return `[${text}]`;
}

/** Writes a content; empty for one without parts. */
function contentOf(isModel: boolean, parts: string): string {
  return parts === '' ? '' : `{"role":"${isModel ? 'model' : 'user'}","parts":[${parts}]}`;
}

/**
 * Writes the parts of the user. Results stand first, since they must follow their calls immediately. The media of
 * results stand after all of them.
 */
function userParts(turns: readonly Turn[], writing: Writing): string {
  let results = '';
  let media = '';
  let spoken = '';
  for (const turn of turns) {
    if (turn.role === 'system') {
      spoken = joined(spoken, textPart(turn.text));
    } else if (turn.role === 'user') {
      for (const part of turn.parts) {
        if (part.kind !== 'toolResult') {
          spoken = joined(spoken, spokenPart(part));
          continue;
        }
        const inside = writing.target.thinking === 'levels';
        results = joined(results, resultPart(part, writing.names, inside));
        if (!inside) media = joined(media, attachments(part));
      }
    }
  }
  return joined(joined(results, media), spoken);
}

function modelParts(turns: readonly Turn[], { target, names }: Writing): string {
  let parts = '';
  // Stands on the part after the reasoning, or on the next call if the vendor had it on one: Gemini 3 requires it
  // there.
  let signature: Pick<Signature, 'value' | 'isOfCall'> | null = null;
  let calls = 0;
  for (const turn of turns) {
    if (turn.role !== 'assistant') continue;
    for (const part of turn.parts) {
      if (part.kind === 'reasoning') {
        const own = signatureFor('generateContent', part.signature);
        if (own === null) continue;
        if (signature !== null) parts = joined(parts, signed('"text":""', signature.value));
        if (part.text !== '') parts = joined(parts, `{"text":${quoted(part.text)},"thought":true}`);
        signature = own;
        continue;
      }
      if (part.kind === 'toolCall') {
        names.set(part.id, part.name);
        if (calls++ === 0 && target.thinking === 'levels') signature ??= { value: unsigned };
      }
      const members = modelMembers(part);
      if (members === '') continue;
      if (signature === null || (signature.isOfCall && part.kind !== 'toolCall')) {
        parts = joined(parts, `{${members}}`);
        continue;
      }
      parts = joined(parts, signed(members, signature.value));
      signature = null;
    }
  }
  return signature === null ? parts : joined(parts, signed('"text":""', signature.value));
}

/** Returns the members of a part; empty for an empty text. */
function modelMembers(part: Exclude<AssistantPart, { readonly kind: 'reasoning' }>): string {
  if (part.kind === 'toolCall')
    // The text of the arguments is inserted unchanged, since a parse would round large numbers.
    return `"functionCall":{"id":${JSON.stringify(part.id)},"name":${JSON.stringify(part.name)},"args":${part.input}}`;
  if (part.kind === 'text' || part.kind === 'refusal')
    return part.text === '' ? '' : `"text":${quoted(part.text)}`;
  return mediaMembers(part);
}

function signed(members: string, signature: string): string {
  return `{${members},"thoughtSignature":${JSON.stringify(signature)}}`;
}

/**
 * Writes `tools`; undefined if there are none. `strict` is dropped.
 * @throws {GatewayError} of status 400, naming the client's field, for tools that are not functions
 */
function encodeTools(request: ConversationRequest, target: TargetOptions): JsonObject[] | undefined {
  const { tools, search } = request;
  const list: JsonObject[] = [];
  const spare = schemaSpare();
  if (tools.length > 0)
    list.push({ functionDeclarations: tools.map((tool) => encodeFunction(tool, target, spare)) });
  if (search !== undefined) list.push({ googleSearch: {} });
  return list.length === 0 ? undefined : list;
}

/** Writes the choice of tools. It is refused without functions, and hosted tools may just have been dropped. */
function encodeToolConfig(request: ConversationRequest): JsonObject | undefined {
  const { tools, toolChoice, search } = request;
  if (tools.length === 0) return undefined;
  // Required if the vendor's own tools stand beside functions (https://ai.google.dev/gemini-api/docs/tool-combination).
  const told = search === undefined ? {} : { includeServerSideToolInvocations: true };
  const config = { ...(toolChoice === null ? {} : encodeToolChoice(request, toolChoice)), ...told };
  return Object.keys(config).length === 0 ? undefined : config;
}

/**
 * Writes `toolConfig`.
 * @throws {GatewayError} of status 400, naming the client's field, for a choice among no tools
 */
function encodeToolChoice(request: ConversationRequest, choice: ToolChoice): JsonObject {
  // An empty list of names means all of them.
  if (choice.mode === 'allowed' && choice.names.length === 0)
    throw unsupportedSetting(request, 'toolChoice', 'generateContent', 'that allows no tool at all');
  return { functionCallingConfig: callingConfig(choice) };
}

function callingConfig(choice: ToolChoice): JsonObject {
  switch (choice.mode) {
    case 'none':
      return { mode: 'NONE' };
    case 'auto':
      return { mode: 'AUTO' };
    case 'required':
      return { mode: 'ANY' };
    case 'named':
      return { mode: 'ANY', allowedFunctionNames: [choice.name] };
    case 'allowed':
      // No version takes names with `AUTO`. `VALIDATED` is the mode that also permits a text.
      return { mode: choice.required ? 'ANY' : 'VALIDATED', allowedFunctionNames: choice.names };
  }
}

function encodeFunction(
  { name, description, parameters }: Tool,
  target: TargetOptions,
  spare: SchemaSpare,
): JsonObject {
  const described = { name, description: description ?? undefined };
  if (target.jsonSchema) return { ...described, parametersJsonSchema: toolParameters(parameters) };
  if (parameters === null) return described;
  return { ...described, parameters: encodeSchema(parameters, spare) ?? undefined };
}
