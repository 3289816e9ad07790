import { Type } from 'typebox';
import { compileForm } from '../../schema/form.js';
import { name } from '../../schema/members.js';

const text = Type.Optional(Type.String());
const texts = Type.Optional(Type.Array(Type.String()));

/* Words and ranges are the upstream's to judge. */

const members = {
  model: name,
  prompt: text,
  response_format: text,
  temperature: text,
};

/** Form of `POST /v1/audio/transcriptions`. */
export const transcriptionForm = compileForm({
  files: ['file'],
  fields: Type.Object({
    ...members,
    language: text,
    timestamp_granularities: texts,
    stream: Type.Optional(Type.Boolean()),
    include: texts,
    languages: texts,
    keywords: texts,
    // `auto`, or the text of an object, or `chunking_strategy[type]` and so on.
    chunking_strategy: text,
  }),
  split: ['chunking_strategy'],
});

/** Form of `POST /v1/audio/translations`. */
export const translationForm = compileForm({
  files: ['file'],
  fields: Type.Object(members),
});
