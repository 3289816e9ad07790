import { isObject, type JsonObject } from '../../../src/wire/json.js';
import { unnamed } from '../events.js';
import { at } from '../json.js';
import {
  type Asked,
  type AskedTurn,
  checkNames,
  checkSchema,
  newTurn,
  objectOf,
  objectsOf,
  oneOf,
  onlyMembers,
  rule,
  textOf,
} from './asked.js';
import { type Memory, sign } from './memory.js';
import { pieces, type Reply, type Written } from './reply.js';

const members =
  'contents systemInstruction tools toolConfig safetySettings cachedContent labels serviceTier store generationConfig ' +
  'model';
const configMembers =
  'temperature topP topK candidateCount maxOutputTokens stopSequences presencePenalty frequencyPenalty seed ' +
  'responseMimeType responseSchema responseJsonSchema responseLogprobs logprobs responseModalities imageConfig ' +
  'speechConfig mediaResolution thinkingConfig enableEnhancedCivicAnswers';
const data = 'text inlineData fileData functionCall functionResponse executableCode codeExecutionResult';
const partMembers = `${data} thought thoughtSignature videoMetadata mediaResolution partMetadata`;
const schemaMembers =
  'type format title description nullable enum maxItems minItems properties required minProperties maxProperties ' +
  'minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum';
/** What may stand in the place of a signature where another model made the call. */
const noSignature = new Set(['skip_thought_signature_validator', 'context_engineering_is_the_way_to_go']);
const levels = 'minimal low medium high thinking_level_unspecified';
const name = /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$/;

/**
 * Reads a generateContent request by the rules of https://ai.google.dev/api/generate-content and its pages on function
 * calling and thought signatures.
 * @throws BrokenRule
 */
export function readGenerateContent(sent: JsonObject, memory: Memory): Omit<Asked, 'model' | 'stream'> {
  const body = inCamelCase(sent, '');
  onlyMembers(body, members, '');
  const config = objectOf(body.generationConfig ?? {}, 'generationConfig');
  onlyMembers(config, configMembers, 'generationConfig.');
  const thinking = objectOf(config.thinkingConfig ?? {}, 'thinkingConfig');
  onlyMembers(thinking, 'includeThoughts thinkingBudget thinkingLevel', 'thinkingConfig.');
  rule(
    thinking.thinkingBudget === undefined || thinking.thinkingLevel === undefined,
    'thinkingConfig: thinkingBudget and thinkingLevel',
  );
  oneOf(thinking.thinkingLevel, `${levels} ${levels.toUpperCase()}`, 'thinkingLevel');
  if (Array.isArray(config.stopSequences)) rule(config.stopSequences.length <= 5, 'stopSequences: above 5');
  if (config.responseSchema !== undefined) {
    rule(config.responseJsonSchema === undefined, 'responseSchema and responseJsonSchema');
    checkOpenApiSchema(config.responseSchema, 'responseSchema');
  }
  if (body.systemInstruction !== undefined) {
    const system = objectOf(body.systemInstruction, 'systemInstruction');
    onlyMembers(system, 'role parts', 'systemInstruction.');
    rule(objectsOf(system.parts, 'systemInstruction.parts').length > 0, 'systemInstruction.parts: empty');
  }
  const tools = readTools(body);
  const contents = objectsOf(body.contents, 'contents');
  rule(contents.length > 0, 'contents are required');
  return {
    wire: 'generateContent',
    tools,
    forced: forcedBy(body),
    turns: readContents(joinedContents(contents), memory),
    thinks: thinking.thinkingBudget !== 0,
    shows: thinking.includeThoughts === true,
    schema: config.responseJsonSchema ?? config.responseSchema,
    includes: true,
  };
}

function forcedBy({ toolConfig }: JsonObject): string | boolean {
  const names = at(toolConfig, 'functionCallingConfig', 'allowedFunctionNames');
  if (at(toolConfig, 'functionCallingConfig', 'mode') !== 'ANY') return false;
  return Array.isArray(names) && names.length === 1 ? String(names[0]) : true;
}

/** What a client names as it likes. */
const free = new Set(['args', 'response', 'parametersJsonSchema', 'responseJsonSchema', 'labels']);

/**
 * Members by the names that the rules below have: the vendor's reader takes their original ones, too
 * (https://protobuf.dev/programming-guides/json/).
 * @param under name of the member that the object is in
 */
function inCamelCase(object: JsonObject, under: string): JsonObject {
  const value = (each: unknown, name: string): unknown => {
    if (Array.isArray(each)) return each.map((one: unknown) => value(one, name));
    return isObject(each) && !free.has(name) ? inCamelCase(each, name) : each;
  };
  const members = Object.entries(object).map(([given, each]): [string, unknown] => {
    const isOfClient = under === 'properties';
    const name = isOfClient
      ? given
      : given.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    return [name, value(each, isOfClient ? 'schema' : name)];
  });
  return Object.fromEntries(members);
}

/** Bytes may be in either alphabet of base64. */
function standard(text: string): string {
  return text.replaceAll('-', '+').replaceAll('_', '/');
}

