import { test } from 'tap';
import {
  countTokensRequest,
  generateContentRequest,
} from '../../../../src/protocols/generate-content/request/schema.js';
import { isValid, refuses } from '../../verdicts.js';

const hi = { role: 'user', parts: [{ text: 'hi' }] };
const contents = [hi];

test('bodies that SDKs and the vendor’s examples send are taken', async (t) => {
  isValid(t, generateContentRequest, { contents });
  isValid(t, generateContentRequest, { contents: [{ parts: [{ text: 'no role' }] }] });
  isValid(t, generateContentRequest, {
    contents,
    generationConfig: { responseModalities: ['TEXT', 'IMAGE'] },
  });
  isValid(t, generateContentRequest, {
    contents: [
      hi,
      {
        role: 'model',
        parts: [
          { text: 'hm', thought: true },
          { text: '', thoughtSignature: 'c2ln' },
        ],
      },
      { role: 'model', parts: [{ functionCall: { name: 'f', args: { a: [1] } } }] },
      { role: 'function', parts: [{ functionResponse: { name: 'f', response: { result: '42' }, id: 'c' } }] },
      { role: 'user', parts: [{ inlineData: { mimeType: 'image/png', data: 'A'.repeat(5000) } }] },
      { role: 'user', parts: [{ fileData: { fileUri: 'https://a/b.png' } }, { madeUp: true }] },
    ],
    systemInstruction: { parts: [{ text: 'Be brief.' }] },
    tools: [
      { functionDeclarations: [{ name: 'f', description: 'd', parameters: { type: 'OBJECT' } }] },
      { googleSearch: {} },
    ],
    toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['f'] } },
    safetySettings: [{ category: 'c', threshold: 't' }],
    generationConfig: {
      temperature: 2,
      topP: 0.5,
      topK: 40,
      candidateCount: 2,
      maxOutputTokens: 100,
      stopSequences: ['a'],
      seed: -1,
      responseMimeType: 'application/json',
      responseSchema: { type: 'STRING' },
      imageConfig: { aspectRatio: '16:9', imageSize: '2K' },
      thinkingConfig: { thinkingBudget: -1, includeThoughts: true },
      madeUp: 1,
    },
    madeUp: {},
  });
  isValid(t, generateContentRequest, {
    contents: [{ parts: { text: 'a part without brackets' } }],
    system_instruction: { parts: { text: 'Be brief.' } },
    generation_config: { max_output_tokens: 5, thinking_config: { thinking_level: 'LOW' } },
    tools: [{ function_declarations: [{ name: 'f', parameters_json_schema: {} }] }],
  });
  isValid(t, generateContentRequest, {
    contents: { parts: { text: 'neither' } },
    tools: { functionDeclarations: { name: 'f' } },
    safetySettings: { category: 'c', threshold: 't' },
  });
  isValid(t, generateContentRequest, { contents, systemInstruction: 'Be brief.', tools: null });
});

test('what is wrong is named, under the name that the client used', async (t) => {
  refuses(t, generateContentRequest, [{}, 'contents', 'Missing']);
  refuses(t, generateContentRequest, [{ contents: [] }, 'contents', 'Invalid value']);
  refuses(t, generateContentRequest, [{ contents: 'hi' }, 'contents', 'expected an array or an object']);
  refuses(t, generateContentRequest, [{ contents: [{ role: 'user' }] }, 'contents[0].parts', 'Missing']);
  refuses(t, generateContentRequest, [
    { contents: [{ parts: [{ text: 5 }] }] },
    'contents[0].parts[0].text',
    'expected a string',
  ]);
  refuses(t, generateContentRequest, [
    { contents, generationConfig: { temperature: 2.5 } },
    'generationConfig.temperature',
    'Invalid value',
  ]);
  refuses(t, generateContentRequest, [
    { contents, generation_config: { candidate_count: 0 } },
    'generation_config.candidate_count',
    'Invalid value',
  ]);
  refuses(t, generateContentRequest, [
    { contents, generationConfig: { imageConfig: { aspectRatio: 1.5 } } },
    'generationConfig.imageConfig.aspectRatio',
    'expected a string',
  ]);
  refuses(t, generateContentRequest, [
    { contents, tools: [{ functionDeclarations: [{}] }] },
    'tools[0].functionDeclarations[0].name',
    'Missing',
  ]);
});

test('bodies of other endpoints are sent there', async (t) => {
  refuses(t, generateContentRequest, [{ messages: [] }, 'messages', 'POST /v1/messages']);
  refuses(t, generateContentRequest, [{ model: 'm', input: 'hi' }, 'input', 'POST /v1/responses']);
  refuses(t, generateContentRequest, [{ prompt: 'hi' }, 'prompt', 'POST /v1/completions']);
  isValid(t, generateContentRequest, { contents, messages: [], input: '' });
});

test('tokens are counted of contents, or of a whole request', async (t) => {
  t.ok(countTokensRequest.check({ contents }));
  t.ok(countTokensRequest.check({ contents: hi }));
  t.ok(countTokensRequest.check({ generateContentRequest: { model: 'models/m', contents } }));
  t.ok(countTokensRequest.check({ generate_content_request: { contents } }));
  refuses(t, countTokensRequest, [{}, 'contents', 'Missing']);
  refuses(t, countTokensRequest, [{ contents: [] }, 'contents', 'Invalid value']);
  refuses(t, countTokensRequest, [
    { generateContentRequest: { contents: [] } },
    'generateContentRequest.contents',
    'Invalid value',
  ]);
});
