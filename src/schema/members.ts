import { type TSchema, Type } from 'typebox';

/*
 * Building blocks for the schemas of request bodies. A body that is passed on unchanged is checked for what the API
 * requires, and for the members by which calls are routed, limited and metered. Everything else is left to the upstream,
 * which speaks the same protocol. In a translated body, known members are checked for type and documented range. Unknown
 * ones pass: members, roles, types of tools and of content parts, and values of settings that grow with every model.
 */

/** A required member whose value is left to the upstream. */
export const given = Type.Unknown();
/** A number by which a call is metered. Its range is left to the upstream. */
export const metered = Type.Optional(Type.Union([Type.Integer(), Type.Null()]));

/** A member that may be absent or null. */
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

/** An object whose `type` is in no other branch of its union. */
export const otherType = (known: readonly string[]) =>
  Type.Object({ type: Type.Unsafe<string>({ type: 'string', not: { enum: known } }) });

/** An object whose values all have one schema. TypeBox's own record type matches each key against a pattern. */
export const mapOf = (values: TSchema, limits: { maxProperties?: number } = {}) =>
  Type.Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: values, ...limits });

/** Members that identify the endpoint of a body sent to another one by mistake. */
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
