import { type TSchema, Type } from 'typebox';
import { compileSchema, type Guarded, type MixedBody } from '../../../schema/compile.js';
import { bodies, flag, given, name, nullable, record, text } from '../../../schema/members.js';
import { snakeCase } from '../spelling.js';

/** An object whose members may have either of their names. Required members have a name of one word. */
const spelled = (members: Readonly<Record<string, TSchema>>) =>
  Type.Object({
    ...members,
    ...Object.fromEntries(Object.entries(members).map(([member, schema]) => [snakeCase(member), schema])),
  });

/** The vendor also takes a single value without brackets, and its own examples omit them. */
const repeated = (one: TSchema, options = {}) => Type.Union([Type.Array(one, options), one]);

const integer = nullable(Type.Integer());
const number = nullable(Type.Number());
const texts = nullable(Type.Array(Type.String()));

const inlineData = nullable(spelled({ data: Type.String(), mimeType: text }));
const fileData = nullable(spelled({ fileUri: text, mimeType: text }));
const part = spelled({
  text,
  thought: flag,
  thoughtSignature: text,
  inlineData,
  fileData,
  functionCall: nullable(spelled({ name, args: record, id: text })),
  functionResponse: nullable(
    spelled({
      name,
      response: record,
      id: text,
      parts: nullable(repeated(spelled({ inlineData, fileData }))),
    }),
  ),
  executableCode: record,
  codeExecutionResult: record,
});
const content = Type.Object({ role: text, parts: repeated(part) });
const systemInstruction = nullable(
  Type.Union([Type.String(), Type.Object({ role: text, parts: nullable(repeated(part)) })]),
);

// What is in these is read as far as it has the right type.
const responseFormat = Type.Object({ text: record, image: record, audio: record, video: record });

const generationConfig = nullable(
  spelled({
    temperature: nullable(Type.Number({ minimum: 0, maximum: 2 })),
    topP: nullable(Type.Number({ minimum: 0, maximum: 1 })),
    topK: nullable(Type.Number({ minimum: 0 })),
    candidateCount: nullable(Type.Integer({ minimum: 1 })),
    maxOutputTokens: nullable(Type.Integer({ minimum: 1 })),
    stopSequences: texts,
    presencePenalty: number,
    frequencyPenalty: number,
    seed: integer,
    responseMimeType: text,
    responseSchema: record,
    responseJsonSchema: record,
    // The name in the vendor's reference, of which the one above is an alias.
    _responseJsonSchema: record,
    responseLogprobs: flag,
    logprobs: nullable(Type.Integer({ minimum: 0 })),
    responseModalities: texts,
    responseFormat: nullable(repeated(responseFormat)),
    imageConfig: nullable(spelled({ aspectRatio: text, imageSize: text })),
    speechConfig: record,
    mediaResolution: text,
    thinkingConfig: nullable(
      spelled({ includeThoughts: flag, thinkingBudget: integer, thinkingLevel: text }),
    ),
  }),
);

const functionDeclaration = spelled({
  name,
  description: text,
  parameters: record,
  parametersJsonSchema: record,
});
const settings = {
  systemInstruction,
  tools: nullable(repeated(spelled({ functionDeclarations: nullable(repeated(functionDeclaration)) }))),
  toolConfig: nullable(
    spelled({ functionCallingConfig: nullable(spelled({ mode: text, allowedFunctionNames: texts })) }),
  ),
  safetySettings: nullable(repeated(Type.Object({ category: text, threshold: text }))),
  cachedContent: text,
  labels: record,
  generationConfig,
};

/** Body of `POST /v1beta/models/{model}:generateContent` and of its streaming variant. */
export const generateContentRequestType = spelled({
  // The model of the path, if present.
  model: text,
  contents: repeated(content, { minItems: 1 }),
  ...settings,
});

/** Bodies of other text endpoints, recognised by the member that holds their input. */
const generateContentMixedBody: MixedBody = {
  own: 'contents',
  foreign: [bodies.chatOrMessages, bodies.responses, bodies.completions],
};

const withConfig: Guarded = { within: { generationConfig: {} } };

/** Check of a generateContent request body that is translated. */
export const generateContentRequest = compileSchema(
  generateContentRequestType,
  generateContentMixedBody,
  withConfig,
);

const withWrapped: Guarded = {
  within: {
    ...withConfig.within,
    generateContentRequest: { ...generateContentRequest.guard.spec, notes: ['model'] },
  },
};

/** The same for `POST /v1beta/models/{model}:countTokens`: only contents, or a whole request in a member. */
export const countTokensRequest = compileSchema(
  Type.Union([
    Type.Object({ generate_content_request: generateContentRequestType }),
    Type.Object({ generateContentRequest: generateContentRequestType }),
    generateContentRequestType,
  ]),
  generateContentMixedBody,
  withWrapped,
);

/** Readers of protocol buffers also take an integer as a string. */
const count = nullable(Type.Union([Type.Integer(), Type.String()]));

const passedType = Type.Object({
  model: text,
  contents: given,
  ...spelled({ generationConfig: nullable(spelled({ candidateCount: count, maxOutputTokens: count })) })
    .properties,
});

/** Check of every generateContent request body, and the only one for a body that is passed on untouched. */
export const passedGenerateContentRequest = compileSchema(
  passedType,
  generateContentMixedBody,
  generateContentRequest.guard.spec,
);

/** The same for `POST /v1beta/models/{model}:countTokens`. */
export const passedCountTokensRequest = compileSchema(
  Type.Union([
    Type.Object({ generate_content_request: passedType }),
    Type.Object({ generateContentRequest: passedType }),
    passedType,
  ]),
  generateContentMixedBody,
  countTokensRequest.guard.spec,
);
