import { test } from 'tap';
import type { Simulator } from '../../../src/simulator/server.js';
import { simulate } from '../../support/simulator.js';
import { type Posted, post } from '../post.js';

const weather = {
  name: 'get_weather',
  parameters: { type: 'OBJECT', properties: { city: { type: 'STRING' } }, required: ['city'] },
};
const clock = { name: 'currentTime', parametersJsonSchema: { type: 'object' } };
const tools = [{ functionDeclarations: [weather, clock] }, { googleSearch: {} }];
const thoughts = { thinkingConfig: { includeThoughts: true } };

function ask(text: string, more: object = {}): object {
  return { contents: [{ role: 'user', parts: [{ text }] }], ...more };
}

function send(simulator: Simulator, body: object | string, method = 'generateContent'): Promise<Posted> {
  return post(simulator, `/models/sim-text:${method}`, body);
}

function stream(simulator: Simulator, body: object): Promise<Posted> {
  return send(simulator, body, 'streamGenerateContent?alt=sse');
}

interface Part {
  readonly text?: string;
  readonly thought?: boolean;
  readonly thoughtSignature?: string;
  readonly functionCall?: { readonly name: string; readonly args?: object };
}

async function answered(simulator: Simulator, body: object) {
  const heard = await send(simulator, body);
  return { ...JSON.parse(heard.text), status: heard.status };
}

async function parts(simulator: Simulator, body: object): Promise<Part[]> {
  return (await answered(simulator, body)).candidates[0].content.parts;
}

test('an answer has the shape of generateContent, names itself simulated and contains the user text', async (t) => {
  const simulator = await simulate(t);
  const body = ask('Hello there', { system_instruction: { parts: [{ text: 'four' }] } });
  t.match(await answered(simulator, body), {
    status: 200,
    candidates: [
      {
        content: { role: 'model', parts: [{ text: 'Simulated answer to: Hello there' }] },
        finishReason: 'STOP',
        index: 0,
      },
    ],
    usageMetadata: {
      promptTokenCount: 4,
      candidatesTokenCount: 8,
      totalTokenCount: 12,
      promptTokensDetails: [{ modality: 'TEXT', tokenCount: 4 }],
    },
    modelVersion: 'sim-text',
    responseId: /^[0-9a-f]{24}$/,
  });
});

test('the paths of every version reach the model, also with a model name that is encoded', async (t) => {
  const simulator = await simulate(t);
  const base = simulator.url.replace(/v1$/, '');
  for (const path of ['v1/models/sim-text', 'v1beta/models/sim-text', 'v1alpha/models/sim%2Dtext']) {
    const heard = await fetch(`${base}${path}:generateContent?key=any`, {
      method: 'POST',
      body: JSON.stringify(ask('a')),
    });
    t.equal(heard.status, 200, path);
  }
});

test('a stream brings the answer in parts, the last object says how it ended', async (t) => {
  const simulator = await simulate(t);
  const body = ask('Hello there', { generationConfig: thoughts });
  const heard = await stream(simulator, body);
  t.equal(heard.headers.get('content-type'), 'text/event-stream; charset=utf-8');
  t.notMatch(heard.text, /^event:/m);
  const chunks = heard.events.map((event) => JSON.parse(event));
  const all: Part[] = chunks.flatMap((chunk) => chunk.candidates[0].content.parts);
  const whole = await answered(simulator, body);
  const joined = (list: Part[], thought: boolean): string =>
    list
      .filter((part) => (part.thought ?? false) === thought)
      .map(({ text }) => text)
      .join('');
  const wholeParts: Part[] = whole.candidates[0].content.parts;
  t.equal(joined(all, true), joined(wholeParts, true));
  t.equal(joined(all, false), 'Simulated answer to: Hello there');
  t.match(all.at(-1), { text: '', thoughtSignature: wholeParts.at(-1)?.thoughtSignature });
  t.strictSame(
    chunks.map((chunk) => chunk.candidates[0].finishReason).filter((reason) => reason !== undefined),
    ['STOP'],
  );
  t.strictSame(chunks.at(-1).usageMetadata, whole.usageMetadata);
  t.ok(whole.usageMetadata.thoughtsTokenCount > 0);
  t.notOk('candidatesTokenCount' in chunks[0].usageMetadata);
});

