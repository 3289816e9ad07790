import { randomBytes } from 'node:crypto';
import { test } from 'tap';
import { carryBeside, carryInId } from '../../../src/conversation/carrying-id.js';
import { tagSignature, tokenAsBytes } from '../../../src/conversation/signature.js';
import { tagOpaque } from '../../../src/conversation/unsigned-reasoning.js';
import type { Call } from '../../../src/flow/call.js';
import { expectedUsage } from '../../../src/flow/limits/expected-usage.js';
import { chat } from '../../../src/protocols/chat/index.js';
import { passedChatRequest } from '../../../src/protocols/chat/request/schema.js';
import { completions, completionsRequest } from '../../../src/protocols/completions/index.js';
import { generateContent } from '../../../src/protocols/generate-content/index.js';
import { passedGenerateContentRequest } from '../../../src/protocols/generate-content/request/schema.js';
import { messages } from '../../../src/protocols/messages/index.js';
import { passedMessagesRequest } from '../../../src/protocols/messages/request/schema.js';
import { responses } from '../../../src/protocols/responses/index.js';
import { passedResponsesRequest } from '../../../src/protocols/responses/request/schema.js';
import { validateBody } from '../../../src/schema/accept.js';
import { usualCost } from '../../../src/wire/json.js';

/** The output that a call with these members is taken for, with what the check of the body has noted and without. */
function outputOf(members: string, asked = '"messages":[{"role":"user","content":"x"}]'): number {
  const body = Buffer.from(`{"model":"m",${asked}${members}}`);
  const isChat = asked.startsWith('"messages"');
  const schema = isChat ? passedChatRequest : completionsRequest;
  const [noted, unnoted] = [schema.accept(body), null].map((validated) => {
    const call = { body, route: { endpoint: isChat ? chat : completions }, upload: null, validated };
    return expectedUsage(call as unknown as Call).output;
  });
  if (noted !== unnoted) throw new Error(`${members}: ${noted} and ${unnoted}`);
  return unnoted as number;
}

test('a call is taken for its output limit, in whatever form the number stands', (t) => {
  t.equal(outputOf(',"max_tokens":256'), 256);
  t.equal(outputOf(',"max_tokens":1'), 1);
  t.equal(outputOf(',"max_tokens":999999999'), 999_999_999);
  t.equal(outputOf(',"max_tokens":1234567890'), 1_234_567_890);
  t.equal(outputOf(',"max_tokens":2.56e2'), 256);
  t.equal(outputOf(',"max_tokens":64,"max_completion_tokens":256'), 256);
  t.equal(outputOf(',"max_completion_tokens":1,"max_tokens":5000'), 5000, 'an upstream may read either');
  t.equal(outputOf(',"max_completion_tokens":null,"max_tokens":256'), 256);
  t.equal(outputOf(',"max_tokens":256,"n":3'), 768);
  t.end();
});

test('an answer is taken for no more than its model gives', (t) => {
  const expected = (model: string | null, members: string) => {
    const body = Buffer.from(`{"messages":[]${members}}`);
    const tokens = { input: null, output: model === null ? null : Number(model) };
    const call = { body, route: { endpoint: chat }, upload: null, validated: null, model: { tokens } };
    return expectedUsage(call as unknown as Call).output;
  };
  t.equal(expected('8000', ',"max_tokens":999999999'), 8000);
  t.equal(expected('8000', ',"max_tokens":999999999,"n":2'), 16_000);
  t.equal(expected('8000', ',"max_tokens":10'), 10);
  for (const limit of ['9007199254740993', '"99999999999999999999"', '1e400'])
    t.equal(expected('8000', `,"max_tokens":${limit}`), 8000, `${limit} is a limit, if no exact one`);
  t.equal(expected('500', ''), 500, 'nor for more where the client sets no limit');
  t.equal(expected(null, ',"max_tokens":999999999'), 999_999_999);
  t.end();
});

