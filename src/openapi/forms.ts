import { type TSchema, Type } from 'typebox';
import { transcriptionForm, translationForm } from '../protocols/audio/index.js';
import { formFieldsType, mostImages } from '../protocols/images/schema.js';
import type { FormSchema } from '../schema/form.js';
import { name } from '../schema/members.js';
import { withoutNull } from './json-schema.js';
import type { NamedSchema } from './schemas.js';

/** A file of a form: arbitrary bytes. */
export const file = Type.Unsafe<string>({
  type: 'string',
  format: 'binary',
  contentMediaType: 'application/octet-stream',
});

const text = Type.Optional(Type.String());
const texts = Type.Optional(Type.Array(Type.String()));

const audioFields = {
  file,
  model: name,
  prompt: text,
  response_format: Type.Optional(Type.Enum(['json', 'text', 'srt', 'verbose_json', 'vtt'])),
  temperature: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
};

/** Form of `POST /v1/audio/translations`. */
const translation: NamedSchema = {
  name: 'TranslationForm',
  schema: Type.Object({
    ...audioFields,
    response_format: text,
    temperature: Type.Optional(Type.Number({ minimum: 0, maximum: 2 })),
  }),
};

/** Form of `POST /v1/audio/transcriptions`. */
const transcription: NamedSchema = {
  name: 'TranscriptionForm',
  schema: Type.Object({
    ...audioFields,
    language: text,
    timestamp_granularities: Type.Optional(
      Type.Array(Type.Enum(['word', 'segment']), {
        description: 'Only for the `response_format` "verbose_json".',
      }),
    ),
    stream: Type.Optional(Type.Boolean()),
    include: texts,
    languages: texts,
    keywords: texts,
    chunking_strategy: text,
  }),
};

/** The forms that are passed on while they arrive, by their schema. */
export const uploadForms: ReadonlyMap<FormSchema, NamedSchema> = new Map([
  [transcriptionForm, transcription],
  [translationForm, translation],
]);

/** The fields of a form, which cannot express null. */
const imageFields: Readonly<Record<string, TSchema>> = Object.fromEntries(
  Object.entries(formFieldsType.properties).map(([field, schema]) => {
    const other = withoutNull(schema) as TSchema;
    return [field, other === schema ? schema : Type.Optional(other)];
  }),
);

/** Form of `POST /v1/images/generations`. */
export const imageGenerationForm: NamedSchema = {
  name: 'ImageGenerationForm',
  schema: Type.Object(imageFields),
};

/** Form of `POST /v1/images/edits`. */
export const imageEditForm: NamedSchema = {
  name: 'ImageEditForm',
  schema: Type.Object({
    ...imageFields,
    image: Type.Array(file, {
      minItems: 1,
      maxItems: mostImages,
      description: 'One part for each image, with or without `[]` behind its name.',
    }),
    mask: Type.Optional(file),
  }),
};

/** Form of `POST /v1/files`, which is not implemented. */
export const fileForm: NamedSchema = {
  name: 'FileForm',
  schema: Type.Object({ file: Type.Optional(file), purpose: text }),
};
