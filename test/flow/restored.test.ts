import { test } from 'tap';
import { carryInId } from '../../src/conversation/carrying-id.js';
import { tagSignature, tokenAsBytes } from '../../src/conversation/signature.js';
import { tagUnsigned } from '../../src/conversation/unsigned-reasoning.js';
import { type JsonObject, parseObject } from '../../src/wire/json.js';
import { startGateway } from '../support/gateway.js';
import { post, textProtocols as protocols } from '../support/translated.js';
import { jsonAnswer, startRawUpstream } from '../support/upstream.js';

const ofChat = tagUnsigned('reasoning_content', 'deepseek');
const ofMessages = tagSignature({ protocol: 'messages', model: 'claude', value: 'U0lH', redacted: false });

/** A gateway whose model `m` is served by an upstream of a kind as it comes; others of its models are translated. */
async function switchedTo(t: Parameters<typeof startGateway>[0], kind: string, target = {}) {
  const upstream = await startRawUpstream(t, jsonAnswer(200, '{}'));
  const { port } = await startGateway(t, {
    upstreams: [],
    config: {
      upstreams: {
        chat: { kind: 'chat', baseUrl: upstream.url },
        messages: { kind: 'messages', baseUrl: upstream.url },
        generateContent: { kind: 'generateContent', baseUrl: upstream.url },
      },
      models: {
        m: { protocols, targets: [{ upstream: kind, model: 'm', ...target }] },
        other: { protocols, targets: [{ upstream: kind === 'chat' ? 'messages' : 'chat' }] },
      },
    },
  });
  return async (path: string, body: JsonObject) => {
    await post(port, path, body);
    return parseObject(upstream.requests.at(-1)?.body.toString() ?? '');
  };
}

test('a messages upstream gets no reasoning that a chat upstream gave before a switch of model', async (t) => {
  const send = await switchedTo(t, 'messages');
  const body = (signature: string | null) => ({
    model: 'm',
    max_tokens: 5000,
    ...(signature === null ? {} : { thinking: { type: 'enabled', budget_tokens: 1024 } }),
    messages: [
      { role: 'user', content: 'a' },
      {
        role: 'assistant',
        content: [
          ...(signature === null ? [] : [{ type: 'thinking', thinking: 'hm', signature }]),
          { type: 'tool_use', id: 'c', name: 'f', input: {} },
        ],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: 'x' }] },
    ],
  });
  t.same(await send('/v1/messages', body(ofChat)), body(null), 'and does not think without it');
  t.same(await send('/v1/messages', body('')), body(null), 'nor an empty signature');
  t.same(await send('/v1/messages', body('RXdB')), body('RXdB'), 'its own stays');
});

test('thinking without a signature stays where it has to be returned, and nowhere else', async (t) => {
  const ofDeepSeek = tagSignature({ protocol: 'messages', model: 'deepseek', value: '', redacted: false });
  const body = (...signatures: string[]) => ({
    model: 'm',
    max_tokens: 5000,
    messages: [
      { role: 'user', content: 'a' },
      {
        role: 'assistant',
        content: [
          ...signatures.map((signature) => ({ type: 'thinking', thinking: 'hm', signature })),
          { type: 'tool_use', id: 'c', name: 'f', input: {} },
        ],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: 'x' }] },
    ],
  });
  for (const target of [{ preset: 'deepseek' }, { translation: { unsignedThinking: true } }]) {
    const send = await switchedTo(t, 'messages', target);
    t.same(await send('/v1/messages', body('')), body(''), 'as Claude Code writes it');
    t.same(await send('/v1/messages', body(ofDeepSeek)), body(''), 'as a translation gave it');
    t.same(await send('/v1/messages', body(ofChat, '')), body(''), 'another vendor’s is left out');
  }
  const send = await switchedTo(t, 'messages');
  t.same(await send('/v1/messages', body(ofDeepSeek)), body(), 'the vendor refuses it');
});

test('a generateContent upstream gets what stands for a signature in place of another vendor’s', async (t) => {
  const send = await switchedTo(t, 'generateContent');
  const body = (thoughtSignature: string) => ({
    contents: [
      { role: 'user', parts: [{ text: 'a' }] },
      { role: 'model', parts: [{ functionCall: { name: 'f', args: {} }, thoughtSignature }] },
      { role: 'user', parts: [{ functionResponse: { name: 'f', response: { result: 'x' } } }] },
    ],
  });
  const path = '/v1beta/models/m:generateContent';
  const skipped = body('skip_thought_signature_validator');
  for (const token of [ofChat, ofMessages]) {
    t.same(await send(path, body(tokenAsBytes(token))), skipped);
    t.same(
      await send(path, body(Buffer.from(token).toString('base64url'))),
      skipped,
      'in the other alphabet',
    );
    t.same(await send(path, body(token)), skipped, 'as older answers had it');
  }
  t.same(await send(path, body('U0lHTg')), body('U0lHTg'), 'its own stays as the client wrote it');
});

test('a chat upstream gets ids of calls without the signatures of another upstream', async (t) => {
  const send = await switchedTo(t, 'chat');
  const body = (id: string) => ({
    model: 'm',
    messages: [
      { role: 'user', content: 'a' },
      {
        role: 'assistant',
        content: null,
        reasoning_content: 'hm',
        tool_calls: [{ id, type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: id, content: 'x' },
    ],
  });
  t.same(await send('/v1/chat/completions', body(carryInId('c1', [ofMessages]) ?? '')), body('c1'));
  t.same(await send('/v1/chat/completions', body('c1')), body('c1'), 'its own reasoning goes as it is');
});