test('of several limits the largest counts, whichever stands first and whatever the protocol', (t) => {
  const members = ['"max_completion_tokens":1', '"max_tokens":5000', '"max_output_tokens":2'];
  const cases = [
    [messages, passedMessagesRequest, '"messages":[{"role":"user","content":"x"}]'],
    [responses, passedResponsesRequest, '"input":"x"'],
  ] as const;
  for (const [endpoint, schema, asked] of cases) {
    for (const order of [members, [...members].reverse()]) {
      const body = Buffer.from(`{"model":"m",${asked},${order.join()}}`);
      for (const validated of [schema.accept(body), validateBody(body, schema, usualCost), null]) {
        const call = { body, route: { endpoint }, upload: null, validated };
        t.equal(expectedUsage(call as unknown as Call).output, 5000, endpoint.protocol);
      }
    }
  }
  t.end();
});

test('of completions each prompt has its answers, of which as many are made as the best is chosen of', (t) => {
  t.equal(outputOf(',"max_tokens":50', '"prompt":"x"'), 50);
  t.equal(outputOf(',"max_tokens":50', '"prompt":["x", "y", "z"]'), 150);
  t.equal(outputOf(',"max_tokens":50,"n":2', '"prompt":[[1,2],[3]]'), 200);
  t.equal(outputOf(',"max_tokens":50', '"prompt":[1,2,3]'), 50);
  t.equal(outputOf(',"max_tokens":50', '"prompt":[ ]'), 50);
  t.equal(outputOf(',"max_tokens":250,"best_of":20', '"prompt":"x"'), 5000);
  t.equal(outputOf(',"max_tokens":250,"best_of":20,"n":2', '"prompt":"x"'), 5000);
  t.end();
});

test('a limit counts in either of the spellings that generateContent has', (t) => {
  for (const config of [
    '"generationConfig":{"maxOutputTokens":64,"candidateCount":2}',
    '"generation_config":{"max_output_tokens":64,"candidate_count":2}',
    '"generation_config":{"maxOutputTokens":64,"candidate_count":2}',
  ]) {
    const body = Buffer.from(`{"contents":[{"parts":[{"text":"hi"}]}],${config}}`);
    for (const validated of [null, validateBody(body, passedGenerateContentRequest, usualCost)]) {
      const call = { body, route: { endpoint: generateContent }, upload: null, validated };
      t.equal(expectedUsage(call as unknown as Call).output, 128, config);
    }
  }
  t.end();
});

test('where it sets no limit, or none that is a whole number above 0, a thousand tokens are presumed', (t) => {
  for (const members of [
    '',
    ',"max_tokens":0',
    ',"max_tokens":-5',
    ',"max_tokens":1.5',
    ',"max_tokens":null',
  ])
    t.equal(outputOf(members), 1000, members);
  t.end();
});

test('what a client carries for its upstream is not expected to be input, and what only looks like it is', (t) => {
  const value = randomBytes(6000).toString('base64');
  const token = tagSignature({ protocol: 'responses', model: 'm', value, redacted: true });
  const id = carryInId('call_1', [token]) as string;
  const beside = carryBeside([token, token]) as string;
  const bytes = Buffer.from(token).toString('base64');
  const inputOf = (endpoint: object, ...turns: readonly object[]) => {
    const body = Buffer.from(JSON.stringify({ messages: [{ role: 'user', content: 'x' }, ...turns] }));
    const call = { body, route: { endpoint }, upload: null, validated: null, model: null, repeatedTokens: 0 };
    return expectedUsage(call as unknown as Call).input;
  };
  const google = { google: { thought_signature: beside } };
  const calls = { role: 'assistant', tool_calls: [{ id, extra_content: google }, { id: 'call_2' }] };
  const thinking = { type: 'thinking', thinking: 'y', signature: token };
  const carried: readonly [object, object, object][] = [
    [chat, calls, { role: 'tool', tool_call_id: id }],
    [messages, { content: [{ type: 'tool_use', id }, thinking] }, { content: [{ tool_use_id: id }] }],
    [messages, { content: [{ type: 'redacted_thinking', data: token }] }, {}],
    [responses, { type: 'reasoning', encrypted_content: token }, { call_id: id }],
    [generateContent, { parts: [{ thoughtSignature: bytes }] }, { parts: [{ functionCall: { id } }] }],
  ];
  for (const [endpoint, ...turns] of carried) {
    const input = inputOf(endpoint, ...turns);
    t.ok(input < 120, `${input} ${JSON.stringify(turns).slice(0, 60)}`);
    const many = inputOf(endpoint, ...Array.from({ length: 12 }, () => turns).flat());
    t.ok(many < 12 * 120, `${many} ${JSON.stringify(turns).slice(0, 60)}`);
    const beyond = inputOf(endpoint, ...turns, { content: 'words '.repeat(2000) });
    t.ok(beyond > 3000 && beyond < 3120, `${beyond}`);
  }
  const text = (content: unknown) => inputOf(chat, { role: 'user', content });
  const length = token.length / 4;
  t.ok(text(token) > length);
  t.ok(text([{ type: 'text', text: bytes }]) > length);
  t.ok(text(id) > length);
  t.ok(text(JSON.stringify({ id })) > length, 'an id that is quoted in a text');
  t.ok(text([{ inlineData: { mimeType: 'text/plain', data: bytes } }]) > length);
  t.ok(text('"__thought__Z3cx'.repeat(100_000)) > 400_000);
  t.end();
});

