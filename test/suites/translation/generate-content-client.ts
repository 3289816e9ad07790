import type { JsonObject } from '../../../src/wire/json.js';
import { at, listAt, numberAt, objectAt, present, textAt } from '../../support/json.js';
import { type Answer, type Ask, type Client, failed, type Image } from './client.js';
import { assembleContent } from './generate-content-stream.js';

/** The generateContent protocol. */
export const generateContentClient: Client = {
  protocol: 'generateContent',
  rateLimited: 'RESOURCE_EXHAUSTED',
  user: (text, image) => [
    { role: 'user', parts: [...(image === undefined ? [] : [imagePart(image)]), { text }] },
  ],
  results: (results) => [
    {
      role: 'user',
      parts: results.map(({ call, output }) => ({
        functionResponse: present({
          id: call.id === '' ? undefined : call.id,
          name: call.name,
          response: { result: output },
        }),
      })),
    },
  ],
  request: (model, ask) => ({
    path: `/v1beta/models/${model}:${ask.stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    headers: {},
    body: requestBody(ask),
  }),
  readWhole,
  readStream(text) {
    const { response, error } = assembleContent(text);
    const answer = readWhole(response);
    if (error === null) return answer;
    return {
      ...answer,
      ...failed({ ...readError(error), status: 200, retryAfter: null }),
      text: answer.text,
    };
  },
  readError,
};

function requestBody(ask: Ask): JsonObject {
  const config = present({
    stopSequences: ask.stop,
    maxOutputTokens: ask.maxTokens,
    responseMimeType: ask.schema === undefined ? undefined : 'application/json',
    responseJsonSchema: ask.schema,
    thinkingConfig:
      ask.thinks === undefined
        ? undefined
        : { includeThoughts: ask.thinks === 'shown', thinkingBudget: 8192 },
    candidateCount: ask.candidates,
    responseLogprobs: ask.logprobs,
    topK: ask.topK,
  });
  return present({
    contents: ask.turns,
    systemInstruction: ask.system === undefined ? undefined : { parts: [{ text: ask.system }] },
    tools:
      ask.searches === true
        ? [{ googleSearch: {} }]
        : ask.tools === undefined
          ? undefined
          : [
              {
                functionDeclarations: ask.tools.map((tool) => ({
                  name: tool.name,
                  description: tool.description,
                  parametersJsonSchema: tool.parameters,
                })),
              },
            ],
    generationConfig: Object.keys(config).length === 0 ? undefined : config,
  });
}

function imagePart(image: Image): JsonObject {
  const { mediaType: mimeType } = image;
  return 'url' in image
    ? { fileData: { fileUri: image.url, mimeType } }
    : { inlineData: { mimeType, data: image.data } };
}

function readWhole(body: unknown): Answer {
  const [candidate = {}, ...more] = listAt(body, 'candidates');
  const parts = listAt(candidate, 'content', 'parts');
  const calls = parts.flatMap((part) =>
    part.functionCall === undefined ? [] : [objectAt(part, 'functionCall')],
  );
  const usage = at(body, 'usageMetadata');
  const thoughts = numberAt(usage, 'thoughtsTokenCount');
  return {
    text: textsIn(parts, false),
    refusal: '',
    reasoning: textsIn(parts, true),
    calls: calls.map((call) => ({
      id: textAt(call, 'id'),
      name: textAt(call, 'name'),
      args: call.args ?? {},
    })),
    finish: finishOf(textAt(candidate, 'finishReason'), calls.length > 0),
    stopSequence: null,
    more: more.map((other) => textsIn(listAt(other, 'content', 'parts'), false)),
    logprobs: listAt(candidate, 'logprobsResult', 'chosenCandidates').length,
    usage:
      usage === undefined
        ? null
        : {
            input: numberAt(usage, 'promptTokenCount'),
            output: numberAt(usage, 'candidatesTokenCount') + thoughts,
            reasoning: thoughts,
          },
    turns: [{ role: 'model', parts }],
    error: null,
  };
}

function textsIn(parts: readonly JsonObject[], thought: boolean): string {
  return parts
    .filter((part) => (part.thought === true) === thought)
    .map((part) => textAt(part, 'text'))
    .join('');
}

function finishOf(reason: string, hasCalls: boolean): Answer['finish'] {
  if (reason === 'STOP') return hasCalls ? 'tools' : 'stop';
  if (reason === 'SAFETY' || reason === 'PROHIBITED_CONTENT') return 'filtered';
  return reason === 'MAX_TOKENS' ? 'length' : 'other';
}

function readError(body: unknown) {
  return { type: textAt(body, 'error', 'status'), message: textAt(body, 'error', 'message'), param: null };
}
