import { type TSchema, Type } from 'typebox';
import { compileSchema, type MixedBody } from '../../schema/compile.js';
import { bodies, given, name, nullable, text } from '../../schema/members.js';

const bounds = { minItems: 1, maxItems: 2048 };
const many = (items: TSchema) => Type.Array(items, bounds);
const filled = Type.String({ minLength: 1 });
/** One text as tokens. The upstream judges its length. */
const tokens = Type.Array(Type.Integer({ minimum: 0 }), { minItems: 1 });

const members = {
  // The most general form is last: for a list that matches none, the error describes the last one.
  input: Type.Union([filled, tokens, many(tokens), many(filled)]),
  encoding_format: nullable(Type.Enum(['float', 'base64'])),
  dimensions: nullable(Type.Integer({ minimum: 1 })),
  user: text,
};

/** Body of `POST /v1/embeddings` as in the API document. `embeddingsRequest` checks less. */
export const embeddingsRequestType = Type.Object({ model: name, ...members });

/** Body of `POST /v1/engines/{model}/embeddings`, whose path names the model. */
export const engineEmbeddingsRequestType = Type.Object({ model: text, ...members });

/** Bodies of other endpoints, recognized by the member with their input. */
const embeddingsMixedBody: MixedBody = {
  own: 'input',
  foreign: [bodies.chat, bodies.completions, bodies.rerank, bodies.generateContent],
};

/** Members that may occur only once, and only in this spelling. */
const guarded = { reads: Object.keys(embeddingsRequestType.properties) };

/** Checks a body of `POST /v1/embeddings`, which is passed on unchanged. */
export const embeddingsRequest = compileSchema(
  Type.Object({ model: name, input: given }),
  embeddingsMixedBody,
  guarded,
);

/** Checks a body of `POST /v1/engines/{model}/embeddings`. */
export const engineEmbeddingsRequest = compileSchema(
  Type.Object({ model: text, input: given }),
  embeddingsMixedBody,
  guarded,
);

const dimensionality = nullable(Type.Integer({ minimum: 1 }));
const contentMembers = {
  model: text,
  content: Type.Object({ parts: Type.Array(Type.Object({ text })) }),
  taskType: text,
  title: text,
  outputDimensionality: dimensionality,
};

/** Body of `POST /v1beta/models/{model}:embedContent`. */
export const embedContentRequestType = Type.Object(contentMembers);

/** Body of `POST /v1beta/models/{model}:batchEmbedContents`. */
export const batchEmbedContentsRequestType = Type.Object({
  requests: Type.Array(embedContentRequestType, { minItems: 1 }),
});

const contentReads = [...Object.keys(contentMembers), 'task_type', 'output_dimensionality'];

/** Checks a body of `POST /v1beta/models/{model}:embedContent`, which is passed on unchanged. */
export const embedContentRequest = compileSchema(
  Type.Object({ model: text, content: given }),
  {
    own: 'content',
    foreign: [bodies.batchEmbedContents, bodies.generateContent, bodies.embeddings],
  },
  { reads: contentReads },
);

/** Checks a body of `POST /v1beta/models/{model}:batchEmbedContents`, whose parts also name the model. */
export const batchEmbedContentsRequest = compileSchema(
  Type.Object({ requests: Type.Array(Type.Object({ model: text, content: given })) }),
  {
    own: 'requests',
    foreign: [bodies.embedContent, bodies.generateContent, bodies.embeddings],
  },
  { within: { requests: { reads: contentReads, notes: ['model'], isList: true } } },
);

/** Body of `POST /v1/embed` and `POST /v2/embed`, as Cohere's clients send it. */
export const embedRequestType = Type.Object({
  model: name,
  texts: nullable(Type.Array(Type.String(), { minItems: 1 })),
  inputs: nullable(Type.Array(Type.Object({ content: Type.Array(Type.Object({ type: text, text })) }))),
  input_type: text,
  embedding_types: nullable(Type.Array(Type.Enum(['float', 'base64']))),
  output_dimension: nullable(Type.Integer({ minimum: 1 })),
  truncate: text,
  max_tokens: nullable(Type.Integer({ minimum: 1 })),
});

/** Checks such a body. Its texts are only checked when it is converted for an upstream. */
export const embedRequest = compileSchema(
  Type.Object({ model: name }),
  { own: 'texts', foreign: [bodies.chat, bodies.embeddings] },
  { reads: [...Object.keys(embedRequestType.properties), 'images'] },
);
