import { test } from 'tap';
import type { TargetOptions } from '../../src/conversation/codec.js';
import { LeftOut } from '../../src/conversation/left-out.js';
import { type TextProtocolName, textProtocols } from '../../src/conversation/request.js';
import { textEndpoints } from '../../src/protocols/text.js';
import { isObject, type JsonObject, listOf } from '../../src/wire/json.js';
import { createSealer } from '../../src/wire/seal.js';
import { target } from './messages/samples.js';
import { writeRequest } from './write-request.js';

const sealer = createSealer('a secret of the tests');

/** The least body of each client. */
const bodies: Readonly<Record<TextProtocolName, JsonObject>> = {
  chat: { messages: [{ role: 'user', content: 'hi' }] },
  responses: { input: 'hi' },
  messages: { max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] },
  generateContent: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
};

interface Sent {
  readonly body: JsonObject;
  readonly leftOut: readonly string[];
}

function send(
  from: TextProtocolName,
  to: TextProtocolName,
  body: JsonObject,
  options: Partial<TargetOptions> = {},
): Sent {
  const request = textEndpoints[from].translation.codec.decodeRequest(
    { ...bodies[from], ...body },
    false,
    sealer,
  );
  const leftOut = new LeftOut(request.leftOut);
  const written = writeRequest(
    textEndpoints[to].translation.codec,
    request,
    { ...target, hostedTools: 'drop', ...options },
    leftOut,
  );
  return { body: JSON.parse(written) as JsonObject, leftOut: leftOut.names };
}

/** The search in a body of an upstream, or undefined. */
function searchIn({ tools, web_search_options: options }: JsonObject): unknown {
  const found = listOf(tools).find(
    (tool) =>
      isObject(tool) && (String(tool.type).startsWith('web_search') || Object.hasOwn(tool, 'googleSearch')),
  );
  return found ?? options;
}

