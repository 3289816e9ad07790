import type { Protocol, VendorWords } from './config/types.js';
import { GatewayError, shortened } from './errors.js';
import {
  speech,
  speechRequest,
  transcriptionForm,
  transcriptions,
  translationForm,
  translations,
} from './protocols/audio/index.js';
import { chat } from './protocols/chat/index.js';
import { passedChatRequest } from './protocols/chat/request/schema.js';
import { completions, completionsRequest } from './protocols/completions/index.js';
import type { AuthStyle } from './protocols/credentials/credentials.js';
import { embedV1, embedV2 } from './protocols/embeddings/cohere.js';
import {
  batchEmbedContents,
  batchEmbedContentsRequest,
  embedContent,
  embedContentRequest,
  embeddings,
  embeddingsRequest,
  embedRequest,
  engineEmbeddingsRequest,
} from './protocols/embeddings/index.js';
import type { Endpoint } from './protocols/endpoint.js';
import {
  anthropic,
  type ErrorFormat,
  google,
  jimeng,
  kling,
  openai,
  rerank as rerankErrorFormat,
  responses as responsesErrorFormat,
} from './protocols/error-formats/formats.js';
import { generateContentImages } from './protocols/generate-content/images.js';
import { generateContent, countTokens as googleCountTokens } from './protocols/generate-content/index.js';
import {
  passedCountTokensRequest as googleCountTokensRequest,
  passedGenerateContentRequest,
} from './protocols/generate-content/request/schema.js';
import { imageEdits, imageGenerations } from './protocols/images/index.js';
import type { ImageOperation } from './protocols/images/request.js';
import { passedEditsRequest, passedGenerationsRequest } from './protocols/images/schema.js';
import type { ImagesTranslation } from './protocols/images-translation.js';
import { countTokens, messages } from './protocols/messages/index.js';
import { passedCountTokensRequest, passedMessagesRequest } from './protocols/messages/request/schema.js';
import { moderations, moderationsRequest } from './protocols/moderations/index.js';
import { rerank, rerankRequest } from './protocols/rerank/index.js';
import { compactResponses, countInputTokens, responses } from './protocols/responses/index.js';
import {
  passedCompactRequest,
  passedInputTokensRequest,
  passedResponsesRequest,
} from './protocols/responses/request/schema.js';
import type { CompiledSchema } from './schema/accept.js';
import type { FormSchema } from './schema/form.js';
import type { VideoFormat } from './video/task.js';

/** What a route does. `flow/serve` has one handler for each. */
type Operation =
  /** Calls a model at an upstream. */
  | 'call'
  /** `GET /v1/models`, and one model of it. The request's headers select the format. */
  | 'modelList'
  | 'model'
  /** The same under `/v1beta`, always in the format of generateContent. */
  | 'googleModelList'
  | 'googleModel'
  /** Calls a model at an upstream with a form that is relayed while it arrives. */
  | 'upload'
  /** Makes images, from a body in JSON or a form. */
  | 'image'
  /** Creates a video task, in the format of the route. */
  | 'videoCreate'
  | 'videoShow'
  | 'videoContent'
  /** Creates or shows a video task, depending on the query. */
  | 'videoAction'
  /** Requests about a response by its id. */
  | 'responseShow'
  | 'responseDelete'
  | 'responseItems'
  | 'responseCancel'
  /** A WebSocket that is bridged to a WebSocket of an upstream. */
  | 'realtime'
  /** A WebSocket for responses. Coding agents try it first, and fall back to POST only on 426. */
  | 'responsesSocket'
  /** Responds with 501. */
  | 'unimplemented';

