import { Type } from 'typebox';
import { compileSchema, type MixedBody } from '../../schema/compile.js';
import { bodies, flag, given, name, nullable } from '../../schema/members.js';

const count = nullable(Type.Integer({ minimum: 1 }));

/** Body of `POST /v1/rerank`, as Cohere's and Jina's clients send it. */
export const rerankRequestType = Type.Object({
  model: nullable(name),
  query: name,
  // Objects have a `text`, or the members that `rank_fields` names.
  documents: Type.Array(Type.Union([Type.String(), Type.Object({})]), { minItems: 1 }),
  top_n: count,
  return_documents: flag,
  rank_fields: nullable(Type.Array(Type.String())),
  max_chunks_per_doc: count,
  max_chunk_per_doc: count,
  max_tokens_per_doc: count,
  overlap_tokens: nullable(Type.Integer({ minimum: 0 })),
  priority: nullable(Type.Integer({ minimum: 0 })),
});

/** Bodies of other endpoints, recognized by the member with their input. */
const rerankMixedBody: MixedBody = {
  own: 'documents',
  foreign: [bodies.embeddings, bodies.chat],
};

/** Checks a rerank request body, which is passed on unchanged. */
export const rerankRequest = compileSchema(
  Type.Object({ model: nullable(name), query: given, documents: given }),
  rerankMixedBody,
  { reads: Object.keys(rerankRequestType.properties) },
);