test('without alt=sse a stream is one JSON array, and so is its refusal', async (t) => {
  const simulator = await simulate(t);
  const heard = await send(simulator, ask('Hello there'), 'streamGenerateContent');
  t.equal(heard.headers.get('content-type'), 'application/json');
  const list = JSON.parse(heard.text);
  t.ok(list.length > 2);
  t.equal(list.at(-1).candidates[0].finishReason, 'STOP');
  const refused = await send(simulator, {}, 'streamGenerateContent');
  t.match([refused.status, JSON.parse(refused.text)], [400, [{ error: { status: 'INVALID_ARGUMENT' } }]]);
  for (const after of [0, 2]) {
    const failed = await send(
      simulator,
      ask(`[[fault:error-event after=${after}]] a`),
      'streamGenerateContent',
    );
    t.match(JSON.parse(failed.text).slice(after), [{ error: { code: 500, status: 'INTERNAL' } }]);
  }
});

test('the same request has the same answer byte for byte', async (t) => {
  const simulator = await simulate(t);
  const body = ask('weather', { tools, generationConfig: thoughts });
  t.equal((await stream(simulator, body)).text, (await stream(simulator, body)).text);
});

test('several candidates differ, also when they are streamed in turns', async (t) => {
  const simulator = await simulate(t);
  const body = ask('Hi', { generationConfig: { candidateCount: 2 } });
  const { candidates } = await answered(simulator, body);
  const texts = candidates.map((one: { content: { parts: Part[] } }) => one.content.parts[0]?.text);
  t.strictSame(texts, ['Simulated answer to: Hi', 'Simulated answer to: Hi (answer 2)']);
  const joined = ['', ''];
  for (const event of (await stream(simulator, body)).events) {
    const [candidate] = JSON.parse(event).candidates;
    joined[candidate.index] += candidate.content.parts[0].text;
  }
  t.strictSame(joined, texts);
});

test('each end has its reason', async (t) => {
  const simulator = await simulate(t);
  const cases: [string, object, object][] = [
    [
      'one END two',
      { stopSequences: [' END'] },
      { finishReason: 'STOP', content: { parts: [{ text: /one$/ }] } },
    ],
    [
      'Hello',
      { maxOutputTokens: 3 },
      { finishReason: 'MAX_TOKENS', content: { parts: [{ text: 'Simulated an' }] } },
    ],
    [
      '[[fault:refuse]] x',
      {},
      { finishReason: 'SAFETY', content: undefined, safetyRatings: [{ blocked: true }] },
    ],
    ['[[fault:finish=RECITATION]] x', {}, { finishReason: 'RECITATION' }],
  ];
  for (const [text, generationConfig, expected] of cases) {
    const body = ask(text, { generationConfig });
    const { candidates } = await answered(simulator, body);
    t.match(candidates[0], expected, text);
    const last = JSON.parse((await stream(simulator, body)).events.at(-1) ?? '');
    t.equal(last.candidates[0].finishReason, candidates[0].finishReason);
  }
  const blocked = ask('[[fault:refuse=prompt]] x');
  t.match(await answered(simulator, blocked), {
    candidates: undefined,
    promptFeedback: { blockReason: 'PROHIBITED_CONTENT' },
  });
  t.match((await stream(simulator, blocked)).events, [/promptFeedback/]);
});

test('a text that invites a function gets a signed call, and toolConfig decides', async (t) => {
  const simulator = await simulate(t);
  const calls = await parts(simulator, ask('weather and time in Oslo', { tools }));
  t.match(calls, [
    { functionCall: { name: 'get_weather', args: { city: 'Oslo' } }, thoughtSignature: /.+/ },
    { functionCall: { name: 'currentTime' }, thoughtSignature: undefined },
  ]);
  const config = (mode: string, ...allowedFunctionNames: string[]): object => ({
    tools,
    toolConfig: {
      functionCallingConfig: { mode, ...(allowedFunctionNames.length ? { allowedFunctionNames } : {}) },
    },
  });
  t.match(await parts(simulator, ask('weather', config('NONE'))), [{ text: /weather/ }]);
  t.match(await parts(simulator, ask('x', config('ANY'))), [{ functionCall: { name: 'get_weather' } }]);
  t.match(await parts(simulator, ask('x', config('ANY', 'currentTime'))), [
    { functionCall: { name: 'currentTime' } },
  ]);
  const streamed = await stream(simulator, ask('weather and time', { tools }));
  t.equal(streamed.events.length, 2, 'each call comes whole');
  const empty = await parts(simulator, ask('[[fault:zero-args]] weather', { tools }));
  t.strictSame(empty[0]?.functionCall, { name: 'get_weather' });
});

