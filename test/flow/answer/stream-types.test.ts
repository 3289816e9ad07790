import { test } from 'tap';
import { testKey } from '../../support/gateway.js';
import { startHere } from '../../support/gateway-here.js';
import { chatRequest, exchange } from '../../support/raw-client.js';
import { post, startTranslated } from '../../support/translated.js';
import {
  chatEvent,
  chunk,
  completion,
  doneEvent,
  jsonAnswer,
  lastChunk,
  startRawUpstream,
  usageEvent,
} from '../../support/upstream.js';

/* A stream was asked for: what the answer is called does not decide what it is taken for. */

const streamed =
  '{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}';
const events = [
  chatEvent({ role: 'assistant', content: 'a' }),
  chatEvent({}, 'stop'),
  usageEvent,
  doneEvent,
].join('');
const messagesBody = {
  model: 'm',
  max_tokens: 50,
  stream: true,
  messages: [{ role: 'user', content: 'hi' }],
};

const headOf = (type: string | null) =>
  `HTTP/1.1 200 OK\r\n${type === null ? '' : `content-type: ${type}\r\n`}transfer-encoding: chunked\r\n\r\n`;

test('JSON that answers a request for a stream is handed on as it came, and its usage counted', async (t) => {
  const upstream = await startRawUpstream(t, jsonAnswer(200, completion));
  const gateway = await startHere(t, { upstreams: [upstream.url] });
  const answer = await exchange(gateway.port, chatRequest(streamed));
  t.equal(answer.status, 200);
  t.equal(answer.body, completion);
  t.match(answer.head, /\r\ncontent-type: application\/json/);
  const line = await gateway.line(({ msg }) => msg === 'request');
  const { prompt_tokens } = (JSON.parse(completion) as { usage: { prompt_tokens: number } }).usage;
  t.match(line, { status: 200, inputTokens: prompt_tokens });
});

test('a translated call gets such an answer in the client’s protocol', async (t) => {
  const { port } = await startTranslated(t, { answer: jsonAnswer(200, completion) });
  const answer = await post(port, '/v1/messages', messagesBody);
  t.equal(answer.status, 200);
  t.match(JSON.parse(answer.body), { type: 'message', role: 'assistant' });
});

test('JSON that comes in small pieces, behind white space, is handed on too', async (t) => {
  const upstream = await startRawUpstream(
    t,
    headOf('text/plain') + chunk(' \n') + chunk('{') + chunk(completion.slice(1)) + lastChunk,
  );
  const { port } = await startHere(t, { upstreams: [upstream.url] });
  t.equal((await exchange(port, chatRequest(streamed))).body, ` \n${completion}`);
});

for (const type of [null, 'text/plain', 'application/json', 'application/octet-stream']) {
  test(`an event stream is told by its first bytes where it is called ${type}`, async (t) => {
    const upstream = await startRawUpstream(t, headOf(type) + chunk(events) + lastChunk);
    const { port } = await startHere(t, { upstreams: [upstream.url] });
    const answer = await exchange(port, chatRequest(streamed));
    t.equal(answer.body, events);
    t.match(answer.head, /\r\ncontent-type: text\/event-stream/);
  });
}

test('one that begins with a comment, byte by byte, is one as well', async (t) => {
  for (const begin of [': ping\n\n', '\n', 'id: 1\n', 'event: message\n', 'retry: 5\n\n']) {
    const text = begin + events;
    const pieces = [...text.slice(0, 12)].map((byte) => chunk(byte)).join('');
    const upstream = await startRawUpstream(t, headOf(null) + pieces + chunk(text.slice(12)) + lastChunk);
    const { port } = await startHere(t, { upstreams: [upstream.url] });
    const answer = await exchange(port, chatRequest(streamed));
    t.ok(answer.body.includes(doneEvent) && answer.status === 200, JSON.stringify(begin));
  }
});

test('a stream without its type is translated', async (t) => {
  const { port } = await startTranslated(t, {
    answer: ({ socket }) => socket.write(headOf(null) + chunk(events) + lastChunk),
  });
  const answer = await post(port, '/v1/messages', messagesBody);
  t.match(answer.body, /event: message_stop/);
});

test('what is neither is refused: a page, a text, white space without end, and nothing', async (t) => {
  for (const text of ['<!doctype html><html></html>', 'dat', 'hello', ' '.repeat(5000), '']) {
    const upstream = await startRawUpstream(t, headOf(null) + (text === '' ? '' : chunk(text)) + lastChunk);
    const { port } = await startHere(t, { upstreams: [upstream.url] });
    const answer = await exchange(port, chatRequest(streamed));
    t.equal(answer.status, 502, JSON.stringify(text.slice(0, 20)));
    t.match(JSON.parse(answer.body), { error: { code: 'unsupported_stream_event' } });
  }
});

test('JSON after a keep-alive becomes the stream’s error event', async (t) => {
  const upstream = await startRawUpstream(t, () => {});
  const { url } = await startHere(t, {
    upstreams: [upstream.url],
    config: { timeouts: { keepAliveMs: 1 } },
  });
  const headers = { authorization: `Bearer ${testKey}`, 'content-type': 'application/json' };
  // The head comes with the first keep-alive.
  const answer = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body: streamed });
  upstream.requests[0]?.socket.write(jsonAnswer(200, completion));
  t.match(await answer.text(), /^(?:: keep-alive\n\n)+data: \{"error":.*unsupported_stream_event/);
});
