import { type TSchema, Type } from 'typebox';
import type { ErrorFormat } from '../protocols/error-formats/error-format.js';
import { anthropic, google, jimeng, kling, openai, rerank } from '../protocols/error-formats/formats.js';
import { type NamedSchema, named } from './schemas.js';

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
