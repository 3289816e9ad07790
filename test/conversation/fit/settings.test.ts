import { test } from 'tap';
import type { TargetOptions } from '../../../src/conversation/codec.js';
import { fitRequest } from '../../../src/conversation/fit/fit.js';
import { LeftOut } from '../../../src/conversation/left-out.js';
import type { ConversationRequest, TextProtocolName } from '../../../src/conversation/request.js';
import { tagSignature } from '../../../src/conversation/signature.js';
import { chatCodec } from '../../../src/protocols/chat/index.js';
import { generateContentCodec } from '../../../src/protocols/generate-content/index.js';
import { messagesCodec } from '../../../src/protocols/messages/index.js';
import { responsesCodec } from '../../../src/protocols/responses/index.js';
import { plain, target } from '../../protocols/messages/samples.js';

const codecs = {
  chat: chatCodec,
  responses: responsesCodec,
  messages: messagesCodec,
  generateContent: generateContentCodec,
};

function leftOut(
  to: TextProtocolName,
  given: Partial<ConversationRequest>,
  at: TargetOptions = target,
): readonly string[] {
  const names = new LeftOut();
  fitRequest({ ...plain, ...given }, { rules: codecs[to].rules, options: at, leftOut: names });
  return names.names;
}

const image = (detail: string): ConversationRequest['turns'] => [
  {
    role: 'user',
    parts: [
      {
        kind: 'image',
        source: { kind: 'url', url: 'https://a', mediaType: null },
        detail,
        name: null,
        at: '',
      },
    ],
  },
];
const strict = [{ name: 'f', description: null, parameters: null, strict: true }];
const seeds = { seed: 1, presencePenalty: 1, frequencyPenalty: -1 };

test('settings that the target has no member for are named as the client spells them', async (t) => {
  const chat = {
    from: 'chat',
    ...seeds,
    verbosity: 'low',
    user: 'u',
    parallelCalls: false,
    tools: strict,
  } as const;
  const penalties = ['seed', 'presence_penalty', 'frequency_penalty'];
  t.strictSame(leftOut('chat', chat), []);
  t.strictSame(leftOut('responses', chat), penalties);
  t.strictSame(leftOut('messages', { ...chat, turns: image('low') }), [...penalties, 'verbosity', 'detail']);
  t.strictSame(leftOut('generateContent', chat), ['verbosity', 'user', 'parallel_tool_calls', 'strict']);
  const google = { from: 'generateContent', topK: 3, ...seeds } as const;
  t.strictSame(leftOut('chat', google), ['generationConfig.topK']);
  t.strictSame(leftOut('chat', google, { ...target, topK: true }), []);
  t.strictSame(leftOut('responses', google), [
    'generationConfig.topK',
    'generationConfig.seed',
    'generationConfig.presencePenalty',
    'generationConfig.frequencyPenalty',
  ]);
  t.strictSame(leftOut('generateContent', google), []);
  const messages = { from: 'messages', topK: 3, user: 'u', parallelCalls: false } as const;
  t.strictSame(leftOut('chat', messages), ['top_k']);
  t.strictSame(leftOut('generateContent', messages), [
    'metadata.user_id',
    'tool_choice.disable_parallel_tool_use',
  ]);
  t.strictSame(leftOut('messages', { from: 'responses', verbosity: 'low' }), ['text.verbosity']);
});

test('defaults are no loss', async (t) => {
  const given = { presencePenalty: 0, frequencyPenalty: 0, parallelCalls: true, turns: image('auto') };
  for (const to of ['responses', 'messages', 'generateContent'] as const)
    t.strictSame(leftOut(to, given), []);
});

test('reasoning is told as lost where none of its turn is signed for the target', async (t) => {
  const token = tagSignature({ protocol: 'messages', model: 'u', value: 'x', redacted: false });
  const turns = (...signatures: (string | null)[]): ConversationRequest['turns'] => [
    ...plain.turns,
    {
      role: 'assistant',
      parts: signatures.map((signature) => ({ kind: 'reasoning', text: 'hm', signature })),
    },
    ...plain.turns,
  ];
  const given = { from: 'generateContent', turns: turns(null, token) } as const;
  t.strictSame(leftOut('messages', given), []);
  for (const to of ['chat', 'responses', 'generateContent'] as const)
    t.strictSame(leftOut(to, given), ['thoughtSignature']);
  const call = { kind: 'toolCall', id: 'c', name: 'f', input: '{}', custom: false, at: '' } as const;
  const unsigned = { kind: 'reasoning', text: 'hm', signature: null } as const;
  const calling: ConversationRequest['turns'] = [{ role: 'assistant', parts: [unsigned, call] }];
  t.strictSame(leftOut('messages', { from: 'responses', turns: calling }), ['encrypted_content']);
  t.strictSame(leftOut('messages', { from: 'responses', turns: turns(null) }), []);
  // Of a target that signs nothing: only such a target takes it back.
  const signature = tagSignature({ protocol: 'messages', model: 'u', value: '', redacted: false });
  const ofUnsigned = {
    from: 'chat',
    turns: [{ role: 'assistant', parts: [{ ...unsigned, signature }, call] }],
  } as const;
  t.strictSame(leftOut('messages', ofUnsigned), ['reasoning_content']);
  t.strictSame(leftOut('messages', ofUnsigned, { ...target, unsignedThinking: true }), []);
});

test('tools that a vendor runs are told with their types where they are left out', async (t) => {
  const hostedTools = [
    { type: 'web_search', at: 'tools[1]' },
    { type: 'web_search_options', at: 'web_search_options' },
  ];
  const names = new LeftOut();
  const options: TargetOptions = { ...target, hostedTools: 'drop' };
  fitRequest({ ...plain, hostedTools }, { rules: chatCodec.rules, options, leftOut: names });
  t.strictSame(names.names, ['tools.web_search', 'web_search_options']);
  t.strictSame(leftOut('chat', { hostedTools }), []);
});
