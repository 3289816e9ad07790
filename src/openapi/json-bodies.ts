import { Type } from 'typebox';
import { speechRequest, speechRequestType } from '../protocols/audio/schema.js';
import { chatRequest, chatRequestType } from '../protocols/chat/request/schema.js';
import { completionsRequest, completionsRequestType } from '../protocols/completions/schema.js';
import {
  embeddingsRequest,
  embeddingsRequestType,
  engineEmbeddingsRequest,
  engineEmbeddingsRequestType,
} from '../protocols/embeddings/schema.js';
import {
  generateContentRequest,
  generateContentRequestType,
  countTokensRequest as googleCountTokensRequest,
} from '../protocols/generate-content/request/schema.js';
import { editsRequest, formFieldsType, generationsRequest, mostImages } from '../protocols/images/schema.js';
import {
  countTokensRequest,
  countTokensRequestType,
  messagesRequest,
  messagesRequestType,
} from '../protocols/messages/request/schema.js';
import { moderationsRequest, moderationsRequestType } from '../protocols/moderations/schema.js';
import { rerankRequest, rerankRequestType } from '../protocols/rerank/schema.js';
import {
  compactRequest,
  compactRequestType,
  responsesRequest,
  responsesRequestType,
} from '../protocols/responses/request/schema.js';
import type { CompiledSchema } from '../schema/compile.js';
import { flag, name, nullable, text } from '../schema/members.js';
import type { NamedSchema } from './schemas.js';

/** A request for speech, with the bound of its text, which is checked apart from the schema. */
const speechType = Type.Object({
  ...speechRequestType.properties,
  input: Type.String({ minLength: 1, maxLength: 4096 }),
});

const googleCountTokensType = Type.Union([
  Type.Object({ generateContentRequest: generateContentRequestType }),
  Type.Object({ generate_content_request: generateContentRequestType }),
  generateContentRequestType,
]);

const { model: _model, prompt: _prompt, ...imageSettings } = formFieldsType.properties;
const absent = Type.Optional(Type.Null());
const reference = Type.Object({ image_url: text, file_id: text });

const imageMessage = Type.Object({
  role: text,
  content: nullable(Type.Array(Type.Object({ text, image: text }))),
});

/** The form with messages that both image endpoints take beside the one with a prompt. */
const imageInput: NamedSchema = {
  name: 'ImageInputRequest',
  schema: Type.Object({
    model: name,
    prompt: absent,
    input: Type.Object({ messages: Type.Array(imageMessage, { minItems: 1 }) }),
    parameters: nullable(
      Type.Object({
        negative_prompt: text,
        prompt_extend: flag,
        watermark: flag,
        size: text,
        n: imageSettings.n,
      }),
    ),
    ...imageSettings,
  }),
};

const promptMembers = { model: name, prompt: name, input: absent, ...imageSettings };
const generationPrompt = Type.Object(promptMembers);
const editPrompt = Type.Object({
  ...promptMembers,
  images: nullable(Type.Array(reference, { minItems: 1, maxItems: mostImages })),
  mask: nullable(reference),
});

const generation = Type.Union([generationPrompt, imageInput.schema as typeof generationPrompt]);
const edit = Type.Union([editPrompt, imageInput.schema as typeof generationPrompt]);

/** What is said of the bodies of calls, by the check of each. */
export const jsonBodies: ReadonlyMap<CompiledSchema, NamedSchema> = new Map<CompiledSchema, NamedSchema>([
  [chatRequest, { name: 'ChatRequest', schema: chatRequestType }],
  [responsesRequest, { name: 'ResponsesRequest', schema: responsesRequestType }],
  [compactRequest, { name: 'ResponsesCompactRequest', schema: compactRequestType }],
  [messagesRequest, { name: 'MessagesRequest', schema: messagesRequestType }],
  [countTokensRequest, { name: 'MessagesCountTokensRequest', schema: countTokensRequestType }],
  [generateContentRequest, { name: 'GenerateContentRequest', schema: generateContentRequestType }],
  [googleCountTokensRequest, { name: 'GenerateContentCountTokensRequest', schema: googleCountTokensType }],
  [completionsRequest, { name: 'CompletionsRequest', schema: completionsRequestType }],
  [embeddingsRequest, { name: 'EmbeddingsRequest', schema: embeddingsRequestType }],
  [engineEmbeddingsRequest, { name: 'EngineEmbeddingsRequest', schema: engineEmbeddingsRequestType }],
  [rerankRequest, { name: 'RerankRequest', schema: rerankRequestType }],
  [moderationsRequest, { name: 'ModerationsRequest', schema: moderationsRequestType }],
  [speechRequest, { name: 'SpeechRequest', schema: speechType }],
  [generationsRequest, { name: 'ImageGenerationRequest', schema: generation }],
  [editsRequest, { name: 'ImageEditRequest', schema: edit }],
]);

/** Named schemas that those are made of. */
export const bodyParts: readonly NamedSchema[] = [imageInput];