test('responses of functions and media are in the answer, and a signature goes back only as it came', async (t) => {
  const simulator = await simulate(t);
  const [call] = await parts(simulator, ask('weather in Oslo', { tools }));
  const after = (part: object, ...responses: object[]): Promise<Record<string, unknown>> =>
    answered(
      simulator,
      ask('', {
        contents: [
          {
            role: 'user',
            parts: [{ text: 'weather' }, { inlineData: { mimeType: 'image/png', data: 'AAAA' } }],
          },
          { role: 'model', parts: [part] },
          { role: 'user', parts: responses },
        ],
        tools,
      }),
    );
  const response = { functionResponse: { name: 'get_weather', response: { result: 'rain' } } };
  t.match(await after(call ?? {}, response), {
    status: 200,
    candidates: [{ content: { parts: [{ text: 'Simulated answer to: weather\nTool result: rain' }] } }],
    usageMetadata: { promptTokensDetails: [{ modality: 'TEXT' }, { modality: 'IMAGE', tokenCount: 85 }] },
  });
  const { thoughtSignature: signature, ...unsigned } = call ?? {};
  t.match(await after(unsigned, response), { status: 200 });
  t.match(await after({ ...unsigned, thoughtSignature: 'skip_thought_signature_validator' }, response), {
    status: 200,
  });
  for (const thoughtSignature of ['AAAA', signature?.slice(4), 5]) {
    t.match(await after({ ...unsigned, thoughtSignature }, response), {
      status: 400,
      error: { code: 400, message: /Thought signature is not valid/, status: 'INVALID_ARGUMENT' },
    });
  }
  const other = { functionResponse: { name: 'currentTime', response: {} } };
  t.match(await after(unsigned, other), {
    status: 400,
    error: { message: /does not match any function call/ },
  });
  t.match(await after(unsigned, response, response), {
    error: { message: /number of function response parts/ },
  });
  const streamed = [
    { role: 'user', parts: [{ text: 'weather' }] },
    { role: 'model', parts: [unsigned] },
    { role: 'model', parts: [{ functionCall: { name: 'currentTime' } }] },
    { role: 'user', parts: [other, response] },
  ];
  t.match(
    await answered(simulator, ask('', { contents: streamed })),
    { status: 200 },
    'neighbours are one turn',
  );
  t.match(await after(unsigned, { text: 'a' }), { error: { message: /number of function response parts/ } });
});

test('structured output fits its schema in every form', async (t) => {
  const simulator = await simulate(t);
  const responseSchema = {
    type: 'OBJECT',
    properties: { n: { type: 'INTEGER' }, note: { type: 'STRING', nullable: true, maxLength: '5' } },
    required: ['n', 'note'],
  };
  const structured = async (generationConfig: object): Promise<string> =>
    (await parts(simulator, ask('x', { generationConfig })))[0]?.text ?? '';
  const json = { responseMimeType: 'application/json' };
  const value = JSON.parse(await structured({ ...json, responseSchema }));
  t.type(value.n, 'number');
  t.ok(value.note === null || value.note.length <= 5);
  t.type(JSON.parse(await structured({ ...json, responseJsonSchema: { type: 'array' } })), Array);
  t.match(JSON.parse(await structured(json)), { simulated: true });
  const choice = {
    responseMimeType: 'text/x.enum',
    responseSchema: { type: 'STRING', enum: ['one', 'two'] },
  };
  t.equal(await structured(choice), 'one');
});

test('log probabilities stand beside the text', async (t) => {
  const simulator = await simulate(t);
  const body = ask('Hi', { generationConfig: { responseLogprobs: true, logprobs: 2 } });
  const { candidates } = await answered(simulator, body);
  const { chosenCandidates, topCandidates } = candidates[0].logprobsResult;
  t.equal(chosenCandidates.map(({ token }: { token: string }) => token).join(''), 'Simulated answer to: Hi');
  t.equal(topCandidates[0].candidates.length, 2);
});

