import { type TSchema, Type } from 'typebox';
import { type ErrorKind, errorTable } from '../errors.js';
import {
  anthropic,
  type ErrorFormat,
  google,
  jimeng,
  kling,
  openai,
  rerank,
} from '../protocols/error-formats/formats.js';
import type { Route } from '../routes.js';
import type { Reference, Response } from './json-schema.js';
import { type NamedSchema, named, schemaReference } from './schemas.js';

/** Headers of answers, by the name under which responses refer to them. */
export const responseHeaders = {
  'x-request-id': { description: 'Id of the request, to ask about it.', schema: { type: 'string' } },
  'x-gateway-path': {
    description: 'How the answer came: as it was, with bytes replaced, or translated from another protocol.',
    schema: { type: 'string', enum: ['exact', 'spliced', 'translated'] },
  },
  'x-gateway-left-out': {
    description:
      'Members of the request that the model which answered did not get; only where there are any.',
    schema: { type: 'string' },
  },
  'server-timing': { description: 'Where the time went, in milliseconds.', schema: { type: 'string' } },
  'retry-after': {
    description: 'Seconds to wait before the next request.',
    schema: { type: 'integer', minimum: 0 },
  },
  'accept-encoding': { description: 'The content codings that are taken.', schema: { type: 'string' } },
  upgrade: { description: 'What to upgrade to.', schema: { type: 'string', const: 'websocket' } },
  'content-range': { description: 'Which part it is, or how long the whole is.', schema: { type: 'string' } },
  'accept-ranges': { description: 'Parts can be asked for.', schema: { type: 'string', const: 'bytes' } },
  etag: { description: 'Tells one file from another.', schema: { type: 'string' } },
};

/** References to the headers of every answer, and to further ones. */
export function headerReferences(...more: readonly string[]): Readonly<Record<string, Reference>> {
  return Object.fromEntries(
    ['x-request-id', 'server-timing', ...more].map((name) => [
      name,
      { $ref: `#/components/headers/${name}` },
    ]),
  );
}

/** One kind for each status. */
const everywhere: readonly ErrorKind[] = ['invalid_request', 'invalid_api_key', 'internal_error'];
const withBody: readonly ErrorKind[] = ['request_timeout', 'request_too_large', 'unsupported_media_type'];
const fromUpstream: readonly ErrorKind[] = ['upstream_error', 'upstream_timeout', 'overloaded'];
const ofKeyAndModel: readonly ErrorKind[] = ['permission_denied', 'rate_limit_exceeded', 'model_not_found'];
const called = [...everywhere, ...fromUpstream, ...ofKeyAndModel];
/** For a task or response created before. */
const ofMade = [...everywhere, ...fromUpstream, 'rate_limit_exceeded', 'not_found'] as const;

/** The errors with which an operation may be refused. */
const refusals: Readonly<Record<Route['operation'], readonly ErrorKind[]>> = {
  call: [...called, ...withBody],
  upload: [...called, ...withBody],
  image: [...called, ...withBody],
  videoCreate: [...called, ...withBody, 'conflict'],
  videoAction: [...called, ...withBody, 'conflict'],
  // Not rate limited.
  videoShow: [...everywhere, ...fromUpstream, 'not_found'],
  videoContent: [...ofMade, 'range_not_satisfiable'],
  modelList: everywhere,
  model: [...everywhere, 'model_not_found'],
  googleModelList: everywhere,
  googleModel: [...everywhere, 'model_not_found'],
  responseShow: ofMade,
  responseDelete: ofMade,
  responseItems: ofMade,
  responseCancel: ofMade,
  realtime: called,
  responsesSocket: [...everywhere, 'rate_limit_exceeded', 'overloaded', 'upgrade_required'],
  unimplemented: ['invalid_api_key', 'not_implemented', 'internal_error'],
};

/** Operations that pass on the status of an upstream's error. */
const relaying: ReadonlySet<Route['operation']> = new Set([
  'call',
  'upload',
  'image',
  'videoCreate',
  'videoAction',
  'responseShow',
  'responseDelete',
  'responseItems',
  'responseCancel',
  'realtime',
]);

