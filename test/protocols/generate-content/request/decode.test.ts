import { test } from 'tap';
import { tagSignature } from '../../../../src/conversation/signature.js';
import { plainSearch } from '../../../../src/conversation/web-search.js';
import type { JsonObject } from '../../../../src/wire/json.js';
import { refusalOf } from '../../../support/refusal.js';
import { decode, foreignToken, user } from '../samples.js';

const model = (...parts: JsonObject[]) => ({ role: 'model', parts });
const results = (...responses: JsonObject[]) => ({
  role: 'user',
  parts: responses.map((functionResponse) => ({ functionResponse })),
});

test('settings, under either of their names', async (t) => {
  const expected = {
    from: 'generateContent',
    stream: true,
    system: ['Be brief.', 'Be kind.'],
    maxTokens: 7,
    temperature: 0.5,
    topP: 0.9,
    topK: 3,
    stop: ['a', 'b'],
    candidates: 2,
    seed: 4,
    presencePenalty: 1,
    frequencyPenalty: -1,
    logprobs: 3,
    includeUsage: true,
    reasoning: { effort: 'medium', budget: 8192, show: true, summary: null },
    format: { kind: 'schema', schema: { type: 'object' }, name: null, strict: null },
    toolChoice: { mode: 'allowed', names: ['f', 'g'], required: true },
    tools: [{ name: 'f', description: 'd', parameters: { type: 'object' }, strict: null }],
  };
  const camel = {
    systemInstruction: { role: 'user', parts: [{ text: 'Be brief.' }, { text: '' }, { text: 'Be kind.' }] },
    tools: [
      { functionDeclarations: [{ name: 'f', description: 'd', parametersJsonSchema: { type: 'object' } }] },
    ],
    toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['f', 'g'] } },
    generationConfig: {
      temperature: 0.5,
      topP: 0.9,
      topK: 3,
      candidateCount: 2,
      maxOutputTokens: 7,
      stopSequences: ['a', '', 'b'],
      presencePenalty: 1,
      frequencyPenalty: -1,
      seed: 4,
      responseMimeType: 'application/json',
      responseJsonSchema: { type: 'object' },
      responseLogprobs: true,
      logprobs: 3,
      responseModalities: ['TEXT'],
      mediaResolution: 'MEDIA_RESOLUTION_LOW',
      thinkingConfig: { includeThoughts: true, thinkingBudget: 8192 },
    },
    safetySettings: [{ category: 'c', threshold: 't' }],
    labels: { a: 'b' },
  };
  t.match(decode(camel, true), expected);
  const snake: unknown = JSON.parse(
    JSON.stringify(camel).replaceAll(/"([a-z]+[A-Z]\w*)":/g, (key) =>
      key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    ),
  );
  t.ok(Object.hasOwn(snake as object, 'system_instruction'));
  t.match(decode(snake as JsonObject, true), expected);
});

test('settings that are absent are null', async (t) => {
  t.match(decode({}), {
    stream: false,
    system: [],
    tools: [],
    hostedTools: [],
    toolChoice: null,
    format: null,
    reasoning: null,
    maxTokens: null,
    stop: [],
    candidates: 1,
    logprobs: null,
  });
  t.same(decode({ systemInstruction: 'Be brief.' }).system, ['Be brief.']);
  t.same(decode({ systemInstruction: '' }).system, []);
  t.equal(decode({ generationConfig: { thinkingConfig: {} } }).reasoning, null);
});

test('forms of the answer', async (t) => {
  const formatOf = (generationConfig: JsonObject) => decode({ generationConfig }).format;
  t.equal(formatOf({ responseMimeType: 'text/plain' }), null);
  t.same(formatOf({ responseMimeType: 'application/json' }), { kind: 'object' });
  t.match(formatOf({ responseMimeType: 'application/json', responseSchema: { type: 'OBJECT' } }), {
    kind: 'schema',
    schema: { type: 'object' },
  });
  for (const schema of [
    {},
    { type: ['object', 'null'] },
    { anyOf: [{ type: 'null' }, { $ref: '#/$defs/a' }] },
  ])
    t.match(formatOf({ responseJsonSchema: schema }), { kind: 'schema', schema });
  t.match(formatOf({ responseMimeType: 'text/x.enum', responseSchema: { type: 'STRING', enum: ['a'] } }), {
    schema: { type: 'string', enum: ['a'] },
    bare: true,
  });
  for (const responseMimeType of ['text/x.enum', 'application/xml'])
    t.equal(refusalOf(() => formatOf({ responseMimeType }))?.param, 'generationConfig.responseMimeType');
});

