import { type TObject, Type } from 'typebox';
import { GatewayError } from '../../errors.js';
import { type CompiledSchema, compileSchema } from '../../schema/compile.js';
import { flag, name, nullable, text } from '../../schema/members.js';
import { isObject } from '../../wire/json.js';
import { MemberGuard } from '../../wire/member-guard.js';
import type { PartRules } from '../../wire/part-names.js';
import { formOf } from './forms.js';

/** Most images that an edit takes. */
export const mostImages = 16;

const count = nullable(Type.Integer({ minimum: 1, maximum: 10 }));
const absent = Type.Optional(Type.Null());

/** What may stand beside the prompt. Texts are not held against lists: these grow with every model. */
const settings = {
  n: count,
  size: text,
  response_format: nullable(Type.Enum(['url', 'b64_json'])),
  stream: flag,
  negative_prompt: text,
  prompt_extend: flag,
  watermark: flag,
  quality: text,
  style: text,
  background: text,
  moderation: text,
  output_format: text,
  output_compression: nullable(Type.Integer({ minimum: 0, maximum: 100 })),
  partial_images: nullable(Type.Integer({ minimum: 0, maximum: 3 })),
  input_fidelity: text,
  user: text,
};

const parameterMembers = {
  negative_prompt: text,
  prompt_extend: flag,
  watermark: flag,
  size: text,
  n: count,
};
const parameters = nullable(Type.Object(parameterMembers));

const message = Type.Object({
  role: text,
  content: nullable(Type.Array(Type.Object({ text, image: text }))),
});

const reference = Type.Object({ image_url: text, file_id: text });

/** A body with `input`. */
const inputForm = Type.Object({
  model: name,
  prompt: absent,
  input: Type.Object({ messages: Type.Array(message, { minItems: 1 }) }),
  parameters,
  ...settings,
});

const promptMembers = { model: name, prompt: name, input: absent, ...settings };

/** The check of a body of `POST /v1/images/generations`, in either form. */
export const generationsRequest = eitherForm(Type.Object(promptMembers));

/** The check of a JSON body of `POST /v1/images/edits`, in either form. */
export const editsRequest = eitherForm(
  Type.Object({
    ...promptMembers,
    // Not every upstream takes its images here.
    images: nullable(Type.Array(reference, { minItems: 1, maxItems: mostImages })),
    mask: nullable(reference),
  }),
);

/** The text fields of a form that are known. */
export const formFieldsType = Type.Object({ model: name, prompt: name, ...settings });

/** What has to be clear among the names of a form's parts: of images there may be several. */
export const imageForm: PartRules = {
  guard: new MemberGuard({
    reads: [...Object.keys(formFieldsType.properties), 'image', 'mask'],
    steers: true,
  }),
  many: new Set(['image']),
};

/** Their check, once numbers and booleans have been read. */
export const formFields = compileSchema(formFieldsType);

/** A check of bodies of two forms, each of which takes only what the other does not. */
function eitherForm(promptForm: TObject): CompiledSchema {
  const reads = [...Object.keys(promptForm.properties), ...Object.keys(inputForm.properties)];
  const guarded = { reads, within: { parameters: { reads: Object.keys(parameterMembers) } } };
  const forms = {
    prompt: compileSchema(promptForm, null, guarded),
    input: compileSchema(inputForm, null, guarded),
  };
  return {
    guard: forms.prompt.guard,
    accept: (body) => forms.prompt.accept(body) ?? forms.input.accept(body),
    check: (value) => forms.prompt.check(value) || forms.input.check(value),
    explain(value) {
      if (!isObject(value)) return forms.prompt.explain(value);
      const form = formOf(value);
      return form instanceof GatewayError ? form : forms[form].explain(value);
    },
  };
}
