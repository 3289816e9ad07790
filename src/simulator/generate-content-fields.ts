import { isObject, type JsonObject } from './json.js';
import { RequestError } from './protocol-route.js';

/** What a field may hold: anything, or an object, a list of objects or a map of objects of a known message. */
type Kind = 'any' | { readonly one: string } | { readonly list: string } | { readonly map: string };

function message(any: string, others: Readonly<Record<string, Kind>> = {}): Readonly<Record<string, Kind>> {
  const names = any.split(' ').filter((name) => name !== '');
  return { ...Object.fromEntries(names.map((name) => [name, 'any' as const])), ...others };
}

/** The fields of each message of the protocol, as far as the simulator looks into it. */
const messages: Readonly<Record<string, Readonly<Record<string, Kind>>>> = {
  GenerateContentRequest: message('model safetySettings cachedContent labels serviceTier store', {
    contents: { list: 'Content' },
    systemInstruction: { one: 'Content' },
    tools: { list: 'Tool' },
    toolConfig: { one: 'ToolConfig' },
    generationConfig: { one: 'GenerationConfig' },
  }),
  CountTokensRequest: message('model', {
    contents: { list: 'Content' },
    generateContentRequest: { one: 'GenerateContentRequest' },
  }),
  Content: message('role', { parts: { list: 'Part' } }),
  Part: message(
    'text thought thoughtSignature executableCode codeExecutionResult videoMetadata mediaResolution partMetadata toolCall toolResponse',
    {
      inlineData: { one: 'Blob' },
      fileData: { one: 'FileData' },
      functionCall: { one: 'FunctionCall' },
      functionResponse: { one: 'FunctionResponse' },
    },
  ),
  Blob: message('mimeType data displayName'),
  FileData: message('fileUri mimeType displayName'),
  FunctionCall: message('id name args'),
  FunctionResponse: message('id name response parts willContinue scheduling'),
  Tool: message(
    'googleSearch googleSearchRetrieval codeExecution urlContext googleMaps computerUse fileSearch mcpServers',
    { functionDeclarations: { list: 'FunctionDeclaration' } },
  ),
  FunctionDeclaration: message('name description behavior parametersJsonSchema responseJsonSchema', {
    parameters: { one: 'Schema' },
    response: { one: 'Schema' },
  }),
  ToolConfig: message('retrievalConfig includeServerSideToolInvocations', {
    functionCallingConfig: { one: 'FunctionCallingConfig' },
  }),
  FunctionCallingConfig: message('mode allowedFunctionNames streamFunctionCallArguments'),
  GenerationConfig: message(
    'temperature topP topK candidateCount maxOutputTokens stopSequences presencePenalty frequencyPenalty seed responseMimeType responseJsonSchema responseLogprobs logprobs responseModalities speechConfig mediaResolution enableEnhancedCivicAnswers responseFormat',
    {
      responseSchema: { one: 'Schema' },
      imageConfig: { one: 'ImageConfig' },
      thinkingConfig: { one: 'ThinkingConfig' },
    },
  ),
  ImageConfig: message('aspectRatio imageSize personGeneration'),
  ThinkingConfig: message('includeThoughts thinkingBudget thinkingLevel'),
  Schema: message(
    'type format title description nullable enum maxItems minItems required minProperties maxProperties minLength maxLength pattern example propertyOrdering default minimum maximum',
    { properties: { map: 'Schema' }, items: { one: 'Schema' }, anyOf: { list: 'Schema' } },
  ),
};

/**
 * Reads a message of the protocol: names in snake case come out in camel case, as servers of the protocol take both.
 * @throws RequestError for a field that the message does not have, or one that is not an object or list where it must be
 */
export function readMessage(value: JsonObject, name: string, path = ''): JsonObject {
  const fields = messages[name] ?? {};
  const read: Record<string, unknown> = {};
  for (const [written, inner] of Object.entries(value)) {
    const field = camel(written);
    const kind = Object.hasOwn(fields, field) ? fields[field] : undefined;
    if (kind === undefined) {
      const at = path === '' ? '' : ` at '${path}'`;
      throw new RequestError(
        400,
        `Invalid JSON payload received. Unknown name "${written}"${at}: Cannot find field.`,
      );
    }
    if (inner !== null) {
      read[field] = readField(inner, kind, path === '' ? written : `${path}.${written}`);
    }
  }
  return read;
}

function readField(value: unknown, kind: Kind, path: string): unknown {
  if (kind === 'any') {
    return value;
  }
  if ('list' in kind) {
    // A list may be given as its only item.
    const list: readonly unknown[] = Array.isArray(value) ? value : [value];
    return list.map((item, index) =>
      readMessage(objectAt(item, `${path}[${index}]`), kind.list, `${path}[${index}]`),
    );
  }
  if ('one' in kind) {
    return readMessage(objectAt(value, path), kind.one, path);
  }
  const members = Object.entries(objectAt(value, path));
  return Object.fromEntries(
    members.map(([name, item]) => {
      const place = `${path}[${JSON.stringify(name)}].value`;
      return [name, readMessage(objectAt(item, place), kind.map, place)];
    }),
  );
}

function objectAt(value: unknown, path: string): JsonObject {
  if (!isObject(value)) {
    throw new RequestError(400, `Invalid value at '${path}', ${JSON.stringify(value).slice(0, 80)}`);
  }
  return value;
}

function camel(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}