test('the form of the answer in responseFormat, as one object or a list', async (t) => {
  const formatOf = (generationConfig: JsonObject) => decode({ generationConfig }).format;
  const schema = { type: ['object', 'null'] };
  const expected = { kind: 'schema', schema, name: null, strict: null };
  for (const config of [
    { responseFormat: { text: { mimeType: 'APPLICATION_JSON', schema } } },
    { responseFormat: [{ text: { mimeType: 'application/json', schema } }] },
    { response_format: [{}, { text: { mime_type: 'APPLICATION_JSON', schema } }] },
    { responseFormat: { text: { schema } } },
    { responseMimeType: 'application/json', responseFormat: { text: { schema } } },
  ])
    t.match(formatOf(config), expected, JSON.stringify(config));
  t.same(formatOf({ responseFormat: { text: { mimeType: 'APPLICATION_JSON' } } }), { kind: 'object' });
  for (const mimeType of ['TEXT_PLAIN', 'text/plain', 'MIME_TYPE_UNSPECIFIED', ''])
    t.equal(formatOf({ responseFormat: { text: { mimeType } } }), null, mimeType);
  t.equal(formatOf({ responseFormat: [] }), null);
  const older = { type: 'array' };
  t.match(formatOf({ responseJsonSchema: older, responseFormat: { text: { schema } } }), { schema: older });
  t.same(decode({ generationConfig: { responseFormat: { text: { mimeType: 'TEXT_PLAIN' } } } }).leftOut, []);
});

test('a schema may be of any value', async (t) => {
  const formatOf = (generationConfig: JsonObject) => decode({ generationConfig }).format;
  const responseMimeType = 'application/json';
  t.match(formatOf({ responseMimeType, responseSchema: { type: 'ARRAY', items: { type: 'OBJECT' } } }), {
    schema: { type: 'array', items: { type: 'object' } },
  });
  t.match(formatOf({ response_mime_type: responseMimeType, response_schema: { type: 'STRING' } }), {
    schema: { type: 'string' },
  });
  for (const responseJsonSchema of [
    { type: ['string', 'null'] },
    { enum: ['a'] },
    { items: {} },
    { anyOf: [{ type: 'string' }, { type: 'array' }] },
  ])
    t.match(formatOf({ responseMimeType, responseJsonSchema }), { schema: responseJsonSchema });
});

test('reasoning by budget and by level', async (t) => {
  const reasoningOf = (thinkingConfig: JsonObject) =>
    decode({ generationConfig: { thinkingConfig } }).reasoning;
  t.match(reasoningOf({ thinkingBudget: 0 }), { effort: 'none', budget: 0, show: false });
  t.match(reasoningOf({ thinkingBudget: 1024 }), { effort: 'low', budget: 1024 });
  t.equal(reasoningOf({ thinkingBudget: -1 }), null);
  t.match(reasoningOf({ thinkingBudget: -1, includeThoughts: true }), {
    effort: null,
    budget: null,
    show: true,
  });
  t.match(reasoningOf({ thinkingLevel: 'HIGH' }), { effort: 'high', budget: null });
  t.match(reasoningOf({ thinkingLevel: 'low' }), { effort: 'low' });
  t.match(reasoningOf({ thinkingLevel: 'ULTRA' }), { effort: 'ultra' }, 'a word that no one knows yet');
  t.equal(reasoningOf({ thinkingLevel: 'THINKING_LEVEL_UNSPECIFIED' }), null);
  t.equal(
    refusalOf(() => reasoningOf({ thinkingLevel: 'LOTS '.repeat(20) }))?.param,
    'generationConfig.thinkingConfig.thinkingLevel',
  );
});

test('modes are read as choices of tools', async (t) => {
  const choiceOf = (functionCallingConfig: JsonObject) =>
    decode({ toolConfig: { functionCallingConfig } }).toolChoice;
  t.same(choiceOf({ mode: 'AUTO' }), { mode: 'auto' });
  t.same(choiceOf({ mode: 'VALIDATED' }), { mode: 'auto' });
  t.same(choiceOf({ mode: 'NONE' }), { mode: 'none' });
  t.same(choiceOf({ mode: 'ANY' }), { mode: 'required' });
  t.same(choiceOf({ mode: 'ANY', allowedFunctionNames: ['f'] }), { mode: 'named', name: 'f' });
  t.same(choiceOf({ mode: 'VALIDATED', allowedFunctionNames: ['f'] }), {
    mode: 'allowed',
    names: ['f'],
    required: false,
  });
  t.equal(choiceOf({ mode: 'MODE_UNSPECIFIED' }), null);
  t.equal(choiceOf({}), null);
  t.equal(refusalOf(() => choiceOf({ mode: 'SOME' }))?.param, 'toolConfig.functionCallingConfig.mode');
});

