import { type TSchema, Type } from 'typebox';

/*
 * Pieces that the schemas of request bodies are made of. A body that is passed on as it came is checked for what the
 * API demands and for what calls are routed, limited and metered by: an upstream of the same protocol knows better than
 * we do what else it takes. Of a body that is translated, known members are checked for type and documented range, and
 * whatever is not known passes: members, roles, types of tools and of content parts, and values of settings that grow
 * with every model.
 */

/** A member that is the upstream's to judge: it has to be there, and nothing is asked of it. */
export const given = Type.Unknown();
/** A number that a call is metered by. Whether it is in range is the upstream's to say. */
export const metered = Type.Optional(Type.Union([Type.Integer(), Type.Null()]));

/** A member that may be left out or null. */
export const nullable = (schema: TSchema) => Type.Optional(Type.Union([schema, Type.Null()]));
export const text = nullable(Type.String());
export const flag = nullable(Type.Boolean());
export const record = nullable(Type.Object({}));
export const name = Type.String({ minLength: 1 });
/** Whether an answer is streamed, and with its usage. */
export const streaming = {
  stream: flag,
  stream_options: nullable(Type.Object({ include_usage: flag })),
};

/** An object of a `type` that is in none of the other branches of its union. */
export const otherType = (known: readonly string[]) =>
  Type.Object({ type: Type.Unsafe<string>({ type: 'string', not: { enum: known } }) });

/** An object whose values are all of one schema. TypeBox's own record tests each key against a pattern. */
export const mapOf = (values: TSchema, limits: { maxProperties?: number } = {}) =>
  Type.Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: values, ...limits });

/** The member by which the body of an endpoint is known, where it is sent to another one. */
export const bodies = {
  chat: { key: 'messages', endpoint: 'POST /v1/chat/completions' },
  chatOrMessages: { key: 'messages', endpoint: 'POST /v1/chat/completions or POST /v1/messages' },
  responses: { key: 'input', endpoint: 'POST /v1/responses' },
  generateContent: { key: 'contents', endpoint: 'POST /v1beta/models/{model}:generateContent' },
  completions: { key: 'prompt', endpoint: 'POST /v1/completions' },
  embeddings: { key: 'input', endpoint: 'POST /v1/embeddings' },
  embedContent: { key: 'content', endpoint: 'POST /v1beta/models/{model}:embedContent' },
  batchEmbedContents: { key: 'requests', endpoint: 'POST /v1beta/models/{model}:batchEmbedContents' },
  rerank: { key: 'documents', endpoint: 'POST /v1/rerank' },
} as const;
