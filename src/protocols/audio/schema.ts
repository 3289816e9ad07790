import { Type } from 'typebox';
import { compileSchema, type MixedBody } from '../../schema/compile.js';
import { compileForm } from '../../schema/form.js';
import { bodies, given, name, nullable, text } from '../../schema/members.js';

/** Body of `POST /v1/audio/speech`. */
export const speechRequestType = Type.Object({
  model: name,
  input: name,
  voice: Type.Union([name, Type.Object({ id: name })]),
  instructions: text,
  response_format: nullable(Type.Enum(['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm'])),
  speed: nullable(Type.Number({ minimum: 0.25, maximum: 4 })),
  stream_format: nullable(Type.Enum(['audio', 'sse'])),
});

/** Bodies of other endpoints, recognized by the member with their input. */
const speechMixedBody: MixedBody = {
  own: 'input',
  foreign: [bodies.chat, bodies.completions],
};

/** Checks a speech request body, which is passed on unchanged. */
export const speechRequest = compileSchema(Type.Object({ model: name, input: given }), speechMixedBody, {
  reads: Object.keys(speechRequestType.properties),
});

const field = Type.Optional(Type.String());
const fields = Type.Optional(Type.Array(Type.String()));

/*
 * The upstream judges words and ranges.
 */

const members = {
  model: name,
  prompt: field,
  response_format: field,
  temperature: field,
};

/** Form of `POST /v1/audio/transcriptions`. */
export const transcriptionForm = compileForm({
  files: ['file'],
  fields: Type.Object({
    ...members,
    language: field,
    timestamp_granularities: fields,
    stream: Type.Optional(Type.Boolean()),
    include: fields,
    languages: fields,
    keywords: fields,
    // `auto`, the JSON text of an object, or `chunking_strategy[type]` and so on.
    chunking_strategy: field,
  }),
  split: ['chunking_strategy'],
});

/** Form of `POST /v1/audio/translations`. */
export const translationForm = compileForm({
  files: ['file'],
  fields: Type.Object(members),
});
