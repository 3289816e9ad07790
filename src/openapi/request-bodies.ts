import { type TSchema, Type } from 'typebox';
import { speechRequest, speechRequestType } from '../protocols/audio/index.js';
import { chatRequestType, passedChatRequest } from '../protocols/chat/request/schema.js';
import { completionsRequest, completionsRequestType } from '../protocols/completions/index.js';
import {
  batchEmbedContentsRequest,
  batchEmbedContentsRequestType,
  embedContentRequest,
  embedContentRequestType,
  embeddingsRequest,
  embeddingsRequestType,
  embedRequest,
  embedRequestType,
  engineEmbeddingsRequest,
  engineEmbeddingsRequestType,
} from '../protocols/embeddings/index.js';
import {
  generateContentRequestType,
  passedCountTokensRequest as googleCountTokensRequest,
  passedGenerateContentRequest,
} from '../protocols/generate-content/request/schema.js';
import {
  generationMembers,
  inputForm,
  mostImages,
  passedEditsRequest,
  passedGenerationsRequest,
} from '../protocols/images/schema.js';
import {
  countTokensRequestType,
  messagesRequestType,
  passedCountTokensRequest,
  passedMessagesRequest,
} from '../protocols/messages/request/schema.js';
import { moderationsRequest, moderationsRequestType } from '../protocols/moderations/index.js';
import { rerankRequest, rerankRequestType } from '../protocols/rerank/index.js';
import {
  compactRequestType,
  inputTokensRequestType,
  passedCompactRequest,
  passedInputTokensRequest,
  passedResponsesRequest,
  responsesRequestType,
} from '../protocols/responses/request/schema.js';
import type { Route } from '../routes.js';
import type { CompiledSchema } from '../schema/accept.js';
import { name, nullable, text } from '../schema/members.js';
import { genericBodyType, vendorkBodyType } from '../video/request.js';
import { file, fileForm, imageEditForm, imageGenerationForm, uploadForms } from './forms.js';
import type { Content } from './json-schema.js';
import { type NamedSchema, schemaReference } from './schemas.js';

const seconds = Type.String({
  pattern: '^(?=.*[1-9])\\d{1,9}(?:\\.\\d{1,9})?$',
  description: 'A number of seconds as text, such as "4".',
});
const size = Type.String({
  pattern: '^[1-9]\\d{0,4}x[1-9]\\d{0,4}$|^[1-9]\\d{0,3}:[1-9]\\d{0,3}$',
  description:
    'Width and height in pixels, such as "1280x720", or a shape, such as "16:9". An upstream of the format may take other words.',
});
const prompt = Type.String({ minLength: 1, maxLength: 32_000 });

/** JSON body of `POST /v1/videos`. */
const compatBody: NamedSchema = {
  name: 'VideoRequest',
  schema: Type.Object({
    model: name,
    prompt,
    seconds: nullable(Type.Union([seconds, Type.Number({ exclusiveMinimum: 0, maximum: 999_999_999 })])),
    size: nullable(size),
    input_reference: nullable(
      Type.Union([Type.String(), Type.Object({ image_url: text })], {
        description: 'The reference image: a URL or base64.',
      }),
    ),
  }),
};

/** Form of `POST /v1/videos`. */
const compatForm: NamedSchema = {
  name: 'VideoForm',
  schema: Type.Object({
    model: name,
    prompt,
    seconds: Type.Optional(seconds),
    size: Type.Optional(size),
    input_reference: Type.Optional(file),
  }),
};

/** Body of `POST /v1/video/generations`. */
const genericBody: NamedSchema = { name: 'GenericVideoRequest', schema: genericBodyType };

const vendorkMembers: Readonly<Record<string, TSchema>> = vendorkBodyType.properties;

/** Body of `POST /vendork/v1/videos/text2video`. */
const vendorkTextBody: NamedSchema = {
  name: 'VendorkTextVideoRequest',
  schema: Type.Object({ ...vendorkMembers, prompt: name }),
};

/** Body of `POST /vendork/v1/videos/image2video`. */
const vendorkImageBody: NamedSchema = {
  name: 'VendorkImageVideoRequest',
  schema: Type.Object({ ...vendorkMembers, image: name }),
};

const images = nullable(Type.Array(Type.String({ minLength: 1 })));