test('tools of the vendor are told from functions', async (t) => {
  const { tools, hostedTools, search } = decode({
    tools: [
      {
        functionDeclarations: [
          { name: 'f', parameters: { type: 'OBJECT', properties: { a: { type: 'STRING' } } } },
        ],
      },
      { googleSearch: {}, codeExecution: null },
      { code_execution: {} },
      { functionDeclarations: [{ name: 'g' }] },
    ],
  });
  t.match(tools, [
    { name: 'f', description: null, parameters: { type: 'object', properties: { a: { type: 'string' } } } },
    { name: 'g', parameters: null },
  ]);
  t.same(hostedTools, [{ type: 'code_execution', at: 'tools[2].code_execution' }]);
  t.same(search, plainSearch('googleSearch', 'tools[1].googleSearch'));
});

test('what tools of the vendor left in a conversation is left out, and named', async (t) => {
  const { turns, leftOut } = decode({
    contents: [
      user('a'),
      model(
        { executableCode: { code: '1' }, thoughtSignature: 'c2ln' },
        { code_execution_result: { output: '1' } },
        { text: 'b' },
      ),
      model({ toolCall: { id: '1' } }, { toolResponse: { id: '1' } }),
    ],
  });
  t.match(turns, [{ role: 'user' }, { role: 'assistant', parts: [{ kind: 'reasoning' }, { text: 'b' }] }]);
  t.equal(turns.length, 2);
  t.strictSame(leftOut, ['executableCode', 'code_execution_result', 'toolCall', 'toolResponse']);
});

test('parts of unknown kinds, and what the model itself made, are left out and named', async (t) => {
  const image = { mimeType: 'image/png', data: 'AA==' };
  const { turns, leftOut } = decode({
    contents: [
      { parts: [{ text: 'a' }, { madeUp: 1 }, { partMetadata: { a: 1 } }, { audioTranscription: { b: 1 } }] },
      model({ inlineData: image }),
      { parts: [{ text: 'b' }, { inlineData: image }] },
      model({ text: 'c' }, { inline_data: image }, { fileData: { fileUri: 'https://h/a.png' } }),
    ],
  });
  t.match(turns, [
    { role: 'user', parts: [{ text: 'a' }] },
    { role: 'user', parts: [{ text: 'b' }, { kind: 'image' }] },
    { role: 'assistant', parts: [{ text: 'c' }] },
  ]);
  t.strictSame(
    turns.map((turn) => turn.role === 'system' || turn.parts.length),
    [1, 2, 1],
  );
  t.strictSame([...leftOut].sort(), [
    'audioTranscription',
    'fileData',
    'inlineData',
    'inline_data',
    'madeUp',
    'partMetadata',
  ]);
});

test('what no other protocol can say is refused by its path', async (t) => {
  const bodies: [JsonObject, string][] = [
    [{ cachedContent: 'cachedContents/1' }, 'cachedContent'],
    [{ cached_content: 'cachedContents/1' }, 'cached_content'],
    [{ generationConfig: { responseModalities: ['TEXT', 'IMAGE'] } }, 'generationConfig.responseModalities'],
    [{ generation_config: { response_modalities: ['AUDIO'] } }, 'generation_config.response_modalities'],
    [{ generationConfig: { imageConfig: { aspectRatio: '1:1' } } }, 'generationConfig.imageConfig'],
    [{ generationConfig: { speechConfig: {} } }, 'generationConfig.speechConfig'],
    [
      { generationConfig: { responseFormat: { audio: { sampleRate: 24_000 } } } },
      'generationConfig.responseFormat.audio',
    ],
    [
      { generation_config: { response_format: [{ text: {} }, { image: {} }] } },
      'generation_config.response_format[1].image',
    ],
    [{ generationConfig: { responseFormat: { video: {} } } }, 'generationConfig.responseFormat.video'],
    [
      { generationConfig: { responseFormat: { text: { mimeType: 'application/xml' } } } },
      'generationConfig.responseFormat.text.mimeType',
    ],
    [{ systemInstruction: { parts: [{ inlineData: { data: '' } }] } }, 'systemInstruction.parts[0]'],
    [{ contents: [{ role: 'system', parts: [] }] }, 'contents[0]'],
    [{ contents: [{ parts: [{ functionCall: { name: 'f' } }] }] }, 'contents[0].parts[0].functionCall'],
    [
      { contents: [{ parts: [{ fileData: { fileUri: 'gs://b/a.png' } }] }] },
      'contents[0].parts[0].fileData.fileUri',
    ],
    [
      {
        contents: [
          {
            parts: [{ file_data: { file_uri: 'https://generativelanguage.googleapis.com/v1beta/files/a' } }],
          },
        ],
      },
      'contents[0].parts[0].file_data.file_uri',
    ],
    [
      { contents: [{ parts: [{ inline_data: { mime_type: '', data: 'AA==' } }] }] },
      'contents[0].parts[0].inline_data.mime_type',
    ],
    [
      { contents: [{ parts: [{ inlineData: { mimeType: '', data: 'AA==' } }] }] },
      'contents[0].parts[0].inlineData.mimeType',
    ],
  ];
  for (const [body, param] of bodies) {
    const refusal = refusalOf(() => decode(body));
    t.equal(refusal?.param, param, JSON.stringify(body));
    t.equal(refusal?.status, 400);
  }
});