/** One entry of the HTTP surface: everything that follows from a request's method and path. */
export interface Route {
  readonly method: string;
  /** Path pattern: see `leafAt` of the router. */
  readonly path: string;
  readonly operation: Operation;
  /** Protocol in which the model has to be offered; null if the route calls no model. */
  readonly protocol: Protocol | null;
  readonly errorFormat: ErrorFormat;
  readonly auth: AuthStyle;
  readonly schema: CompiledSchema | null;
  /** Checks the form of an upload. */
  readonly form: FormSchema | null;
  /** What the route calls; null if it calls no model. */
  readonly endpoint: Endpoint | null;
  readonly image: ImageOperation | null;
  /** How upstreams with separate image endpoints serve calls that ask for images; null if they cannot. */
  readonly imagesTranslation: ImagesTranslation | null;
  readonly video: VideoRoute | null;
  /**
   * Whether answers are streamed. `asked`: if the body requests it. `byQuery`: always, as events or as one JSON array depending
   * on the query parameter `alt`.
   */
  readonly stream: 'asked' | 'byQuery' | 'never';
}

/** What a route determines about its video calls. */
export interface VideoRoute {
  readonly format: VideoFormat;
  /** What the video is made from, if the path says so. */
  readonly operation: 'text' | 'image';
}

const unimplemented = [
  ['GET', '/v1/fine-tunes'],
  ['POST', '/v1/fine-tunes'],
  ['GET', '/v1/fine-tunes/{fine_tune_id}'],
  ['POST', '/v1/fine-tunes/{fine_tune_id}/cancel'],
  ['GET', '/v1/fine-tunes/{fine_tune_id}/events'],
  ['GET', '/v1/files'],
  ['POST', '/v1/files'],
  ['GET', '/v1/files/{file_id}'],
  ['DELETE', '/v1/files/{file_id}'],
  ['GET', '/v1/files/{file_id}/content'],
] as const;

/** Defaults of a route, which does not call a model. */
const plain = {
  protocol: null,
  errorFormat: openai,
  auth: 'bearer',
  schema: null,
  form: null,
  endpoint: null,
  image: null,
  imagesTranslation: null,
  video: null,
  stream: 'never',
} as const;

const messagesStyle = { errorFormat: anthropic, auth: 'messages' } as const;
const googleStyle = { errorFormat: google, auth: 'generateContent' } as const;

