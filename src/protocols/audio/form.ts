import { Type } from 'typebox';
import { GatewayError } from '../../errors.js';
import { compileForm } from '../../schema/form.js';
import { name } from '../../schema/members.js';
import type { JsonObject } from '../../wire/json.js';

const text = Type.Optional(Type.String());
const texts = Type.Optional(Type.Array(Type.String()));

const members = {
  model: name,
  prompt: text,
  response_format: Type.Optional(Type.Enum(['json', 'text', 'srt', 'verbose_json', 'vtt'])),
  temperature: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
};

const granularities = 'timestamp_granularities';

/** Form of `POST /v1/audio/transcriptions`. */
export const transcriptionForm = compileForm({
  files: ['file'],
  fields: Type.Object({
    ...members,
    language: text,
    [granularities]: Type.Optional(Type.Array(Type.Enum(['word', 'segment']))),
    stream: Type.Optional(Type.Boolean()),
    include: texts,
    languages: texts,
    keywords: texts,
    // `auto`, or the text of an object, or `chunking_strategy[type]` and so on.
    chunking_strategy: text,
  }),
  split: ['chunking_strategy'],
  rule: granularitiesRule,
});

/** Form of `POST /v1/audio/translations`. */
export const translationForm = compileForm({
  files: ['file'],
  fields: Type.Object(members),
  rule: null,
});

/** Only one format has a place for timestamps. */
function granularitiesRule(values: JsonObject): GatewayError | null {
  if (!Object.hasOwn(values, granularities) || values.response_format === 'verbose_json') return null;
  return new GatewayError(
    'invalid_value',
    `'${granularities}' is only for 'response_format' "verbose_json": send that format, or leave it out.`,
    { param: granularities },
  );
}