test('odd shapes are refused, and never crash', async (t) => {
  for (const contents of [
    null,
    5,
    [null],
    ['hi'],
    [{ parts: 'hi' }],
    [{ parts: [null] }],
    [{ parts: [{}] }],
    [{ role: 5, parts: [] }],
    [{ parts: [{ inlineData: { data: 'AA==' } }] }],
    [{ parts: [{ inlineData: { mimeType: 'image/png' } }] }],
    [{ parts: [{ fileData: {} }] }],
    [model({ functionCall: {} })],
    [model({ functionResponse: { name: 'f' } })],
    [{ parts: [{ functionCall: { name: 'f' } }] }],
    [results({ response: {} })],
  ])
    t.equal(refusalOf(() => decode({ contents }))?.status, 400, JSON.stringify(contents));
  for (const body of [
    { tools: 5 },
    { tools: [null] },
    { tools: [{ functionDeclarations: [{}] }] },
    { tools: [{ functionDeclarations: ['f'] }] },
    { toolConfig: 5 },
    { generationConfig: 5 },
    { systemInstruction: 5 },
  ])
    t.equal(refusalOf(() => decode(body))?.status, 400, JSON.stringify(body));
  t.match(
    decode({ contents: [results({ name: 'f', response: {} })] }).turns,
    [{ parts: [{ kind: 'toolResult', callId: '' }] }],
    'a result of no call has no id',
  );
});

test('contents of the model in a row are one turn, whose texts and thoughts go on', async (t) => {
  const { turns } = decode({
    contents: [
      user('Hi'),
      model({ text: 'I th', thought: true }),
      model({ text: 'ink', thought: true }),
      model({ text: 'Let me', thoughtSignature: 'U2ln' }),
      model({ text: '' }),
      model({ text: ' see.' }, { text: 'Two' }),
      model({ functionCall: { name: 'f', args: {} } }),
      model({ text: 'parts' }),
    ],
  });
  t.match(turns, [
    { role: 'user' },
    {
      role: 'assistant',
      parts: [
        { kind: 'reasoning', text: 'I think' },
        { kind: 'text', text: 'Let me see.' },
        { kind: 'text', text: 'Two' },
        { kind: 'toolCall', name: 'f' },
        { kind: 'text', text: 'parts' },
      ],
    },
  ]);
  t.equal(turns.length, 2);
});

test('a signature of another vendor that a client copies to further parts of its turn is read once', async (t) => {
  const call = { functionCall: { name: 'f', args: {} }, thoughtSignature: foreignToken };
  const otherToken = tagSignature({ protocol: 'messages', model: 'c', value: 'y', redacted: false });
  const other = { ...call, thoughtSignature: otherToken };
  const reasoning = (signature: string) => ({ kind: 'reasoning', text: '', signature });
  const { turns } = decode({
    contents: [
      model({ text: 'so', thoughtSignature: foreignToken }, call, call, other),
      user('Hi'),
      model(call),
    ],
  });
  t.match(turns, [
    {
      parts: [
        reasoning(foreignToken),
        { kind: 'text', text: 'so' },
        { kind: 'toolCall' },
        { kind: 'toolCall' },
        reasoning(otherToken),
        { kind: 'toolCall' },
      ],
    },
    { role: 'user' },
    { parts: [reasoning(foreignToken), { kind: 'toolCall' }] },
  ]);
  const thought = { text: 'hm', thought: true, thoughtSignature: foreignToken };
  t.match(decode({ contents: [model(thought, call)] }).turns, [
    { parts: [{ kind: 'reasoning', text: 'hm', signature: foreignToken }, { kind: 'toolCall' }] },
  ]);
});

test('a tool may have any number of members', async (t) => {
  const members = Array.from({ length: 200_000 }, (_, index) => [`a${index}`, 1]);
  const tool = { googleSearch: {}, ...(Object.fromEntries(members) as JsonObject) };
  const { search } = decode({ tools: [tool] });
  t.ok(search, 'what is read of it is read');
});