const surface: readonly Route[] = [
  callRoute('/v1/chat/completions', chat, passedChatRequest, { stream: 'asked' }),
  callRoute('/v1/responses', responses, passedResponsesRequest, {
    errorFormat: responsesErrorFormat,
    stream: 'asked',
  }),
  callRoute('/v1/responses/compact', compactResponses, passedCompactRequest),
  callRoute('/v1/responses/input_tokens', countInputTokens, passedInputTokensRequest),
  responseRoute('GET', '', 'responseShow'),
  responseRoute('DELETE', '', 'responseDelete'),
  responseRoute('GET', '/input_items', 'responseItems'),
  responseRoute('POST', '/cancel', 'responseCancel'),
  callRoute('/v1/messages', messages, passedMessagesRequest, { ...messagesStyle, stream: 'asked' }),
  callRoute('/v1/messages/count_tokens', countTokens, passedCountTokensRequest, messagesStyle),
  ...['/v1beta/models', '/v1/models'].flatMap((models) => [
    callRoute(`${models}/{model}:generateContent`, generateContent, passedGenerateContentRequest, {
      ...googleStyle,
      imagesTranslation: generateContentImages,
    }),
    callRoute(`${models}/{model}:streamGenerateContent`, generateContent, passedGenerateContentRequest, {
      ...googleStyle,
      imagesTranslation: generateContentImages,
      stream: 'byQuery',
    }),
    callRoute(`${models}/{model}:countTokens`, googleCountTokens, googleCountTokensRequest, googleStyle),
    callRoute(`${models}/{model}:embedContent`, embedContent, embedContentRequest, googleStyle),
    callRoute(
      `${models}/{model}:batchEmbedContents`,
      batchEmbedContents,
      batchEmbedContentsRequest,
      googleStyle,
    ),
  ]),
  callRoute('/v1/completions', completions, completionsRequest, { stream: 'asked' }),
  callRoute('/v1/embeddings', embeddings, embeddingsRequest),
  callRoute('/v1/engines/{model}/embeddings', embeddings, engineEmbeddingsRequest),
  callRoute('/v1/embed', embedV1, embedRequest, { errorFormat: rerankErrorFormat }),
  callRoute('/v2/embed', embedV2, embedRequest, { errorFormat: rerankErrorFormat }),
  callRoute('/v1/rerank', rerank, rerankRequest, { errorFormat: rerankErrorFormat }),
  callRoute('/v2/rerank', rerank, rerankRequest, { errorFormat: rerankErrorFormat }),
  callRoute('/v1/moderations', moderations, moderationsRequest),
  uploadRoute('/v1/audio/transcriptions', transcriptions, transcriptionForm),
  uploadRoute('/v1/audio/translations', translations, translationForm),
  callRoute('/v1/audio/speech', speech, speechRequest),
  imageRoute('/v1/images/generations', imageGenerations, 'generate'),
  imageRoute('/v1/images/edits', imageEdits, 'edit'),
  ...videoRoutes('/v1/videos', openai, { format: 'compat', operation: 'text' }),
  contentRoute('GET'),
  contentRoute('HEAD'),
  ...videoRoutes('/vendork/v1/videos/text2video', kling, { format: 'vendork', operation: 'text' }),
  ...videoRoutes('/vendork/v1/videos/image2video', kling, { format: 'vendork', operation: 'image' }),
  ...videoRoutes('/v1/video/generations', openai, { format: 'generic', operation: 'text' }),
  // Clients that append a query to the base URL omit the slash.
  actionRoute('/vendorj/'),
  actionRoute('/vendorj'),
  modelRoute('/v1/models', 'modelList', openai, 'modelList'),
  modelRoute('/v1/models/{model...}', 'model', openai, 'modelList'),
  modelRoute('/v1beta/models', 'googleModelList', google, 'generateContent'),
  modelRoute('/v1beta/models/{model...}', 'googleModel', google, 'generateContent'),
  {
    ...plain,
    method: 'GET',
    path: '/v1/realtime',
    operation: 'realtime',
    protocol: 'realtime',
    auth: 'realtime',
  },
  {
    ...plain,
    method: 'GET',
    path: '/v1/responses',
    operation: 'responsesSocket',
  },
  ...unimplemented.map(([method, path]): Route => ({ ...plain, method, path, operation: 'unimplemented' })),
];

/** Prefixes in the base URLs of some clients. A path with one is the same route as without. */
const prefixes: readonly { readonly prefix: string; has(route: Route): boolean }[] = [
  { prefix: '/openai', has: ({ path, errorFormat }) => path.startsWith('/v1/') && isOfOpenai(errorFormat) },
  {
    prefix: '/anthropic',
    has: ({ path, operation, errorFormat }) =>
      path.startsWith('/v1/') &&
      (errorFormat === anthropic || operation === 'modelList' || operation === 'model'),
  },
];

const contentModels = '/v1beta/models';
/** The version that users of Google's SDKs select for preview features (https://googleapis.github.io/js-genai/, "API Selection"). */
const previewModels = '/v1alpha/models';
/**
 * Paths of Google's SDKs with `vertexai: true`, with an API key and in a project. They have the three operations of
 * https://cloud.google.com/vertex-ai/generative-ai/docs/start/express-mode/vertex-ai-express-mode-api-reference.
 */
const publisherModels: readonly string[] = ['/v1beta1', '/v1'].flatMap((version) => [
  `${version}/publishers/google/models`,
  `${version}/projects/{project}/locations/{location}/publishers/google/models`,
]);
const publisherOperations =
  /^\/v1beta\/models\/\{model\}:(?:generateContent|streamGenerateContent|countTokens)$/;

/**
 * Paths of clients for OpenAI's models on Azure: without a version, and for calls of a model below its deployment, whose name
 * is taken as the model (https://learn.microsoft.com/en-us/azure/foundry/openai/reference).
 */