const submit = Type.Object(
  {
    req_key: nullable(name),
    task_id: Type.Optional(Type.Null()),
    prompt: text,
    binary_data_base64: images,
    image_urls: images,
    seed: nullable(Type.Integer()),
    frames: nullable(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
    aspect_ratio: text,
  },
  {
    description:
      'For the `Action` CVSync2AsyncSubmitTask; `req_key` names the model. Without it the one of `defaultModels.video` in the config decides; where that is not set, the answer is 400.',
  },
);

const query = Type.Object(
  { req_key: text, task_id: name, req_json: text },
  { description: 'For the `Action` CVSync2AsyncGetResult.' },
);

/** Body of `POST /vendorj/`, for either action. */
const vendorjBody: NamedSchema = { name: 'VendorjRequest', schema: Type.Union([submit, query]) };

/** A request for speech, with the bound of its text, which is not checked by the schema. */
const speechType = Type.Object({
  ...speechRequestType.properties,
  input: Type.String({ minLength: 1, maxLength: 4096 }),
});

const googleCountTokensType = Type.Union([
  Type.Object({ generateContentRequest: generateContentRequestType }),
  Type.Object({ generate_content_request: generateContentRequestType }),
  generateContentRequestType,
]);

const reference = Type.Object({ image_url: text, file_id: text });
const editMembers = Type.Object({
  ...generationMembers.properties,
  images: nullable(Type.Array(reference, { minItems: 1, maxItems: mostImages })),
  mask: nullable(reference),
});
const imageInput: NamedSchema = { name: 'ImageInputRequest', schema: inputForm };
const generation = Type.Union([generationMembers, inputForm]);
const edit = Type.Union([editMembers, inputForm]);

/**
 * The documented schema of call bodies, by the schema that checks them: requests that every target of the protocol
 * takes.
 */
export const jsonBodies: ReadonlyMap<CompiledSchema, NamedSchema> = new Map<CompiledSchema, NamedSchema>([
  [passedChatRequest, { name: 'ChatRequest', schema: chatRequestType }],
  [passedResponsesRequest, { name: 'ResponsesRequest', schema: responsesRequestType }],
  [passedCompactRequest, { name: 'ResponsesCompactRequest', schema: compactRequestType }],
  [passedInputTokensRequest, { name: 'ResponsesInputTokensRequest', schema: inputTokensRequestType }],
  [passedMessagesRequest, { name: 'MessagesRequest', schema: messagesRequestType }],
  [passedCountTokensRequest, { name: 'MessagesCountTokensRequest', schema: countTokensRequestType }],
  [passedGenerateContentRequest, { name: 'GenerateContentRequest', schema: generateContentRequestType }],
  [googleCountTokensRequest, { name: 'GenerateContentCountTokensRequest', schema: googleCountTokensType }],
  [completionsRequest, { name: 'CompletionsRequest', schema: completionsRequestType }],
  [embeddingsRequest, { name: 'EmbeddingsRequest', schema: embeddingsRequestType }],
  [embedContentRequest, { name: 'EmbedContentRequest', schema: embedContentRequestType }],
  [batchEmbedContentsRequest, { name: 'BatchEmbedContentsRequest', schema: batchEmbedContentsRequestType }],
  [embedRequest, { name: 'EmbedRequest', schema: embedRequestType }],
  [engineEmbeddingsRequest, { name: 'EngineEmbeddingsRequest', schema: engineEmbeddingsRequestType }],
  [rerankRequest, { name: 'RerankRequest', schema: rerankRequestType }],
  [moderationsRequest, { name: 'ModerationsRequest', schema: moderationsRequestType }],
  [speechRequest, { name: 'SpeechRequest', schema: speechType }],
  [passedGenerationsRequest, { name: 'ImageGenerationRequest', schema: generation }],
  [passedEditsRequest, { name: 'ImageEditRequest', schema: edit }],
]);

/** The bodies that an operation takes: JSON, a form, or either. */
interface Bodies {
  readonly json: NamedSchema | null;
  readonly form: NamedSchema | null;
}

/** Every schema of a request body. */
export const requestSchemas: readonly NamedSchema[] = [
  ...jsonBodies.values(),
  imageInput,
  ...uploadForms.values(),
  imageGenerationForm,
  imageEditForm,
  compatBody,
  compatForm,
  genericBody,
  vendorkTextBody,
  vendorkImageBody,
  vendorjBody,
  fileForm,
];

/**
 * The body of an operation's requests, or null without one.
 * @throws {Error} for a route whose schema is not documented
 */
export function requestBodyOf(
  route: Route,
): { readonly required: boolean; readonly content: Content } | null {
  const { json, form } = bodiesOf(route);
  if (json === null && form === null) return null;
  const content = {
    ...(json === null ? {} : { 'application/json': { schema: schemaReference(json) } }),
    ...(form === null ? {} : { 'multipart/form-data': { schema: schemaReference(form) } }),
  };
  return { required: route.operation !== 'unimplemented', content };
}

function bodiesOf(route: Route): Bodies {
  const { schema, form, image, operation, method, path } = route;
  if (image !== null)
    return {
      json: described(route, schema === null ? undefined : jsonBodies.get(schema)),
      form: image === 'generate' ? imageGenerationForm : imageEditForm,
    };
  if (schema !== null) return { json: described(route, jsonBodies.get(schema)), form: null };
  if (form !== null) return { json: null, form: described(route, uploadForms.get(form)) };
  if (operation === 'videoCreate' || operation === 'videoAction') return videoBodies(route);
  return { json: null, form: `${method} ${path}` === 'POST /v1/files' ? fileForm : null };
}

function videoBodies({ video }: Route): Bodies {
  switch (video?.format) {
    case 'compat':
      return { json: compatBody, form: compatForm };
    case 'vendork':
      return { json: video.operation === 'text' ? vendorkTextBody : vendorkImageBody, form: null };
    case 'vendorj':
      return { json: vendorjBody, form: null };
    default:
      return { json: genericBody, form: null };
  }
}

function described({ method, path }: Route, schema: NamedSchema | undefined): NamedSchema {
  if (schema === undefined) throw new Error(`The body of ${method} ${path} is not described for OpenAPI.`);
  return schema;
}
