import { Type } from 'typebox';
import { compileSchema, type MixedBody } from '../../schema/compile.js';
import { bodies, flag, given, name, nullable } from '../../schema/members.js';

const count = nullable(Type.Integer({ minimum: 1 }));

/** Body of `POST /v1/rerank`: what Cohere's and Jina's clients send. */
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

/** Bodies of other endpoints, told by the member that holds their input. */
const rerankMixedBody: MixedBody = {
  own: 'documents',
  foreign: [bodies.embeddings, bodies.chat],
};

/** The check of a rerank request body, which is passed on as it came. */
export const rerankRequest = compileSchema(
  Type.Object({ model: nullable(name), query: given, documents: given }),
  rerankMixedBody,
  { reads: Object.keys(rerankRequestType.properties) },
);