function azurePaths({ path, errorFormat, endpoint }: Route): readonly string[] {
  if (!path.startsWith('/v1/') || !isOfOpenai(errorFormat)) return [];
  const operation = path.slice('/v1'.length);
  const plain = `/openai${operation}`;
  return endpoint === null || path.includes('{')
    ? [plain]
    : [plain, `/openai/deployments/{model}${operation}`];
}

/**
 * The paths of vendors whose OpenAI-compatible base URL ends in a word of their own: clients of DeepInfra
 * (https://deepinfra.com/docs/advanced/openai_api) add it to the base URL that they are given, and those of Gemini
 * (https://ai.google.dev/gemini-api/docs/openai) have it in theirs.
 */
function compatiblePaths({ path, errorFormat }: Route): readonly string[] {
  if (!path.startsWith('/v1/') || !isOfOpenai(errorFormat)) return [];
  return ['/v1/openai', '/v1beta/openai'].map((base) => base + path.slice('/v1'.length));
}

function isOfOpenai(errorFormat: ErrorFormat): boolean {
  return [openai, rerankErrorFormat, responsesErrorFormat].includes(errorFormat);
}

/** Paths that accept WebSockets. */
export const socketPaths: readonly string[] = surface
  .filter(({ operation }) => operation === 'realtime' || operation === 'responsesSocket')
  .flatMap((route) => servedPaths(route));

/** All paths of a route: its own, those with a prefix, and those of the vendors' clouds. */
export function servedPaths(route: Route): readonly string[] {
  const prefixed = prefixes.filter(({ has }) => has(route)).map(({ prefix }) => prefix + route.path);
  if (!route.path.startsWith(contentModels))
    return [route.path, ...prefixed, ...azurePaths(route), ...compatiblePaths(route)];
  const operation = route.path.slice(contentModels.length);
  const cloud = publisherOperations.test(route.path) ? publisherModels : [];
  return [route.path, ...[previewModels, ...cloud].map((models) => models + operation)];
}

/**
 * Returns every route that is served.
 * @param vendors real vendor names beside the neutral path prefixes. A route with such a prefix is listed once for each.
 */
export function buildRoutes(vendors: VendorWords): readonly Route[] {
  return surface.flatMap((route) =>
    pathSpellings(route.path, vendors).map((path) => Object.freeze({ ...route, path })),
  );
}

/** Returns a path, and if it has a neutral vendor prefix, the same path with each real vendor name in its place. */
export function pathSpellings(path: string, vendors: VendorWords): readonly string[] {
  for (const neutral of ['vendork', 'vendorj'] as const) {
    const prefix = `/${neutral}`;
    if (path !== prefix && !path.startsWith(`${prefix}/`)) continue;
    const words = new Set([neutral, ...vendors[neutral]]);
    return [...words].map((word) => `/${word}${path.slice(prefix.length)}`);
  }
  return [path];
}

const longestEcho = 200;
const doubledVersion = new RegExp(
  `^(?:${prefixes.map(({ prefix }) => prefix).join('|')})?/(v1|v1beta1?|v1alpha)/(?:v1|v1beta1?|v1alpha)(?:/|$)`,
);

/**
 * Makes the 404 for an unknown path. If the path has the version twice, the message says that the client appends it to a base
 * URL that already has it.
 * @param path path without the query, which may contain a key
 */
export function unknownUrl(method: string, path: string): GatewayError {
  const version = doubledVersion.exec(path)?.[1];
  const hint =
    version === undefined
      ? ''
      : ` The base URL already ends in /${version}, so the path has a version twice: remove one of them.`;
  return new GatewayError(
    'unknown_url',
    `Unknown request URL: ${method} ${shortened(path, longestEcho)}.${hint}`,
  );
}

const modelOperation = /^\/(v1|v1beta|v1alpha)\/models\/.+:([A-Za-z][A-Za-z0-9]{0,63})$/;