function readTools(body: JsonObject): Asked['tools'] {
  const tools = objectsOf(body.tools ?? [], 'tools');
  const declared = tools.flatMap((tool) => {
    onlyMembers(
      tool,
      'functionDeclarations googleSearch googleSearchRetrieval codeExecution urlContext fileSearch googleMaps computerUse',
      'tools.',
    );
    return objectsOf(tool.functionDeclarations ?? [], 'functionDeclarations');
  });
  for (const each of declared) {
    const path = `functionDeclarations.${each.name}.`;
    onlyMembers(
      each,
      'name description behavior parameters parametersJsonSchema response responseJsonSchema',
      path,
    );
    rule(
      each.parameters === undefined || each.parametersJsonSchema === undefined,
      `${path}: two kinds of parameters`,
    );
    if (each.parameters !== undefined) {
      checkOpenApiSchema(each.parameters, `${path}parameters`);
      const isOfObject = objectOf(each.parameters, path).anyOf === undefined;
      rule(isOfObject, `${path}parameters: schema should be of type OBJECT`);
    }
    if (each.parametersJsonSchema !== undefined)
      checkSchema(each.parametersJsonSchema, 'google', `${path}parametersJsonSchema`);
  }
  checkNames(
    declared.map((each) => String(each.name)),
    name,
    'functionDeclarations',
  );
  const config = objectOf(body.toolConfig ?? {}, 'toolConfig');
  onlyMembers(
    config,
    'functionCallingConfig retrievalConfig includeServerSideToolInvocations',
    'toolConfig.',
  );
  const calling = objectOf(config.functionCallingConfig ?? {}, 'functionCallingConfig');
  oneOf(calling.mode, 'MODE_UNSPECIFIED AUTO ANY NONE VALIDATED', 'functionCallingConfig.mode');
  rule(calling.mode !== 'ANY' || declared.length > 0, 'functionCallingConfig: without functionDeclarations');
  return declared.map((each) => ({
    name: String(each.name),
    custom: false,
    namespace: undefined,
    schema: each.parametersJsonSchema ?? each.parameters,
  }));
}

function checkOpenApiSchema(schema: unknown, path: string): void {
  const each = objectOf(schema, path);
  onlyMembers(each, schemaMembers, `${path}.`);
  for (const [member, value] of Object.entries(isObject(each.properties) ? each.properties : {}))
    checkOpenApiSchema(value, `${path}.properties.${member}`);
  if (each.items !== undefined) checkOpenApiSchema(each.items, `${path}.items`);
  if (each.enum !== undefined)
    rule(
      Array.isArray(each.enum) && each.enum.every((value) => typeof value === 'string' && value !== ''),
      `${path}.enum: not texts`,
    );
  if (/^array$/i.test(String(each.type))) rule(each.items !== undefined, `${path}.items: missing field`);
}

/** Contents of one role in a row are one, as the SDK's chats keep what they streamed. */
function joinedContents(contents: readonly JsonObject[]): readonly JsonObject[] {
  const joined: JsonObject[] = [];
  for (const [index, content] of contents.entries()) {
    const last = joined.at(-1);
    const parts = objectsOf(content.parts, `contents[${index}].parts`);
    rule(parts.length > 0, `contents[${index}].parts: must not be empty`);
    if (last !== undefined && content.role === 'model' && last.role === 'model')
      joined[joined.length - 1] = { ...last, parts: [...listOf(last.parts), ...parts] };
    else joined.push(content);
  }
  return joined;
}

function readContents(contents: readonly JsonObject[], memory: Memory): AskedTurn[] {
  const turns: AskedTurn[] = [];
  let open: readonly JsonObject[] = [];
  const currentFrom = contents.findLastIndex(
    ({ role, parts }) => role !== 'model' && listOf(parts).some(({ text }) => text !== undefined),
  );
  for (const [index, content] of contents.entries()) {
    const path = `contents[${index}].`;
    onlyMembers(content, 'role parts', path);
    oneOf(content.role, 'user model function', `${path}role`);
    const turn = newTurn(content.role === 'model' ? 'model' : 'user');
    const parts = objectsOf(content.parts, `${path}parts`);
    rule(parts.length > 0, `${path}parts: must not be empty`);
    for (const [at, part] of parts.entries()) readPart(part, `${path}parts[${at}].`, memory, turn);
    const responses = parts.filter(({ functionResponse }) => functionResponse !== undefined);
    checkResponses(responses, open, path);
    open = parts.filter(({ functionCall }) => functionCall !== undefined);
    if (open.length > 0) {
      rule(index > 0 && turns.at(-1)?.role === 'user', `${path}: a function call turn after no user turn`);
      if (index > currentFrom) checkCallSignature(open[0], path);
    }
    turns.push(turn);
  }
  rule(open.length === 0, 'contents: a function call without its response');
  return turns;
}