test('what the real one refuses is refused', async (t) => {
  const simulator = await simulate(t);
  const config = (generationConfig: object): object => ({ generationConfig });
  const contents = (...list: object[]): object => ({ contents: list });
  const call = { functionCall: { name: 'get_weather', args: {} } };
  const cases: [object, RegExp][] = [
    [{ messages: [] }, /Unknown name "messages": Cannot find field/],
    [config({ max_tokens: 5 }), /Unknown name "max_tokens" at 'generationConfig'/],
    [
      contents({ role: 'user', parts: [{ type: 'text' }] }),
      /Unknown name "type" at 'contents\[0\]\.parts\[0\]'/,
    ],
    [
      {
        tools: [
          {
            functionDeclarations: [
              { name: 'f', parameters: { type: 'OBJECT', additionalProperties: false } },
            ],
          },
        ],
      },
      /Unknown name "additionalProperties"/,
    ],
    [{ contents: [] }, /contents is not specified/],
    [{ contents: 'Hi' }, /Invalid value at 'contents\[0\]'/],
    [contents({ role: 'assistant', parts: [{ text: 'a' }] }), /valid role: user, model/],
    [contents({ role: 'user', parts: [] }), /parts must not be empty/],
    [contents({ role: 'user', parts: [{ thought: true }] }), /must have one initialized field/],
    [contents({ role: 'user', parts: [{ text: 'a', ...call }] }), /oneof field 'data' is already set/],
    [contents({ role: 'user', parts: [{ text: 5 }] }), /TYPE_STRING/],
    [contents({ role: 'user', parts: [{ inlineData: { data: 'AAAA' } }] }), /mimeType/],
    [contents({ role: 'user', parts: [call] }), /in contents of the role model/],
    [contents({ role: 'model', parts: [call] }), /immediately after a user turn/],
    [
      contents({ role: 'user', parts: [{ functionResponse: { name: 'f', response: {} } }] }),
      /immediately after a function call turn/,
    ],
    [
      contents(
        { role: 'user', parts: [{ text: 'a' }] },
        { role: 'model', parts: [{ functionCall: { name: 'f', args: '{}' } }] },
      ),
      /functionCall\.args/,
    ],
    [config({ temperature: 3 }), /temperature/],
    [config({ candidateCount: 0 }), /candidateCount/],
    [config({ maxOutputTokens: 0 }), /maxOutputTokens/],
    [config({ stopSequences: ['a', 'b', 'c', 'd', 'e', 'f'] }), /at most 5/],
    [config({ responseModalities: ['IMAGE'] }), /response_modalities/],
    [config({ responseSchema: { type: 'STRING' } }), /response_mime_type/],
    [config({ logprobs: 2 }), /response_logprobs/],
    [config({ thinkingConfig: { thinkingBudget: 5, thinkingLevel: 'LOW' } }), /only one of thinking budget/],
    [config({ thinkingConfig: { thinkingLevel: 'XHIGH' } }), /thinking_level/],
    [{ tools: [{ functionDeclarations: [{ name: '1 f' }] }] }, /Invalid function name/],
    [{ tools: [{ functionDeclarations: [weather, weather] }] }, /Duplicate function/],
    [
      { tools, toolConfig: { functionCallingConfig: { allowedFunctionNames: ['get_weather'] } } },
      /mode is ANY/,
    ],
    [{ tools, toolConfig: { functionCallingConfig: { mode: 'REQUIRED' } } }, /mode/],
    [
      { tools, toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['x'] } } },
      /'x' is not/,
    ],
  ];
  for (const [more, message] of cases) {
    const heard = await send(simulator, ask('Hi', more));
    t.match(
      [heard.status, JSON.parse(heard.text)],
      [400, { error: { code: 400, message, status: 'INVALID_ARGUMENT' } }],
      JSON.stringify(more),
    );
  }
});

test('a cache, an unknown model, a wrong method and bad JSON have the error form of the protocol', async (t) => {
  const simulator = await simulate(t);
  const cached = await send(simulator, ask('Hi', { cachedContent: 'cachedContents/a' }));
  t.match([cached.status, JSON.parse(cached.text)], [403, { error: { status: 'PERMISSION_DENIED' } }]);
  const unknown = await post(simulator, '/models/nope/x:generateContent', ask('Hi'));
  t.match(
    [unknown.status, JSON.parse(unknown.text)],
    [404, { error: { status: 'NOT_FOUND', message: /nope\/x/ } }],
  );
  const get = await fetch(`${simulator.url}/models/sim-text:generateContent`);
  t.match([get.status, await get.json()], [405, { error: { code: 405 } }]);
  const broken = await send(simulator, '{');
  t.match([broken.status, JSON.parse(broken.text)], [400, { error: { status: 'INVALID_ARGUMENT' } }]);
  const limited = await send(simulator, ask('[[fault:status=429]] a'));
  t.match([limited.status, JSON.parse(limited.text)], [429, { error: { status: 'RESOURCE_EXHAUSTED' } }]);
  const failed = await stream(simulator, ask('[[fault:error-event after=1]] a'));
  t.match(
    failed.events.map((event) => JSON.parse(event)),
    [{ candidates: [{}] }, { error: { status: 'INTERNAL' } }],
  );
  const foreign = await stream(simulator, ask('[[fault:wrong-protocol]] a'));
  t.match(foreign.text, /event: message_start/);
});

test('tokens are counted as the answer counts them', async (t) => {
  const simulator = await simulate(t);
  const body = ask('Hello there', { tools });
  const { usageMetadata } = await answered(simulator, body);
  const wrapped = { generateContentRequest: { model: 'models/sim-text', ...body } };
  const counted = await send(simulator, wrapped, 'countTokens');
  t.match(JSON.parse(counted.text), { totalTokens: usageMetadata.promptTokenCount });
  t.match(JSON.parse((await send(simulator, ask('Hello there'), 'countTokens')).text), { totalTokens: 3 });
});
