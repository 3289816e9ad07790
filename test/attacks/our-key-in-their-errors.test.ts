import { type Test, test } from 'tap';
import { startGateway } from '../support/gateway.js';
import { clientFormats } from '../support/media/client-formats.js';
import { mediaConfig } from '../support/media/gateway.js';
import { openClient, startRealtimeUpstream } from '../support/realtime.js';
import { startTranslated } from '../support/translated.js';
import {
  chatEvent,
  chunk,
  jsonAnswer,
  lastChunk,
  startRawUpstream,
  streamHead,
} from '../support/upstream.js';
import { type CallFace, callFace, leak, ownKey, textFaces } from './account-answers.js';

const slashed = 'sk/own+Zq8WvN3/mLr5==';
const unicode = [...ownKey].map((each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');

/** Errors that say nothing of an account, and repeat what they were sent with. */
const echoes: readonly (readonly [string, string])[] = [
  ['as it is', JSON.stringify({ error: { message: `POST with Bearer ${ownKey} failed`, code: 500 } })],
  ['as a text', JSON.stringify({ error: `cannot route ${ownKey}` })],
  ['in escapes', `{"error":{"message":"cannot route ${unicode}","type":"server_error"}}`],
  ['with escaped slashes', `{"error":{"message":"route ${slashed.replaceAll('/', '\\/')}"}}`],
  ['as a URL has it', JSON.stringify({ error: { message: `/v1?key=${encodeURIComponent(slashed)}` } })],
  ['in JSON in JSON', JSON.stringify({ error: { message: 'x', raw: `{"key":"${unicode}"}` } })],
  ['beside the error', JSON.stringify({ error: { message: 'x' }, request: { key: ownKey } })],
  ['in a form of its own', JSON.stringify({ failure: { text: ownKey } })],
];
const secret = new RegExp(`Zq8WvN3|${unicode.slice(0, 30).replaceAll('\\', '\\\\')}`);

/** The first good event of each upstream protocol. */
const good: Readonly<Record<string, string>> = {
  chat: chatEvent({ role: 'assistant', content: 'hi' }),
  messages: `event: message_start\ndata: ${JSON.stringify({ type: 'message_start', message: { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null, usage: { input_tokens: 1, output_tokens: 1 } } })}\n\n`,
  generateContent: `data: ${JSON.stringify({ candidates: [{ content: { role: 'model', parts: [{ text: 'hi' }] }, index: 0 }] })}\n\n`,
};

function streaming(face: CallFace): CallFace {
  if (face.name === 'generateContent')
    return { ...face, path: face.path.replace(':generateContent', ':streamGenerateContent?alt=sse') };
  return { ...face, body: { ...(face.body as object), stream: true } };
}

const stage = (t: Test, kind: string) =>
  startTranslated(t, { kind, answer: '', upstream: { apiKeys: [ownKey, slashed] } });

for (const kind of Object.keys(good)) {
  test(`an error of a ${kind} upstream that repeats our key does not get out`, async (t) => {
    const gateway = await stage(t, kind);
    for (const [how, body] of echoes) {
      const event = `data: ${body}\n\n`;
      for (const [where, answer] of [
        ['first', streamHead + chunk(event) + lastChunk],
        ['in the middle', streamHead + chunk(good[kind] as string) + chunk(event) + lastChunk],
        ['in one piece', streamHead + chunk(good[kind] + event + good[kind]) + lastChunk],
        ['whole', jsonAnswer(200, body)],
        ['with a status', jsonAnswer(400, body, `x-request-id: ${ownKey}\r\nretry-after: 1\r\n`)],
      ] as const) {
        gateway.upstream.answer = answer;
        for (const face of textFaces) {
          const isStream = answer.startsWith(streamHead);
          const { head, body: told } = await callFace(gateway.port, isStream ? streaming(face) : face);
          t.notMatch(head + told, secret, `${face.name}: ${how}, ${where}`);
        }
      }
    }
    t.notMatch(JSON.stringify(gateway.lines), /Zq8WvN3/);
    t.ok(gateway.lines.some(({ msg }) => msg === "an upstream refused the gateway's API key or account"));
  });
}

test('an error without our key passes as it came', async (t) => {
  const gateway = await stage(t, 'chat');
  const event = `data: ${JSON.stringify({ error: { message: 'The engine is busy.', code: 'busy' } })}\n\n`;
  gateway.upstream.answer = streamHead + chunk(good.chat as string) + chunk(event) + lastChunk;
  const { body } = await callFace(gateway.port, streaming(textFaces[0] as CallFace));
  t.match(body, event.trim());
  gateway.upstream.answer = jsonAnswer(400, '{"error":{"message":"No such voice."}}', 'x-request-id: r1\r\n');
  const refused = await callFace(gateway.port, textFaces[0] as CallFace);
  t.match(refused.head, /x-upstream-request-id: r1/);
  t.match(refused.body, /No such voice/);
});

test('the name of our account stays here, and the limit is told all the same', async (t) => {
  const gateway = await stage(t, 'chat');
  const message = 'Rate limit reached for m in organization org-LeakyOwner42 on tokens per min.';
  gateway.upstream.answer = jsonAnswer(
    429,
    JSON.stringify({ error: { message, code: 'rate_limit_exceeded' } }),
    'retry-after: 2\r\n',
  );
  for (const face of textFaces) {
    const answer = await callFace(gateway.port, face);
    t.equal(answer.status, 429, face.name);
    t.match(answer.head, /retry-after: 2/, face.name);
    t.notMatch(answer.body, leak, face.name);
  }
});

test('a session does not repeat our key', async (t) => {
  const error = { type: 'server_error', message: `upstream said: Bearer ${ownKey}` };
  const messages: readonly (string | Buffer)[] = [
    JSON.stringify({ type: 'error', event_id: 'e', error }),
    JSON.stringify({ pad: 'x'.repeat(400), type: 'error', error }),
    Buffer.from(JSON.stringify({ type: 'error', error })),
    JSON.stringify({ code: 500, message: error.message }),
    JSON.stringify([{ error }]),
    `proxy error: ${ownKey}`,
    JSON.stringify({ type: 'response.done', response: { status_details: { error } } }),
    `{"type":"error","error":{"message":"${unicode}"}}`,
  ];
  for (const message of messages) {
    const upstream = await startRealtimeUpstream(t, ({ socket }) => socket.send(message));
    const { port } = await startGateway(t, {
      upstreams: [upstream.url],
      protocols: ['realtime'],
      config: { upstreams: { u0: { kind: 'chat', baseUrl: upstream.url, apiKeys: [ownKey] } } },
    });
    const client = await openClient(t, port);
    const { code, reason } = await client.closed;
    t.equal(code, 1011, String(message).slice(0, 60));
    t.notMatch(client.received.join() + reason, secret);
  }
});

test('a task that fails does not repeat our key', async (t) => {
  for (const kind of ['chat', 'generic', 'vendork']) {
    for (const isLater of [false, true]) {
      const words = `failed: Bearer ${ownKey}`;
      const failed = JSON.stringify({
        ...{
          id: 'theirs',
          task_id: 'theirs',
          status: 'failed',
          error: { code: 'x', message: words },
          code: 0,
        },
        data: { task_id: 'theirs', task_status: 'failed', task_status_msg: words },
      });
      const queued = JSON.stringify({
        ...{ id: 'theirs', task_id: 'theirs', status: 'queued', code: 0 },
        data: { task_id: 'theirs', task_status: 'submitted' },
      });
      const upstream = await startRawUpstream(t, ({ head, socket }) => {
        socket.write(jsonAnswer(200, head.startsWith('POST') && isLater ? queued : failed));
      });
      const gateway = await startGateway(t, {
        config: mediaConfig(t, {
          upstreams: { u: { kind, baseUrl: upstream.url, apiKeys: [ownKey] } },
          models: { m: { protocols: ['video'], targets: [{ upstream: 'u' }] } },
        }),
      });
      for (const [index, clientFormat] of clientFormats.entries()) {
        const made = await clientFormat.create(gateway, { model: 'm', prompt: 'a' });
        t.notMatch(made.text, secret, `${kind} by client format ${index}`);
        if (!isLater) continue;
        const shown = await clientFormat.show(gateway, clientFormat.idOf(made));
        t.equal(shown.state, 'failed', `${kind} by client format ${index}`);
        t.notMatch(shown.heard.text, secret, `${kind} by client format ${index}`);
      }
      await gateway.gateway.close();
      await upstream.close();
    }
  }
});