const plain: Readonly<Record<TextProtocolName, JsonObject>> = {
  chat: { web_search_options: {} },
  responses: { tools: [{ type: 'web_search' }] },
  messages: { tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
  generateContent: { tools: [{ googleSearch: {} }] },
};

const own: Readonly<Record<TextProtocolName, unknown>> = {
  chat: {},
  responses: { type: 'web_search' },
  messages: { type: 'web_search_20250305', name: 'web_search' },
  generateContent: { googleSearch: {} },
};

const leftOutWhole: Readonly<Record<TextProtocolName, string>> = {
  chat: 'web_search_options',
  responses: 'tools.web_search',
  messages: 'tools.web_search_20250305',
  generateContent: 'tools.googleSearch',
};

test('a declared search is the search of the target’s vendor, where its protocol has one', async (t) => {
  for (const from of textProtocols)
    for (const to of textProtocols) {
      const { body, leftOut } = send(from, to, plain[from]);
      const wanted = to === 'chat' ? undefined : own[to];
      t.same(searchIn(body), wanted, `${from} to ${to}`);
      t.strictSame(leftOut, to === 'chat' ? [leftOutWhole[from]] : [], `${from} to ${to}`);
    }
});

test('a target may say that it searches, or that it does not', async (t) => {
  for (const from of textProtocols)
    for (const to of textProtocols) {
      const on = send(from, to, plain[from], { search: true });
      t.same(searchIn(on.body), own[to], `${from} to ${to}`);
      t.strictSame(on.leftOut, []);
      const off = send(from, to, plain[from], { search: false });
      t.equal(searchIn(off.body), undefined, `${from} to ${to}`);
      t.strictSame(off.leftOut, [leftOutWhole[from]]);
    }
});

test('a search that is left out is refused where tools of a vendor are', async (t) => {
  const refused = { hostedTools: 'reject' } as const;
  t.throws(() => send('messages', 'chat', plain.messages, refused), /'tools\[0\]' of type/);
  t.throws(
    () => send('chat', 'messages', plain.chat, { ...refused, search: false }),
    /'web_search_options' of type/,
  );
  t.same(searchIn(send('chat', 'messages', plain.chat, refused).body), own.messages);
});

const place = { city: 'Bern', country: 'CH' };
const located = { type: 'approximate', ...place };

test('what a client says of a search is said to the target, and what that cannot be told is named', async (t) => {
  const messages = {
    tools: [
      {
        type: 'web_search_20260209',
        name: 'web_search',
        max_uses: 3,
        allowed_domains: ['a.example'],
        user_location: located,
        cache_control: { type: 'ephemeral' },
      },
    ],
  };
  const toResponses = send('messages', 'responses', messages);
  t.same(searchIn(toResponses.body), {
    type: 'web_search',
    filters: { allowed_domains: ['a.example'] },
    user_location: located,
  });
  t.equal(toResponses.body.max_tool_calls, 3);
  t.same(toResponses.body.include, ['web_search_call.action.sources']);
  t.strictSame(toResponses.leftOut, ['cache_control']);
  const { allowed_domains: _, ...anywhere } = messages.tools[0] as Record<string, unknown>;
  const open = { tools: [anywhere] };
  t.strictSame(send('messages', 'generateContent', open).leftOut, [
    'cache_control',
    'user_location',
    'max_uses',
  ]);
  const toChat = send('messages', 'chat', open, { search: true });
  t.same(searchIn(toChat.body), { user_location: { type: 'approximate', approximate: place } });
  t.strictSame(toChat.leftOut, ['cache_control', 'max_uses']);

  const responses = {
    tools: [
      {
        type: 'web_search_preview_2025_03_11',
        filters: { allowed_domains: ['a.example'] },
        user_location: { ...located, region: null },
        search_context_size: 'high',
        external_web_access: false,
      },
    ],
    include: ['web_search_call.action.sources'],
  };
  const toMessages = send('responses', 'messages', responses);
  t.same(searchIn(toMessages.body), {
    ...(own.messages as object),
    allowed_domains: ['a.example'],
    user_location: located,
  });
  t.strictSame(toMessages.leftOut, ['search_context_size', 'external_web_access']);

  const chat = {
    web_search_options: {
      search_context_size: 'low',
      user_location: { type: 'approximate', approximate: place },
    },
  };
  t.same(searchIn(send('chat', 'responses', chat).body), {
    type: 'web_search',
    search_context_size: 'low',
    user_location: located,
  });
  t.strictSame(send('chat', 'generateContent', chat).leftOut, [
    'web_search_options.user_location',
    'web_search_options.search_context_size',
  ]);

  const google = { tools: [{ google_search: { exclude_domains: ['b.example'] } }] };
  t.same(searchIn(send('generateContent', 'messages', google).body), {
    ...(own.messages as object),
    blocked_domains: ['b.example'],
  });
});

test('a search is left out where the target cannot be kept from pages as the client says', async (t) => {
  const search = { type: 'web_search_20250305', name: 'web_search' };
  const limits = { allowed: { allowed_domains: ['a.example'] }, blocked: { blocked_domains: ['b.example'] } };
  for (const [limit, to] of [
    ['allowed', 'generateContent'],
    ['allowed', 'chat'],
    ['blocked', 'responses'],
    ['blocked', 'generateContent'],
    ['blocked', 'chat'],
  ] as const) {
    const tools = [{ ...search, ...limits[limit] }];
    const { body, leftOut } = send('messages', to, { tools }, { search: true });
    t.equal(searchIn(body), undefined, `${limit} to ${to}`);
    t.same([...leftOut].sort(), [`${limit}_domains`, 'tools.web_search_20250305']);
  }
  const filters = { ...limits.allowed, blocked_domains: ['b.a.example'] };
  for (const to of ['messages', 'generateContent'] as const) {
    const { body, leftOut } = send('responses', to, { tools: [{ type: 'web_search', filters }] });
    t.equal(searchIn(body), undefined, to);
    t.ok(leftOut.includes('filters.blocked_domains') && leftOut.includes('tools.web_search'), to);
  }
  const google = { tools: [{ googleSearch: { excludeDomains: ['b.example'] } }] };
  const { body, leftOut } = send('generateContent', 'responses', google);
  t.equal(searchIn(body), undefined);
  t.same([...leftOut].sort(), ['googleSearch.excludeDomains', 'tools.googleSearch']);
});

test('members of a wrong shape are no settings', async (t) => {
  const tool = {
    type: 'web_search_20250305',
    name: 'web_search',
    max_uses: -1,
    allowed_domains: [1, '', null],
    blocked_domains: 'x',
    user_location: { city: 5 },
  };
  const { body, leftOut } = send('messages', 'responses', { tools: [tool] });
  t.same(searchIn(body), own.responses);
  t.notOk('max_tool_calls' in body);
  t.strictSame(leftOut, []);
});

const functions: Readonly<Record<TextProtocolName, JsonObject>> = {
  chat: { type: 'function', function: { name: 'f', parameters: { type: 'object' } } },
  responses: { type: 'function', name: 'f', parameters: { type: 'object' } },
  messages: { name: 'f', input_schema: { type: 'object' } },
  generateContent: { functionDeclarations: [{ name: 'f' }] },
};

test('models that refuse a search beside functions or a format get it only where the target says so', async (t) => {
  const withFunction = { tools: [functions.messages, ...listOf(plain.messages.tools)] };
  const without = send('messages', 'generateContent', withFunction);
  t.equal(searchIn(without.body), undefined);
  t.strictSame(without.leftOut, ['tools.web_search_20250305']);
  t.notOk('toolConfig' in without.body);

  const both = send('messages', 'generateContent', withFunction, { search: true });
  t.same(searchIn(both.body), own.generateContent);
  t.equal(listOf(both.body.tools).length, 2);
  t.same(both.body.toolConfig, { includeServerSideToolInvocations: true });
  t.strictSame(both.leftOut, []);

  const format = { output_config: { format: { type: 'json_schema', schema: { type: 'object' } } } };
  t.equal(searchIn(send('messages', 'generateContent', { ...plain.messages, ...format }).body), undefined);
});

test('a function with the name of the search is the client’s, and there is no search beside it', async (t) => {
  const tools = [{ ...functions.responses, name: 'web_search' }, { type: 'web_search' }];
  const { body, leftOut } = send('responses', 'messages', { tools });
  t.match(body.tools, [{ name: 'web_search', input_schema: {} }]);
  t.equal(listOf(body.tools).length, 1);
  t.strictSame(leftOut, ['tools.web_search']);
});

test('a choice of the search takes the form of the target, or is left out', async (t) => {
  const forced = { ...plain.messages, tool_choice: { type: 'tool', name: 'web_search' } };
  t.same(send('messages', 'responses', forced).body.tool_choice, { type: 'web_search' });
  const google = send('messages', 'generateContent', forced);
  t.notOk('toolConfig' in google.body);
  t.strictSame(google.leftOut, ['tool_choice']);
  // Models that take the option search in any case.
  t.strictSame(send('messages', 'chat', forced, { search: true }).leftOut, []);
  t.strictSame(send('messages', 'chat', forced).leftOut, ['tool_choice', 'tools.web_search_20250305']);

  const chosen = { ...plain.responses, tool_choice: { type: 'web_search' } };
  t.match(send('responses', 'messages', { ...chosen, reasoning: { effort: 'high' } }).body, {
    tool_choice: { type: 'tool', name: 'web_search' },
    thinking: undefined,
  });
  const required = send('responses', 'generateContent', { ...plain.responses, tool_choice: 'required' });
  t.notOk('toolConfig' in required.body);
  t.strictSame(required.leftOut, ['tool_choice']);
});

test('who wants no tool gets no search', async (t) => {
  const none = { ...plain.responses, tool_choice: 'none' };
  const google = send('responses', 'generateContent', none);
  t.equal(searchIn(google.body), undefined);
  t.strictSame(google.leftOut, []);
  t.equal(searchIn(send('responses', 'chat', none, { search: true }).body), undefined);
  t.match(send('responses', 'messages', none).body, { tool_choice: { type: 'none' } });
});
