import { countTokens } from '../answer/tokens.js';
import { type Directive, textDirectives } from '../faults/directives.js';
import { modelOf, modelRoutes } from '../generate-content/route.js';
import { isObject, type JsonObject } from '../http/json.js';
import type { Route } from '../http/reply.js';
import { RequestError } from '../http/request-error.js';
import { jsonReply } from '../http/route.js';
import { mostDimensions, mostInputs, usualDimensions, vectorOf } from './route.js';

/** `:embedContent` and `:batchEmbedContents`: the vectors are those of `/v1/embeddings` for the same texts. */
export const embedContentRoutes: readonly Route[] = [
  ...route('embedContent', (body, path) => {
    const { values, ...rest } = embed(body, path, '');
    return { answer: { embedding: { values } }, ...rest };
  }),
  ...route('batchEmbedContents', (body, path) => {
    const requests = Array.isArray(body.requests) ? body.requests : [];
    if (requests.length === 0 || requests.length > mostInputs)
      throw new RequestError(400, `* BatchEmbedContentsRequest.requests: 1 to ${mostInputs} are needed`);
    const all = requests.map((each: unknown, index) => {
      const at = `requests[${index}].`;
      if (!isObject(each)) throw new RequestError(400, `Invalid value at 'requests[${index}]'`);
      if (each.model === undefined)
        throw new RequestError(400, `* BatchEmbedContentsRequest.${at}model: model is required`);
      return embed(each, path, at);
    });
    return {
      answer: { embeddings: all.map(({ values }) => ({ values })) },
      tokens: all.reduce((sum, { tokens }) => sum + tokens, 0),
      directives: all[0]?.directives ?? [],
    };
  }),
];

interface Embedded {
  readonly answer: JsonObject;
  readonly tokens: number;
  readonly directives: readonly Directive[];
}

function route(method: string, made: (body: JsonObject, model: string) => Embedded): Route[] {
  return modelRoutes(method, (request) => {
    const model = `models/${modelOf(request)}`;
    if (model !== 'models/sim-embedding') throw new RequestError(404, `${model} is not found`);
    const { answer, tokens, directives } = made(request.body, model);
    const usageMetadata = { promptTokenCount: tokens, totalTokenCount: tokens };
    return jsonReply(request, { ...answer, usageMetadata }, directives);
  });
}

const members = new Set(['model', 'content', 'taskType', 'title', 'outputDimensionality', 'autoTruncate']);

/** The vector of one request. @throws RequestError with what a caller did wrong */
function embed(
  asked: JsonObject,
  model: string,
  at: string,
): Omit<Embedded, 'answer'> & { readonly values: readonly number[] } {
  for (const name of Object.keys(asked))
    if (!members.has(name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())))
      throw new RequestError(
        400,
        `Invalid JSON payload received. Unknown name "${name}" at '${at.slice(0, -1)}': Cannot find field.`,
      );
  if (asked.model !== undefined && asked.model !== model)
    throw new RequestError(400, `* ${at}model: the model of the path is ${model}`);
  const parts = isObject(asked.content) && Array.isArray(asked.content.parts) ? asked.content.parts : [];
  const text = parts.map((part: unknown) => (isObject(part) ? part.text : undefined)).join('\n');
  if (text === '') throw new RequestError(400, `* ${at}content: content is required`);
  const dimensions = asked.outputDimensionality ?? asked.output_dimensionality ?? usualDimensions;
  if (typeof dimensions !== 'number' || !(dimensions >= 1 && dimensions <= mostDimensions))
    throw new RequestError(400, `* ${at}output_dimensionality: 1 to ${mostDimensions}`);
  return {
    values: Array.from(vectorOf(text, dimensions)),
    tokens: countTokens(text),
    directives: textDirectives(text).directives,
  };
}