test('a text is expected input although it begins as a token, or is one in the arguments of a call', (t) => {
  const token = tagSignature({
    protocol: 'messages',
    model: 'm',
    value: randomBytes(60_000).toString('base64'),
    redacted: true,
  });
  const prose = 'the quick brown fox jumps over it. '.repeat(2000);
  const unsigned = tagOpaque('reasoning_details', prose, 'm');
  const joined = prose.replaceAll(/[ .]/g, '_');
  const sentences = 'The_quick_brown_fox_jumps_over_it_3_times+'.repeat(2000);
  const inputOf = (content: unknown, space = 0) => {
    const text = JSON.stringify({ messages: [{ role: 'assistant', content }] }, null, space);
    const escaped = text.replace('"given":', '"\\u0069nput":');
    const call = { body: Buffer.from(escaped), route: { endpoint: messages }, upload: null, validated: null };
    return expectedUsage({ ...call, model: null, repeatedTokens: 0 } as unknown as Call).input;
  };
  const use = { type: 'tool_use', id: 't', name: 'f' };
  const head = token.slice(0, 200);
  const texts: readonly (readonly [what: string, content: unknown])[] = [
    ['prose behind the tag, in arguments', [{ ...use, input: { id: `gw1.${prose}` } }]],
    ['prose behind the tag', [{ ...use, id: `gw1.${prose}` }]],
    ['prose behind the head of a token', [{ ...use, id: head + prose }]],
    ['joined words behind the head of a token', [{ ...use, id: head + joined }]],
    ['joined sentences behind the head of a token', [{ ...use, id: head + sentences }]],
    [
      'joined sentences behind that of reasoning as text',
      [{ ...use, id: unsigned.slice(0, 200) + sentences }],
    ],
    ['joined words behind the mark in an id', [{ ...use, id: `t__thought__Z3cx${joined}` }]],
    ['text that a chat upstream gets', [{ type: 'thinking', thinking: '', signature: unsigned }]],
    ['text that a chat upstream gets, as base64', [{ thoughtSignature: tokenAsBytes(unsigned) }]],
    ['a token in arguments', [{ ...use, input: { id: token } }]],
    ['a token in a list in arguments', [{ ...use, input: { x: [{ type: 'thinking', signature: token }] } }]],
    ['a token in arguments with an escaped name', [{ ...use, given: { id: token } }]],
    ['a token in arguments by another case', [{ ...use, Input: { id: token } }]],
    ['a token in the arguments of generateContent', [{ functionCall: { args: { id: token } } }]],
    ['a token in its result', [{ functionResponse: { response: { id: token } } }]],
    ['a token in a schema', [{ parameters: { properties: { id: token } } }]],
  ];
  for (const [what, content] of texts)
    for (const space of [0, 1]) t.ok(inputOf(content, space) > 15_000, `${what}: ${inputOf(content, space)}`);
  const real = [
    { ...use, input: { id: 'x', a: [{}] } },
    { type: 'thinking', thinking: '', signature: token },
  ];
  t.ok(inputOf(real) < 100, `a token behind arguments: ${inputOf(real)}`);
  const escapes: readonly [RegExp, string][] = [
    [/\//g, '\\/'],
    [/\+/g, '\\u002B'],
    [/\//g, '\\u002f'],
    [/=/g, '\\u003d'],
  ];
  const spread = JSON.stringify({ messages: [{ content: real }] }).replace(token, `${token}+/==`);
  for (const [byte, written] of escapes) {
    const escaped = spread.replaceAll(byte, written);
    t.ok(ofBody(escaped) < 150, `a token with ${written}: ${ofBody(escaped)}`);
  }
  const shown = spread.replace(token, head + sentences).replaceAll('+', '\\u002B');
  t.ok(ofBody(shown) > 15_000, 'sentences with escapes');
  const tab = spread.replaceAll('+', '\\u0009');
  t.ok(ofBody(tab) > 15_000, 'a token with another escape');
  t.end();
});

test('a token is no input although it holds words with spaces or rules, and the same for every call', (t) => {
  const value = randomBytes(1500).toString('base64');
  for (const run of [' ', '-', '=', '#', '\t']) {
    const words = `a\n${run.repeat(400)}\nLet me think about it. `.repeat(20);
    const token = tagSignature({ protocol: 'messages', model: 'm', value, redacted: false, words });
    for (const signature of [token, tokenAsBytes(token)]) {
      const content = Array.from({ length: 5 }, () => ({ type: 'thinking', thinking: '', signature }));
      const body = JSON.stringify({ messages: [{ role: 'assistant', content }] });
      const inputs = new Set(Array.from({ length: 20 }, () => ofBody(body)));
      const [input = 0] = inputs;
      t.equal(inputs.size, 1, 'the same for every call');
      t.ok(input < 200, `${JSON.stringify(run)}: ${input}`);
    }
  }
  t.end();
});

test('reasoning that no vendor has signed is input by the length of its text, where a chat upstream may get it', (t) => {
  const text = 'Let me think about it 1 time. '.repeat(2000);
  const token = tagOpaque('reasoning_details', text, 'm');
  const members = [
    { signature: token },
    { thoughtSignature: tokenAsBytes(token) },
    { id: carryInId('c', [token.slice(0, 8000)]) },
  ];
  for (const [index, member] of members.entries()) {
    const body = JSON.stringify({ messages: [{ role: 'assistant', content: [member] }] });
    const length = index === 2 ? (8000 * 3) / 4 : text.length;
    const toChat = [ofBody(body), ofBody(body, ['messages', 'chat'])];
    for (const input of toChat)
      t.ok(input > length / 4 && input < length / 4 + 150, `${input} for ${length / 4}`);
    t.ok(ofBody(body, ['messages', null]) < 100, 'no target gets the text');
  }
  t.end();
});

test('a limit and a budget get the same number for one body', (t) => {
  const media = { type: 'image_url', image_url: { url: `data:image/png;base64,${'QUJD'.repeat(10_000)}` } };
  const body = Buffer.from(
    JSON.stringify({
      messages: [{ id: `gw1.s.messages.${'A'.repeat(40)}`, content: [media, 'words '.repeat(6000)] }],
    }),
  );
  const call = {
    body,
    route: { endpoint: messages },
    upload: null,
    validated: null,
    model: null,
    repeatedTokens: 0,
  } as unknown as Call;
  t.equal(new Set(Array.from({ length: 20 }, () => expectedUsage(call).input)).size, 1);
  // Buffers of bodies are used again.
  body.fill('a word ');
  t.ok(expectedUsage({ ...call, estimated: null } as Call).input > 0.2 * body.length);
  t.end();
});

function ofBody(text: string, protocols: readonly (string | null)[] | null = null): number {
  const targets = protocols?.map((translatesTo) => ({ translatesTo }));
  const call = {
    body: Buffer.from(text),
    route: { endpoint: messages },
    upload: null,
    validated: null,
    model: targets === undefined ? null : { targets, tokens: { input: null, output: null } },
    repeatedTokens: 0,
  };
  return expectedUsage(call as unknown as Call).input;
}
