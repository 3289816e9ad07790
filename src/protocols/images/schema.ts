import { type TObject, Type } from 'typebox';
import { GatewayError } from '../../errors.js';
import type { CompiledSchema } from '../../schema/accept.js';
import { compileSchema } from '../../schema/compile.js';
import { bodies, flag, given, name, nullable, text } from '../../schema/members.js';
import { imageCountMembers } from '../../wire/count-members.js';
import { isObject, type JsonObject, memberError } from '../../wire/json.js';
import { MemberGuard } from '../../wire/member-guard.js';
import type { PartRules } from '../../wire/part-names.js';
import type { ImageForm } from './request.js';
import { authorFields } from './svg-author.js';

/** Maximum number of images in an edit that is converted. */
export const mostImages = 16;
/** Each image is charged. The upstream decides how many a model makes at once. */
export const mostCount = 1000;

const count = nullable(Type.Integer({ minimum: 1, maximum: mostCount }));
const absent = Type.Optional(Type.Null());

/** Settings beside the prompt. Words are not checked against lists, which grow with every model. */
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

/** Not only the documented object: many servers accept the URL or the base64 alone. */
const reference = Type.Union([Type.String(), Type.Object({ image_url: text, file_id: text })]);

/** A body with `input`, which both endpoints accept besides the one with a prompt. */
export const inputForm = Type.Object({
  model: name,
  prompt: absent,
  input: Type.Object({ messages: Type.Array(message, { minItems: 1 }) }),
  parameters,
  ...settings,
});

/** Body of `POST /v1/images/generations` with a prompt. */
export const generationMembers = Type.Object({ model: name, prompt: name, input: absent, ...settings });

const editMembers = Type.Object({
  ...generationMembers.properties,
  // Optional: not every upstream reads its images here.
  images: nullable(Type.Array(reference, { minItems: 1, maxItems: mostImages })),
  image: nullable(Type.Union([reference, Type.Array(reference, { minItems: 1, maxItems: mostImages })])),
  mask: nullable(reference),
});

/** Checks a body of `POST /v1/images/generations` that is converted, in either form. */
export const generationsRequest = eitherForm(generationMembers, generationMembers);

/** Checks a JSON body of `POST /v1/images/edits` that is converted. */
export const editsRequest = eitherForm(editMembers, editMembers);

/** The only requirements for a body with a prompt that may be passed on unchanged. */
const passedMembers = Type.Object({ model: name, prompt: given, input: absent, n: count, stream: flag });

/** Checks every body of `POST /v1/images/generations`. */
export const passedGenerationsRequest = eitherForm(passedMembers, generationMembers);

/** Checks every JSON body of `POST /v1/images/edits`. */
export const passedEditsRequest = eitherForm(passedMembers, editMembers);

/** Known text fields of a form. */
export const formFieldsType = Type.Object({ model: name, prompt: name, ...settings });

/** Names of a form's parts that must be unambiguous. Images may occur several times. */
export const imageForm: PartRules = {
  guard: new MemberGuard({
    reads: [...Object.keys(formFieldsType.properties), ...imageCountMembers, 'image', 'mask', 'svg'],
    steers: true,
  }),
  many: new Set(['image', 'svg']),
};

/** Checks the fields after numbers and booleans were read. */
export const formFields = compileSchema(formFieldsType);

/**
 * Makes a check of bodies in two forms, which exclude each other.
 * @param known has all members of a body with a prompt that are ever read
 */
function eitherForm(promptForm: TObject, known: TObject): CompiledSchema {
  const sequence = 'sequential_image_generation_options';
  const reads = [
    ...Object.keys(known.properties),
    ...Object.keys(inputForm.properties),
    ...imageCountMembers,
    sequence,
    'svg',
  ];
  const guarded = {
    reads,
    within: {
      parameters: { reads: [...Object.keys(parameterMembers), ...imageCountMembers] },
      [sequence]: { reads: imageCountMembers },
      // Names the model that writes an SVG.
      svg: { reads: ['model'] },
    },
    bars: authorFields,
  };
  const forms = {
    prompt: compileSchema(promptForm, null, guarded),
    input: compileSchema(inputForm, null, guarded),
  };
  return {
    guard: forms.prompt.guard,
    // A body with `input` is rare: it has the full check.
    accept: forms.prompt.accept,
    wantsItemTools: false,
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

/** Members with the input of other endpoints. */
const foreign = [bodies.chat, bodies.generateContent];

/**
 * Returns the form of a JSON body: the one whose member is present and not null.
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