/** Headers of an error besides those of every answer. */
const ownHeaders: Readonly<Partial<Record<ErrorKind, string>>> = {
  rate_limit_exceeded: 'retry-after',
  overloaded: 'retry-after',
  conflict: 'retry-after',
  unsupported_media_type: 'accept-encoding',
  upgrade_required: 'upgrade',
  range_not_satisfiable: 'content-range',
};

/** Error answers, by the name under which operations refer to them. */
export type ErrorResponses = Map<string, Response>;

/**
 * References to the error answers of an operation, by status.
 * @param known error answers so far; new ones are added
 */
export function errorResponsesOf(route: Route, known: ErrorResponses): Readonly<Record<string, Reference>> {
  const body = bodyOf(route);
  const refer = (kind: ErrorKind | null): Reference => {
    const name = `${body === null ? 'Bodyless' : body.name}-${kind ?? 'upstream'}`;
    if (!known.has(name)) known.set(name, errorResponse(kind, body));
    return { $ref: `#/components/responses/${name}` };
  };
  const byStatus = refusals[route.operation].map((kind) => [String(errorTable[kind].status), refer(kind)]);
  if (relaying.has(route.operation)) byStatus.push(['default', refer(null)]);
  return Object.fromEntries(byStatus);
}

/** The error body of a route; null if the method permits none. */
function bodyOf({ method, auth, errorFormat }: Route): NamedSchema | null {
  if (method === 'HEAD') return null;
  return auth === 'modelList' ? modelListError : errorBodyOf(errorFormat);
}

function errorResponse(kind: ErrorKind | null, body: NamedSchema | null): Response {
  const more = kind === null ? undefined : ownHeaders[kind];
  const headers = headerReferences(...(more === undefined ? [] : [more]));
  const description =
    kind === null ? "An upstream's own error, which keeps its status." : errorTable[kind].message;
  if (body === null) return { description, headers };
  return { description, headers, content: { 'application/json': { schema: schemaReference(body) } } };
}

const text = Type.String();
const orNull = (schema: TSchema) => Type.Union([schema, Type.Null()]);

const chatError = Type.Object({ message: text, type: text, param: orNull(text), code: orNull(text) });
const chatBody = named('ChatFamilyError', Type.Object({ error: chatError }));
const messagesBody = named(
  'MessagesError',
  Type.Object({
    type: Type.Literal('error'),
    error: Type.Object({
      type: text,
      message: text,
      details: Type.Optional(
        Type.Object({
          error_code: Type.String({ description: 'Which of the errors of message threads it is.' }),
        }),
      ),
    }),
    request_id: text,
  }),
);
const googleBody = named(
  'GenerateContentError',
  Type.Object({
    error: Type.Object({
      code: Type.Integer({ description: 'The HTTP status.' }),
      message: text,
      status: Type.String({ description: 'A name of google.rpc.Code.' }),
      details: Type.Optional(Type.Array(Type.Object({ '@type': text }))),
    }),
  }),
);
const rerankBody = named('RerankError', Type.Object({ message: text, error: chatError }));
const klingBody = named(
  'VendorkError',
  Type.Object({
    error: chatError,
    code: Type.Integer(),
    message: text,
    request_id: text,
    data: Type.Null(),
  }),
);
const jimengBody = named(
  'VendorjError',
  Type.Object({ code: Type.Integer(), message: text, data: Type.Object({}), request_id: text }),
);

const byWriter: ReadonlyMap<ErrorFormat['errorBody'], NamedSchema> = new Map([
  [openai.errorBody, chatBody],
  [anthropic.errorBody, messagesBody],
  [google.errorBody, googleBody],
  [rerank.errorBody, rerankBody],
  [kling.errorBody, klingBody],
  [jimeng.errorBody, jimengBody],
]);

/** The error body of the model list, whose format is chosen by the request's headers. */
export const modelListError: NamedSchema = named(
  'ModelListError',
  Type.Union([chatBody, messagesBody, googleBody].map(({ schema }) => schema as TSchema)),
);

/** Every error body. */
export const errorBodies: readonly NamedSchema[] = [...byWriter.values(), modelListError];

/**
 * The schema of an error format's bodies.
 * @throws {Error} for an error format without a schema
 */
export function errorBodyOf({ name, errorBody }: ErrorFormat): NamedSchema {
  // Error formats that differ only in streams write the same body.
  const body = byWriter.get(errorBody);
  if (body === undefined) throw new Error(`The error body of the error format ${name} has no schema.`);
  return body;
}