/** Each call of the turn before has its response; Gemini CLI 0.61 sends those of a session that it resumes twice. */
function checkResponses(responses: readonly JsonObject[], open: readonly JsonObject[], path: string): void {
  const calls = open.map(({ functionCall }) => objectOf(functionCall, path));
  const given = responses.map(({ functionResponse }) => objectOf(functionResponse, path));
  if (open.length === 0) {
    const words = 'a function response turn must come immediately after a function call turn';
    rule(given.length === 0, `${path}: ${words}`);
  }
  const ids = new Set(given.map(({ id }) => id));
  const count = ids.has(undefined) ? given.length : ids.size;
  rule(
    count === open.length,
    `${path}: the number of function response parts must be equal to the number of function call parts`,
  );
  for (const [at, { name: named, id }] of given.entries()) {
    const call = id === undefined ? calls[at] : calls.find((each) => each.id === id);
    rule(call?.name === named, `${path}: '${named}' answers no call of that name and id`);
  }
}

/** The first call of each step of the turn under way has its signature (https://ai.google.dev/gemini-api/docs/thought-signatures). */
function checkCallSignature(part: JsonObject | undefined, path: string): void {
  rule(
    typeof part?.thoughtSignature === 'string',
    `${path}: Function call is missing a thought_signature in functionCall parts`,
  );
}

function listOf(parts: unknown): readonly JsonObject[] {
  return Array.isArray(parts) ? parts.filter(isObject) : [];
}

function readPart(part: JsonObject, path: string, memory: Memory, turn: AskedTurn): void {
  onlyMembers(part, partMembers, path);
  const kinds = data.split(' ').filter((kind) => part[kind] !== undefined);
  rule(
    kinds.length === 1 || (kinds.length === 0 && part.thoughtSignature !== undefined),
    `${path}data: ${kinds}`,
  );
  const signature = part.thoughtSignature;
  if (signature !== undefined) {
    const text = textOf(signature, `${path}thoughtSignature`);
    rule(/^[A-Za-z0-9+/_-]+=*$/.test(text), `${path}thoughtSignature: Base64 decoding failed`);
    rule(memory.signed.has(standard(text)) || noSignature.has(text), `${path}thoughtSignature: is not valid`);
  }
  if (typeof part.text === 'string' && part.thought !== true) turn.texts.push(part.text);
  if (part.inlineData !== undefined) {
    const inline = objectOf(part.inlineData, `${path}inlineData`);
    onlyMembers(inline, 'mimeType data displayName', `${path}inlineData.`);
    rule(
      /^[A-Za-z0-9+/_-]+=*$/.test(textOf(inline.data, `${path}inlineData.data`)),
      `${path}inlineData.data`,
    );
    textOf(inline.mimeType, `${path}inlineData.mimeType`);
    turn.images++;
  }
  if (part.functionCall !== undefined) {
    const call = objectOf(part.functionCall, `${path}functionCall`);
    onlyMembers(call, 'id name args', `${path}functionCall.`);
    checkNames([String(call.name)], name, `${path}functionCall.name`);
    objectOf(call.args ?? {}, `${path}functionCall.args`);
    turn.calls.push(String(call.id ?? call.name));
  }
  if (part.functionResponse !== undefined) {
    const given = objectOf(part.functionResponse, `${path}functionResponse`);
    onlyMembers(given, 'id name response parts willContinue scheduling', `${path}functionResponse.`);
    turn.results.push(JSON.stringify(objectOf(given.response, `${path}functionResponse.response`)));
  }
}

/** Writes an answer as Gemini does, whose calls have a signature each time. */
export function writeGenerateContent(reply: Reply, asked: Asked, memory: Memory): Written {
  const calls = reply.calls ?? [];
  const thought =
    reply.reasoning !== undefined && asked.shows ? [{ text: reply.reasoning, thought: true }] : [];
  const spoken = pieces(reply.text ?? '').filter((text) => text !== '');
  const called = calls.map(({ name, args }, index) => ({
    functionCall: { name, args, id: `fc-${++memory.count}` },
    ...(index === 0 ? { thoughtSignature: sign(memory, '') } : {}),
  }));
  const closing =
    calls.length === 0 && reply.reasoning !== undefined
      ? [{ text: '', thoughtSignature: sign(memory, '') }]
      : [];
  const head = { modelVersion: asked.model, responseId: `r${++memory.count}` };
  const usageMetadata = {
    promptTokenCount: 30,
    candidatesTokenCount: 12,
    thoughtsTokenCount: 8,
    totalTokenCount: 50,
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: 30 }],
  };
  const answer = (parts: readonly object[], end: object = {}) => ({
    candidates: [{ content: { role: 'model', parts }, index: 0, ...end }],
    usageMetadata,
    ...head,
  });
  const finish = { finishReason: 'STOP' };
  const text = reply.text === undefined ? [] : [{ text: reply.text }];
  return {
    body: answer([...thought, ...text, ...called, ...closing], finish),
    events: [
      ...thought.map((part) => unnamed(answer([part]))),
      ...spoken.map((piece) => unnamed(answer([{ text: piece }]))),
      ...called.map((part) => unnamed(answer([part]))),
      unnamed(answer(closing.length === 0 ? [{ text: '' }] : closing, finish)),
    ],
  };
}
