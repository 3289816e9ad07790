import { test } from 'tap';
import { passedChatRequest } from '../../src/protocols/chat/request/schema.js';
import {
  passedGenerateContentRequest,
  passedCountTokensRequest as passedGoogleCountTokens,
} from '../../src/protocols/generate-content/request/schema.js';
import {
  passedCountTokensRequest,
  passedMessagesRequest,
} from '../../src/protocols/messages/request/schema.js';
import {
  passedCompactRequest,
  passedResponsesRequest,
} from '../../src/protocols/responses/request/schema.js';
import type { CompiledSchema } from '../../src/schema/accept.js';
import { type Refused, refuses, takes } from './verdicts.js';

/* What is asked of a body that is passed on as it came: what routes, limits and meters, and nothing else. */

const odd = { temperature: 'hot', tools: {}, metadata: [1], top_p: -1 };

test('what neither routes nor meters is not looked at, and no body is parsed for that', async (t) => {
  takes(t, passedChatRequest, { model: 'm', messages: 'hi', n: -1, max_tokens: 0, stream: null, ...odd });
  takes(t, passedMessagesRequest, { model: 'm', messages: {}, max_tokens: -1, stream: true, ...odd });
  takes(t, passedCountTokensRequest, { model: 'm', messages: [], ...odd });
  takes(t, passedResponsesRequest, { model: 'm', input: {}, max_output_tokens: 0, ...odd });
  takes(t, passedCompactRequest, { model: 'm', input: null, ...odd });
  const generationConfig = { maxOutputTokens: '9', candidateCount: 0, topP: 7 };
  takes(t, passedGenerateContentRequest, { contents: 'hi', generationConfig, ...odd });
  t.ok(passedGoogleCountTokens.check({ generateContentRequest: { contents: {}, generationConfig } }));
  t.ok(passedMessagesRequest.check({ model: 'm', thread: { type: 'continue' } }));
});

const refused: readonly (readonly [CompiledSchema, ...Refused])[] = [
  [passedChatRequest, { messages: [] }, 'model', "Missing required parameter 'model'"],
  [passedChatRequest, { model: 'm' }, 'messages', "Missing required parameter 'messages'."],
  [passedChatRequest, { model: '', messages: [] }, 'model', 'a non-empty string'],
  [passedChatRequest, { model: 'm', input: 'hi' }, 'input', 'POST /v1/responses'],
  [passedChatRequest, { model: 'm', messages: [], stream: 'yes' }, 'stream', 'a boolean'],
  [passedChatRequest, { model: 'm', messages: [], n: '2' }, 'n', 'an integer'],
  [passedChatRequest, { model: 'm', messages: [], max_tokens: '9' }, 'max_tokens', 'an integer'],
  [
    passedChatRequest,
    { model: 'm', messages: [], stream_options: { include_usage: 1 } },
    'stream_options.include_usage',
    'a boolean',
  ],
  [passedMessagesRequest, { model: 'm', max_tokens: 5 }, 'messages', 'Missing required parameter'],
  [passedMessagesRequest, { model: 'm', thread: null }, 'messages', 'Missing required parameter'],
  [passedMessagesRequest, { model: 'm', messages: [], max_tokens: '5' }, 'max_tokens', 'an integer'],
  [passedCountTokensRequest, { model: 'm' }, 'messages', 'Missing required parameter'],
  [passedResponsesRequest, { model: 'm' }, 'input', 'Missing required parameter'],
  [passedResponsesRequest, { model: 'm', messages: [] }, 'messages', 'POST /v1/chat/completions'],
  [
    passedResponsesRequest,
    { model: 'm', input: 'x', max_output_tokens: 1.5 },
    'max_output_tokens',
    'integer',
  ],
  [passedGenerateContentRequest, {}, 'contents', 'Missing required parameter'],
  [
    passedGenerateContentRequest,
    { contents: [], generationConfig: { candidateCount: [2] } },
    'generationConfig.candidateCount',
    'an integer, a string or null',
  ],
];

for (const [schema, ...one] of refused) {
  test(`refused with its place: ${JSON.stringify(one[0])}`, async (t) => refuses(t, schema, one));
}
