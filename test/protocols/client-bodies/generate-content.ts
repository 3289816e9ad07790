import { fc } from '../../support/seed.js';
import {
  anyText,
  type Exchange,
  exchanges,
  flag,
  maybe,
  maybeNull,
  objectOf,
  pdf,
  png,
  schema,
  share,
  someText,
  toolName,
} from './parts.js';

/* Bodies of `:generateContent` (types of `@google/genai` 3, and null for any member as JSON for protocol buffers has it). */

const textPart = objectOf({ text: anyText, thought: maybeNull(fc.constant(false)) });
const mediaPart = fc.oneof(
  png.map((data) => ({ inlineData: { mimeType: 'image/png', data } })),
  pdf.map((data) => ({ inlineData: { mimeType: 'application/pdf', data, displayName: 'a.pdf' } })),
  fc.constant({ fileData: { mimeType: 'image/png', fileUri: 'https://example.com/a.png' } }),
);
const userParts = fc
  .tuple(
    fc.array(fc.oneof({ weight: 3, arbitrary: textPart }, mediaPart), { maxLength: 3 }),
    someText.map((text) => ({ text })),
  )
  .map((parts) => parts.flat());
const role = maybe(fc.constant('user'));
const userContent = objectOf({ role, parts: userParts });

const thoughtSignature = maybe(fc.constantFrom('c2ln', 'skip_thought_signature_validator'));
const thought = objectOf({ text: anyText, thought: fc.constant(true), thoughtSignature });
const served = fc.constantFrom<object>(
  { executableCode: { language: 'PYTHON', code: '1' } },
  { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1' } },
  {
    toolCall: { id: '1', toolType: 'GOOGLE_SEARCH_WEB', args: { queries: ['q'] } },
    thoughtSignature: 'c2ln',
  },
  { toolResponse: { id: '1', toolType: 'GOOGLE_SEARCH_WEB', response: {} } },
  { text: '' },
);
const modelContent = objectOf({
  role: fc.constant('model'),
  parts: fc
    .tuple(
      fc.array(fc.oneof(thought, served), { maxLength: 2 }),
      objectOf({ text: someText, thoughtSignature }),
    )
    .map((parts) => parts.flat()),
});

function calling({ calls }: Exchange): fc.Arbitrary<object[]> {
  return fc.boolean().chain((hasIds) => {
    const called = calls.map(({ id, name, input }) =>
      objectOf({
        functionCall: fc.oneof(
          fc.constant({ ...(hasIds ? { id } : {}), name, args: input }),
          fc.constant({ ...(hasIds ? { id } : {}), name }),
        ),
        thoughtSignature,
      }),
    );
    const results = calls.map(({ id, name }) =>
      objectOf({
        functionResponse: objectOf({
          id: fc.constant(hasIds ? id : undefined),
          name: fc.constant(name),
          response: fc.constantFrom<object>({}, { result: 'ok' }, { output: [1, null] }, { error: 'no' }),
          parts: maybe(png.map((data) => [{ inlineData: { mimeType: 'image/png', data } }])),
        }),
      }),
    );
    return fc
      .tuple(
        fc.array(thought, { maxLength: 1 }),
        fc.array(textPart, { maxLength: 1 }),
        fc.tuple(...called),
        fc.tuple(...results),
        fc.constantFrom('user', 'function'),
      )
      .map(([thoughts, texts, uses, answers, resultRole]) => [
        { role: 'model', parts: [...thoughts, ...texts, ...uses] },
        { role: resultRole, parts: answers },
      ]);
  });
}

const contents: fc.Arbitrary<object[]> = exchanges.chain((all) =>
  fc
    .tuple(
      ...all.map((exchange) =>
        fc
          .tuple(userContent, exchange.calls.length > 0 ? calling(exchange) : modelContent)
          .map((parts) => parts.flat()),
      ),
      userContent.map((last) => [last]),
    )
    .map((parts) => parts.flat()),
);

/** Google's own form of a schema, whose types are in capitals. */
const ownSchema = fc.constantFrom<object>(
  { type: 'OBJECT' },
  { type: 'OBJECT', properties: { a: { type: 'STRING', nullable: true, format: 'enum', enum: ['x'] } } },
  {
    type: 'OBJECT',
    properties: {
      list: { type: 'ARRAY', items: { type: 'INTEGER', format: 'int32', minimum: 0 }, minItems: '1' },
      any: { anyOf: [{ type: 'NUMBER' }, { type: 'BOOLEAN' }] },
    },
    required: ['list'],
    propertyOrdering: ['list', 'any'],
  },
);
const declaration = fc
  .tuple(toolName, fc.constantFrom('parameters', 'parametersJsonSchema', 'none'))
  .chain(([name, form]) =>
    objectOf({
      name: fc.constant(name),
      description: maybe(anyText),
      parameters: form === 'parameters' ? ownSchema : fc.constant(undefined),
      parametersJsonSchema: form === 'parametersJsonSchema' ? schema : fc.constant(undefined),
      response: maybe(ownSchema),
      behavior: maybe(fc.constant('BLOCKING')),
    }),
  );
const tools = fc
  .uniqueArray(declaration, { minLength: 1, maxLength: 3, selector: ({ name }) => name })
  .chain((functionDeclarations) =>
    objectOf({
      tools: fc.constantFrom<unknown>(
        [{ functionDeclarations }],
        [{ functionDeclarations }, { codeExecution: {} }, { urlContext: {} }],
        [...functionDeclarations.map((each) => ({ functionDeclarations: [each] })), {}],
      ),
      toolConfig: maybeNull(
        objectOf({
          functionCallingConfig: maybeNull(
            fc.constantFrom<object>(
              {},
              { mode: 'AUTO' },
              { mode: 'NONE' },
              { mode: 'VALIDATED' },
              { mode: 'MODE_UNSPECIFIED' },
              { mode: 'ANY', allowedFunctionNames: null },
              { mode: 'ANY', allowedFunctionNames: [functionDeclarations[0]?.name] },
            ),
          ),
          retrievalConfig: maybe(fc.constant({ languageCode: 'en' })),
        }),
      ),
    }),
  );
const otherTools = fc
  .constantFrom<object>(
    { googleSearch: {} },
    { googleSearchRetrieval: { dynamicRetrievalConfig: { mode: 'MODE_DYNAMIC' } } },
    { codeExecution: {} },
    { googleMaps: {} },
    { fileSearch: { fileSearchStoreNames: ['x'] } },
  )
  .map((each) => ({ tools: [each] }));

const format = fc.oneof(
  fc.constantFrom<object>({}, { responseMimeType: 'text/plain' }, { responseMimeType: 'application/json' }),
  ownSchema.map((responseSchema) => ({ responseMimeType: 'application/json', responseSchema })),
  schema.map((responseJsonSchema) => ({ responseMimeType: 'application/json', responseJsonSchema })),
  fc.constant({ responseMimeType: 'text/x.enum', responseSchema: { type: 'STRING', enum: ['a', 'b'] } }),
);
const generationConfig = fc
  .tuple(
    format,
    objectOf({
      candidateCount: maybeNull(fc.constant(1)),
      frequencyPenalty: maybeNull(share),
      presencePenalty: maybeNull(share),
      logprobs: maybe(fc.constant(null)),
      responseLogprobs: maybeNull(fc.constant(false)),
      maxOutputTokens: maybeNull(fc.integer({ min: 1, max: 64_000 })),
      mediaResolution: maybeNull(fc.constant('MEDIA_RESOLUTION_LOW')),
      responseModalities: maybeNull(fc.constantFrom<string[]>([], ['TEXT'])),
      seed: maybeNull(fc.integer({ min: 0, max: 1000 })),
      speechConfig: maybe(fc.constant(null)),
      stopSequences: maybeNull(fc.array(someText, { maxLength: 5 })),
      temperature: maybeNull(fc.constantFrom(0, 1, 2)),
      topK: maybeNull(fc.constantFrom(1, 40)),
      topP: maybeNull(share),
      thinkingConfig: maybeNull(
        fc.constantFrom<object>(
          {},
          { includeThoughts: true },
          { thinkingBudget: 0 },
          { thinkingBudget: -1, includeThoughts: null },
          { thinkingBudget: 2048, includeThoughts: true },
          { thinkingLevel: 'LOW' },
          { thinkingLevel: 'THINKING_LEVEL_UNSPECIFIED' },
        ),
      ),
      audioTimestamp: maybe(flag),
      enableEnhancedCivicAnswers: maybe(flag),
      unheardOf: maybeNull(fc.constant({ a: [1] })),
    }),
  )
  .map((parts) => Object.assign({}, ...parts) as object);
const settings = objectOf({
  systemInstruction: maybeNull(
    fc.oneof(
      objectOf({
        role: maybe(fc.constantFrom('user', 'system')),
        parts: fc.array(textPart, { maxLength: 2 }),
      }),
      anyText.map((text) => ({ parts: { text } })),
    ),
  ),
  safetySettings: maybeNull(
    fc.constantFrom<unknown>([], [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }]),
  ),
  generationConfig: maybeNull(generationConfig),
  cachedContent: maybe(fc.constantFrom(null, '')),
  labels: maybe(fc.constant({ a: 'b' })),
  serviceTier: maybeNull(fc.constant('standard')),
  store: maybeNull(flag),
  unheardOf: maybeNull(fc.constant({ a: [1] })),
});

/** The other names of members, which clients of protocol buffers write. Arguments and schemas keep theirs. */
function snakeCased(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snakeCased);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [
      name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      /schema|args|parameters|response$/i.test(name) ? each : snakeCased(each),
    ]),
  );
}

export const generateContentBodies: fc.Arbitrary<Record<string, unknown>> = fc
  .tuple(contents, fc.oneof(fc.constant({}), tools, otherTools), settings)
  .map(([list, declared, set]) => ({ contents: list, ...declared, ...set }))
  .chain((body) => fc.constantFrom(body, snakeCased(body) as Record<string, unknown>));
