import { test } from 'tap';
import type { TextProtocolName } from '../../src/conversation/request.js';
import { GatewayError } from '../../src/errors.js';
import { textEndpoints } from '../../src/protocols/text.js';
import type { JsonObject } from '../../src/wire/json.js';

const sealer = { seal: (text: string) => text, open: () => null };
const word = 'x'.repeat(100_000);
const user = { role: 'user', content: 'hi' };

const bodies: Readonly<Record<TextProtocolName, readonly JsonObject[]>> = {
  chat: [
    { messages: [{ role: word, content: 'hi' }] },
    { messages: [{ role: 'user', content: [{ type: word }] }] },
    { messages: [user], modalities: [word] },
    { messages: [user], response_format: { type: word } },
    { messages: [user], tool_choice: { type: word } },
  ],
  responses: [{ input: 'hi', text: { format: { type: word } } }],
  messages: [
    { messages: [{ role: word, content: 'hi' }] },
    { messages: [{ role: 'user', content: [{ type: 'image', source: { type: word } }] }] },
    { messages: [user], thinking: { type: word } },
    { messages: [user], output_config: { format: { type: word } } },
    { messages: [user], tool_choice: { type: word } },
  ],
  generateContent: [
    { contents: [{ role: word, parts: [{ text: 'hi' }] }] },
    { contents: [{ parts: [{ text: 'hi' }] }], generationConfig: { responseModalities: [word] } },
    { contents: [{ parts: [{ text: 'hi' }] }], generationConfig: { responseMimeType: word } },
  ],
};

test('a refusal repeats no more than the beginning of a word of the client', async (t) => {
  for (const [protocol, endpoint] of Object.entries(textEndpoints)) {
    for (const body of bodies[protocol as TextProtocolName]) {
      const members = Object.keys(body).join();
      try {
        endpoint.translation.codec.decodeRequest(body, false, sealer);
        t.fail(`${protocol} takes ${members}`);
      } catch (error) {
        t.ok(error instanceof GatewayError && error.status === 400, `${protocol}: ${members}`);
        t.ok(String(error).length < 400, `${protocol}: ${members}`);
      }
    }
  }
});

test('a tool of an unknown type is named by the beginning of it', async (t) => {
  for (const protocol of ['chat', 'responses', 'messages'] as const) {
    const body = { messages: [user], input: 'hi', tools: [{ type: word }] };
    const { hostedTools } = textEndpoints[protocol].translation.codec.decodeRequest(body, false, sealer);
    t.equal(hostedTools.length, 1, protocol);
    t.ok((hostedTools[0]?.type.length ?? 0) <= 64, protocol);
  }
  const body = { contents: [{ parts: [{ text: 'hi' }] }], tools: [{ [word]: {} }] };
  const [hosted] = textEndpoints.generateContent.translation.codec.decodeRequest(
    body,
    false,
    sealer,
  ).hostedTools;
  t.ok(hosted !== undefined && hosted.type.length <= 64 && hosted.at.length < 100, 'generateContent');
});

test('an error repeats no more than the beginning of the type of an event of another protocol', async (t) => {
  const types: Readonly<Record<TextProtocolName, string>> = {
    chat: 'message_',
    responses: 'message_',
    messages: 'response.',
    generateContent: 'message_',
  };
  for (const [protocol, { judgeStart }] of Object.entries(textEndpoints)) {
    const type = types[protocol as TextProtocolName] + word;
    const error = judgeStart(Buffer.from(`data: ${JSON.stringify({ type })}\n\n`));
    t.ok(error instanceof GatewayError && error.kind === 'unsupported_stream_event', protocol);
    t.ok(String(error).length < 400, protocol);
  }
  const error = textEndpoints.messages.judgeStart(Buffer.from(`data: ${JSON.stringify({ [word]: 1 })}\n\n`));
  t.ok(error instanceof GatewayError && error.message.length < 400, 'a member');
});
