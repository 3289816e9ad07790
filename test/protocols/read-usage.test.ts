import { test } from 'tap';
import type { Usage } from '../../src/conversation/usage.js';
import { decodeUsage as decodeChat, lastUsage as lastOfChat } from '../../src/protocols/chat/answer/usage.js';
import {
  decodeUsage as decodeGenerateContent,
  lastUsage as lastOfGenerateContent,
} from '../../src/protocols/generate-content/answer/usage.js';
import {
  decodeUsage as decodeMessages,
  lastUsage as lastOfMessages,
} from '../../src/protocols/messages/answer/usage.js';
import {
  decodeTokens as decodeResponses,
  usageOfAnswer as lastOfResponses,
} from '../../src/protocols/responses/answer/usage.js';
import { fc } from '../support/seed.js';

/** What upstreams have been seen to write for a count, and what none should. */
const count = fc.oneof(
  fc.nat(10_000),
  fc.constantFrom(0.5, 1.5, 12.25, -1, -0.5, 1e20, null, undefined, '7', true, []),
);

/** An object with any of these members. */
function counts(...names: readonly string[]) {
  return fc.record(Object.fromEntries(names.map((name) => [name, count])));
}

const openaiNames = ['cached_tokens', 'cache_write_tokens', 'audio_tokens', 'image_tokens'];
/** What some servers write beside the details, with or without them, and gateways that have it from messages. */
const besideNames = [
  'cached_tokens',
  'reasoning_tokens',
  'cache_write_tokens',
  'cache_read_input_tokens',
  'cache_creation_input_tokens',
  'web_search_requests',
  'num_search_queries',
];

/** The counts of a usage, and objects of more that may stand in front of them, behind them, or be missing. */
function withDetails(
  top: fc.Arbitrary<object>,
  details: Readonly<Record<string, fc.Arbitrary<object>>>,
): fc.Arbitrary<object> {
  return fc
    .tuple(top, fc.record(details, { requiredKeys: [] }), fc.boolean())
    .map(([counted, more, isFirst]) => (isFirst ? { ...more, ...counted } : { ...counted, ...more }));
}

interface Protocol {
  readonly member: string;
  readonly usages: fc.Arbitrary<object>;
  /** Of the bytes of an answer. */
  readonly read: (bytes: Buffer) => Usage | null;
  readonly decode: (usage: unknown) => Usage | null;
}

const protocols: Readonly<Record<string, Protocol>> = {
  chat: {
    member: 'usage',
    usages: withDetails(
      counts('prompt_tokens', 'completion_tokens', 'total_tokens', 'prompt_cache_hit_tokens', ...besideNames),
      {
        prompt_tokens_details: counts(...openaiNames),
        completion_tokens_details: counts('reasoning_tokens', 'audio_tokens'),
        server_tool_use: counts('web_search_requests'),
      },
    ),
    read: lastOfChat,
    decode: (usage) => decodeChat({ usage }),
  },
  responses: {
    member: 'usage',
    usages: withDetails(counts('input_tokens', 'output_tokens', 'total_tokens', ...besideNames), {
      input_tokens_details: counts(...openaiNames),
      output_tokens_details: counts('reasoning_tokens', 'audio_tokens'),
    }),
    read: lastOfResponses,
    decode: (usage) => decodeResponses({ usage }, 0),
  },
  messages: {
    member: 'usage',
    usages: withDetails(
      counts(
        'input_tokens',
        'output_tokens',
        'cache_read_input_tokens',
        'cache_creation_input_tokens',
        'thinking_tokens',
        'web_search_requests',
        'ephemeral_1h_input_tokens',
      ),
      {
        cache_creation: counts('ephemeral_1h_input_tokens', 'ephemeral_5m_input_tokens'),
        output_tokens_details: counts('thinking_tokens'),
        server_tool_use: counts('web_search_requests'),
      },
    ),
    read: (bytes) => lastOfMessages(bytes),
    decode: (usage) => decodeMessages(usage),
  },
  generateContent: {
    member: 'usageMetadata',
    usages: counts(
      'promptTokenCount',
      'toolUsePromptTokenCount',
      'candidatesTokenCount',
      'thoughtsTokenCount',
      'cachedContentTokenCount',
    ),
    read: lastOfGenerateContent,
    decode: decodeGenerateContent,
  },
};

for (const [name, { member, usages, read, decode }] of Object.entries(protocols)) {
  test(`${name}: the usage in the bytes of an answer is that of its value`, async (t) => {
    fc.assert(
      fc.property(usages, (usage) => {
        const text = JSON.stringify({ [member]: usage });
        const parsed: unknown = JSON.parse(text);
        const told = (parsed as Record<string, unknown>)[member];
        t.same(read(Buffer.from(text)), decode(told), text);
        return t.passing();
      }),
    );
    t.pass();
  });
}

test('citations are input once, whether or not the total has them', (t) => {
  const counted = { prompt_tokens: 33, completion_tokens: 100, citation_tokens: 500 };
  for (const total_tokens of [133, 633]) {
    const usage = { ...counted, total_tokens };
    const expected = { input: 533, output: 100, reasoning: 0 };
    t.match(decodeChat({ usage }), expected, `${total_tokens}`);
    t.match(lastOfChat(Buffer.from(JSON.stringify({ usage }))), expected, `${total_tokens} in bytes`);
  }
  const completion_tokens_details = { reasoning_tokens: 500 };
  const hidden = { prompt_tokens: 10, completion_tokens: 1000, completion_tokens_details };
  const usage = { ...hidden, citation_tokens: 400, total_tokens: 1510 };
  t.match(decodeChat({ usage }), { input: 410, output: 1500 }, 'the total has the reasoning, not them');
  t.end();
});
