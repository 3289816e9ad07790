import type { VendorWords } from '../config/types.js';
import type { AuthStyle } from '../protocols/credentials/credentials.js';
import { buildRoutes, type Route } from '../routes.js';
import { modelAnswers, taskAnswers } from './answers.js';
import { errorBodies } from './error-bodies.js';
import { type ErrorResponses, responseHeaders } from './error-responses.js';
import { createOperationWords, type OperationWords } from './operation-words.js';
import { describeParameters, parametersOf, placeRoutes } from './parameters.js';
import { requestBodyOf, requestSchemas } from './request-bodies.js';
import { responsesOf } from './responses.js';
import { writeSchemas } from './schemas.js';

interface OpenApiOptions {
  /** Of the gateway. */
  readonly version: string;
  /** Where clients reach the gateway, without a trailing slash; null for wherever they have the document from. */
  readonly publicUrl: string | null;
  /** Real vendor words, whose paths and headers stand beside the neutral ones. */
  readonly words: VendorWords;
}

/**
 * Describes the gateway's whole HTTP surface, from its table of routes and the schemas that check its requests.
 * @returns an OpenAPI 3.1 document: plain JSON that shares nothing with anything, the same for the same options
 * @throws {Error} for a route that is not described; which routes there are does not depend on the config, so that
 * the first call shows it
 */
export function createOpenApi({ version, publicUrl, words }: OpenApiOptions) {
  const shared = describeParameters(words);
  const security = describeSecurity(words);
  const wordsOf = createOperationWords(words);
  const errors: ErrorResponses = new Map();
  const paths: Record<string, Record<string, object>> = {};
  const usedTags = new Set<string>();
  for (const placed of placeRoutes(buildRoutes(words))) {
    const { route, template } = placed;
    const told = wordsOf(route);
    const parameters = parametersOf(placed, shared, words);
    const requestBody = requestBodyOf(route);
    const tag = tagOf(route);
    usedTags.add(tag);
    paths[template] = {
      ...paths[template],
      [route.method.toLowerCase()]: {
        operationId: told.id,
        tags: [tag],
        summary: told.summary,
        ...described(told),
        ...(parameters.length === 0 ? {} : { parameters }),
        ...(requestBody === null ? {} : { requestBody }),
        responses: responsesOf(route, told, errors),
        security: security.requirements[route.auth],
      },
    };
  }
  const document = {
    openapi: '3.1.0',
    info: { title: 'Multi-Protocol Model Gateway API', version, description: about },
    servers: [{ url: publicUrl ?? '/' }],
    tags: Object.entries(tags)
      .filter(([name]) => usedTags.has(name))
      .map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: writeSchemas([
        ...requestSchemas,
        ...Object.values(modelAnswers).flatMap(({ one, list }) => [one, list]),
        ...Object.values(taskAnswers),
        ...errorBodies,
      ]),
      responses: Object.fromEntries(errors),
      parameters: shared,
      headers: responseHeaders,
      securitySchemes: security.schemes,
    },
  };
  // Pieces that stand in several places are one object each: whoever changes one must not change the others.
  return JSON.parse(JSON.stringify(document)) as typeof document;
}

const about =
  'An HTTP gateway in front of AI models. The protocol, not the name of the model, decides the path, the body, the ' +
  'place of the key and the form of a stream. Clients of the chat and responses protocols take `/v1` as the end of ' +
  'their base URL; those of the messages and generateContent protocols append the whole path. Members of a body that ' +
  'no schema names are passed on. The `/v1` paths of the chat family are served behind `/openai` as well, with the ' +
  'version and without; those of them that call a model also below `/openai/deployments/{model}`, for clients of Azure. Those of ' +
  'the messages protocol and the lists of models are served behind `/anthropic`. Content is generated, and its tokens are ' +
  'counted, under `/v1beta1/publishers/google/models` and ' +
  '`/v1beta1/projects/{project}/locations/{location}/publishers/google/models`, too, and under `/v1` in place of `/v1beta1`. ' +
  'Everything under `/v1beta` is served under `/v1alpha` as well.';

const tags = {
  chat: 'Chat completions.',
  responses: 'Responses.',
  messages: 'Messages.',
  generateContent: 'generateContent and what belongs to it.',
  completions: 'Text completions.',
  embeddings: 'Embeddings.',
  rerank: 'Ordering documents.',
  moderations: 'Moderation.',
  audio: 'Transcription, translation and speech.',
  images: 'Making and editing images.',
  video: 'Video tasks in four formats.',
  realtime: 'Realtime sessions over a WebSocket.',
  models: 'The models of a key.',
  unimplemented: 'Known and answered with 501.',
} as const;

function tagOf({ protocol, operation }: Route): keyof typeof tags {
  if (protocol !== null) return protocol;
  if (operation === 'unimplemented') return operation;
  return operation === 'responsesSocket' ? 'responses' : 'models';
}

function described({ more }: OperationWords): { readonly description?: string } {
  return more === null ? {} : { description: more };
}

/**
 * Where keys may sit: the schemes, and which of them each style of signing in takes.
 * @param words real vendor words, each of which makes another header name
 */
function describeSecurity(words: VendorWords) {
  const vendorgHeaders = [...new Set(['vendorg', ...words.vendorg])].map((word) => `x-${word}-api-key`);
  const vendorg = Object.fromEntries(
    vendorgHeaders.map((name) => [name, header(name, 'A key of the generateContent protocol.')]),
  );
  const anyOf = (...names: readonly string[]) => names.map((name) => ({ [name]: [] }));
  const google = [...vendorgHeaders, 'key'];
  return {
    schemes: {
      bearer: { type: 'http', scheme: 'bearer', description: 'An API key as a bearer token.' },
      'x-api-key': header('x-api-key', 'A key of the messages protocol, with a version header beside it.'),
      'api-key': header('api-key', 'An API key as clients of Azure send it.'),
      ...vendorg,
      key: {
        type: 'apiKey',
        in: 'query',
        name: 'key',
        description: 'A key of the generateContent protocol.',
      },
      socketProtocol: header(
        'sec-websocket-protocol',
        'For browsers, which can set no other header: `openai-insecure-api-key.` and the API key as one of the subprotocols.',
      ),
    },
    requirements: {
      bearer: anyOf('bearer', 'api-key'),
      messages: anyOf('x-api-key', 'bearer', 'api-key'),
      generateContent: anyOf(...google, 'bearer', 'api-key'),
      modelList: anyOf('bearer', 'api-key', 'x-api-key', ...google),
      realtime: anyOf('bearer', 'api-key', 'socketProtocol'),
    } satisfies Record<AuthStyle, object>,
  };
}

function header(name: string, description: string) {
  return { type: 'apiKey', in: 'header', name, description };
}
