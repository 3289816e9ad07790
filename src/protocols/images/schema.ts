import { type TObject, Type } from 'typebox';
import { GatewayError } from '../../errors.js';
import type { CompiledSchema } from '../../schema/accept.js';
import { compileSchema } from '../../schema/compile.js';
import { bodies, flag, given, name, nullable, text } from '../../schema/members.js';
import { imageCountMembers } from '../../wire/count-members.js';
import { isObject, type JsonObject } from '../../wire/json.js';
import { MemberGuard } from '../../wire/member-guard.js';
import type { PartRules } from '../../wire/part-names.js';
import { memberError } from '../../wire/reading.js';
import type { ImageForm } from './request.js';

/** Most images that an edit takes which is converted. */
export const mostImages = 16;
/** Each is charged. How many a model makes at once is for its upstream to say. */
export const mostCount = 1000;

const count = nullable(Type.Integer({ minimum: 1, maximum: mostCount }));
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
  output_compression: nullable(Type.Integer()),
  partial_images: nullable(Type.Integer()),
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

/** Not only the documented object: many servers take the URL or the base64 by itself. */
const reference = Type.Union([Type.String(), Type.Object({ image_url: text, file_id: text })]);

/** A body with `input`, which both endpoints take beside the one with a prompt. */
export const inputForm = Type.Object({
  model: name,
  prompt: absent,
  input: Type.Object({ messages: Type.Array(message, { minItems: 1 }) }),
  parameters,
  ...settings,
});

/** A body of `POST /v1/images/generations` with a prompt. */
export const generationMembers = Type.Object({ model: name, prompt: name, input: absent, ...settings });

const editMembers = Type.Object({
  ...generationMembers.properties,
  // Not every upstream takes its images here.
  images: nullable(Type.Array(reference, { minItems: 1, maxItems: mostImages })),
  image: nullable(Type.Union([reference, Type.Array(reference, { minItems: 1, maxItems: mostImages })])),
  mask: nullable(reference),
});

/** The check of a body for `POST /v1/images/generations` that is converted, in either form. */
export const generationsRequest = eitherForm(generationMembers, generationMembers);

/** The same of a JSON body for `POST /v1/images/edits`. */
export const editsRequest = eitherForm(editMembers, editMembers);

/** All that is asked of a body with a prompt, which its upstream may take as it came. */
const passedMembers = Type.Object({ model: name, prompt: given, input: absent, n: count, stream: flag });

/** The check of every body of `POST /v1/images/generations`. */
export const passedGenerationsRequest = eitherForm(passedMembers, generationMembers);

/** The same of a JSON body of `POST /v1/images/edits`. */
export const passedEditsRequest = eitherForm(passedMembers, editMembers);

/** The text fields of a form that are known. */
export const formFieldsType = Type.Object({ model: name, prompt: name, ...settings });

/** What has to be clear among the names of a form's parts: of images there may be several. */
export const imageForm: PartRules = {
  guard: new MemberGuard({
    reads: [...Object.keys(formFieldsType.properties), ...imageCountMembers, 'image', 'mask'],
    steers: true,
  }),
  many: new Set(['image']),
};

/** Their check, once numbers and booleans have been read. */
export const formFields = compileSchema(formFieldsType);

/**
 * A check of bodies of two forms, each of which takes only what the other does not.
 * @param known has all members of a body with a prompt that are ever read
 */
function eitherForm(promptForm: TObject, known: TObject): CompiledSchema {
  const sequence = 'sequential_image_generation_options';
  const reads = [
    ...Object.keys(known.properties),
    ...Object.keys(inputForm.properties),
    ...imageCountMembers,
    sequence,
  ];
  const guarded = {
    reads,
    within: {
      parameters: { reads: [...Object.keys(parameterMembers), ...imageCountMembers] },
      [sequence]: { reads: imageCountMembers },
    },
  };
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

const bothForms =
  'Send either \'prompt\' with its settings beside it ({"model", "prompt", "size", …}), or \'input\' with ' +
  '\'messages\' ({"model", "input": {"messages": [{"role": "user", "content": [{"text": …}]}]}, "parameters"}).';

/** Members that hold the input of other endpoints. */
const foreign = [bodies.chat, bodies.generateContent];

/**
 * Tells which of the two forms a JSON body has: the one whose member is there and not null.
 * @returns the form, or the 400 for a body with both members or neither, which explains the forms
 */
export function formOf(body: JsonObject): ImageForm | GatewayError {
  const hasPrompt = isGiven(body, 'prompt');
  const hasInput = isGiven(body, 'input');
  if (hasPrompt && hasInput)
    return memberError('invalid_request', 'input', `The body has both 'prompt' and 'input'. ${bothForms}`);
  if (hasPrompt) return 'prompt';
  if (hasInput) return 'input';
  const stray = foreign.find(({ key }) => isGiven(body, key));
  if (stray === undefined)
    return memberError(
      'missing_parameter',
      'prompt',
      `The body has neither 'prompt' nor 'input'. ${bothForms}`,
    );
  return memberError(
    'invalid_request_body',
    stray.key,
    `This body looks like one for ${stray.endpoint}: it has '${stray.key}' and neither 'prompt' nor 'input'. ` +
      `Send it there. ${bothForms}`,
  );
}

function isGiven(body: JsonObject, key: string): boolean {
  return Object.hasOwn(body, key) && (body[key] ?? null) !== null;
}