/** Model operations that the vendor offers and the gateway does not, by version and name. */
const notBuilt: ReadonlyMap<string, Route> = new Map(
  ['v1', 'v1beta', 'v1alpha'].flatMap((version) =>
    [
      ...['predict', 'predictLongRunning', 'rawPredict', 'streamRawPredict', 'computeTokens'],
      ...['asyncBatchEmbedContent', 'batchGenerateContent', 'generateAnswer'],
      ...['generateText', 'embedText', 'batchEmbedText', 'countTextTokens'],
      ...['generateMessage', 'countMessageTokens'],
    ].map((name): [string, Route] => {
      const path = `/${version}/models/{model}:${name}`;
      return [
        `${version} ${name}`,
        Object.freeze({ ...plain, ...googleStyle, method: 'POST', path, operation: 'unimplemented' }),
      ];
    }),
  ),
);

/**
 * Resolves a request for a model operation that has no route. These operations are not in the table of routes, where their
 * paths would shadow models whose names end alike.
 * @returns a route that responds with 501 for an operation of the vendor, the 404 for any other operation, and null for a
 * request for something else
 */
export function unknownOperation(method: string, path: string): Route | GatewayError | null {
  const match = method === 'POST' ? modelOperation.exec(path) : null;
  if (match === null) return null;
  const [, version = '', name = ''] = match;
  return (
    notBuilt.get(`${version} ${name}`) ??
    new GatewayError('unknown_url', `Models have no operation '${name}' here.`)
  );
}

/**
 * Makes the 405 for a known path.
 * @param allow methods of the path, as in the `Allow` header
 */
export function methodNotAllowed(method: string, allow: string): GatewayError {
  return new GatewayError(
    'method_not_allowed',
    `The method ${method} is not allowed here. Allowed: ${allow}.`,
    {
      allow,
    },
  );
}

function modelRoute(path: string, operation: Operation, errorFormat: ErrorFormat, auth: AuthStyle): Route {
  return { ...plain, method: 'GET', path, operation, errorFormat, auth };
}

/** @param below path below that of the response */
function responseRoute(method: string, below: string, operation: Operation): Route {
  const path = `/v1/responses/{response_id}${below}`;
  return { ...plain, method, path, operation, errorFormat: responsesErrorFormat };
}

function callRoute(
  path: string,
  endpoint: Endpoint,
  schema: CompiledSchema,
  style: Partial<Pick<Route, 'errorFormat' | 'auth' | 'imagesTranslation' | 'stream'>> = {},
): Route {
  return {
    ...plain,
    ...style,
    method: 'POST',
    path,
    operation: 'call',
    protocol: endpoint.protocol,
    schema,
    endpoint,
  };
}

function uploadRoute(path: string, endpoint: Endpoint, form: FormSchema): Route {
  return { ...plain, method: 'POST', path, operation: 'upload', protocol: endpoint.protocol, form, endpoint };
}

function imageRoute(path: string, endpoint: Endpoint, image: ImageOperation): Route {
  const schema = image === 'generate' ? passedGenerationsRequest : passedEditsRequest;
  return {
    ...plain,
    method: 'POST',
    path,
    operation: 'image',
    protocol: endpoint.protocol,
    schema,
    endpoint,
    image,
  };
}

/** Returns the two routes of a video format, which create and show a task. */
function videoRoutes(path: string, errorFormat: ErrorFormat, video: VideoRoute): readonly Route[] {
  const route = { ...plain, protocol: 'video', errorFormat, video } as const;
  return [
    { ...route, method: 'POST', path, operation: 'videoCreate' },
    { ...route, method: 'GET', path: `${path}/{task_id}`, operation: 'videoShow' },
  ];
}

function actionRoute(path: string): Route {
  return {
    ...plain,
    method: 'POST',
    path,
    operation: 'videoAction',
    protocol: 'video',
    errorFormat: jimeng,
    video: { format: 'vendorj', operation: 'text' },
  };
}

function contentRoute(method: 'GET' | 'HEAD'): Route {
  return {
    ...plain,
    method,
    path: '/v1/videos/{task_id}/content',
    operation: 'videoContent',
    protocol: 'video',
  };
}
