import { once } from 'node:events';
import { type Test, test } from 'tap';
import { eventually } from '../support/eventually.js';
import { type LogLine, startGateway } from '../support/gateway.js';
import { open, readAnswer } from '../support/raw-client.js';
import { post, postBytes, startTranslated, textProtocols } from '../support/translated.js';
import {
  chatEvent,
  chunk,
  completion,
  doneEvent,
  jsonAnswer,
  lastChunk,
  startHttpUpstream,
  startRawUpstream,
  streamHead,
  usageEvent,
} from '../support/upstream.js';

const messagesBody = { model: 'm', max_tokens: 50, messages: [{ role: 'user', content: 'hi' }] };
const streamedMessages = { ...messagesBody, stream: true };
const googleBody = { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] };
const arrayStream = '/v1beta/models/m:streamGenerateContent';
const quick = { timeouts: { keepAliveMs: 1 } };
const whole = [
  chatEvent({ role: 'assistant', content: 'a' }),
  chatEvent({}, 'stop'),
  usageEvent,
  doneEvent,
].join('');

/** A server of images: each answer is held until its path says `now`, or for ever. */
async function startImages(t: Test, answer: (path: string) => number | null) {
  const open = { now: 0, asked: 0 };
  const { origin: url } = await startHttpUpstream(t, (request, response) => {
    open.now++;
    open.asked++;
    response.on('close', () => open.now--);
    const status = answer(request.url ?? '');
    if (status === null) return;
    response.writeHead(status, { 'content-type': 'image/png' });
    response.end(Buffer.alloc(10));
  });
  return { open, url };
}

const withImages = (...urls: readonly string[]) => ({
  model: 'm',
  stream: true,
  messages: [
    {
      role: 'user',
      content: urls.map((url) => ({ type: 'image_url', image_url: { url } })),
    },
  ],
});

test('an image that fails after keep-alives have left ends the stream with an error event', async (t) => {
  let release: () => void = () => {};
  const { origin } = await startHttpUpstream(t, (_request, response) => {
    release = () => {
      response.writeHead(404);
      response.end();
    };
    setTimeout(release, 2500);
  });
  const { port, line } = await startTranslated(t, {
    kind: 'generateContent',
    answer: '',
    upstream: { fetchPrivate: true },
    config: quick,
  });
  const url = `${origin}/slow`;
  const { status, body } = await post(port, '/v1/chat/completions', withImages(url));
  t.equal(status, 200);
  t.match(body, /^(: keep-alive\n\n)+data: \{"error":\{"message":"messages\[0\]/);
  t.notMatch(body, /HTTP|x-request-id/);
  t.match(await line(({ msg }) => msg === 'request'), { outcome: 'refused', error: 'invalid_value' });
});

test('an upstream that stays empty after keep-alives have left is an error in every framing', async (t) => {
  const { port } = await startTranslated(t, {
    answer: ({ socket }) => {
      socket.write(streamHead);
      setTimeout(() => socket.write(lastChunk), 2500);
    },
    config: quick,
  });
  const [responses, messages, array] = await Promise.all([
    post(port, '/v1/responses', { model: 'm', input: 'hi', stream: true }),
    post(port, '/v1/messages', streamedMessages),
    post(port, arrayStream, googleBody),
  ]);
  t.match(responses?.body, /^: keep-alive\n\n(.|\n)*event: error\ndata: \{"type":"error"/);
  t.match(messages?.body, /event: error\ndata: \{"type":"error"/);
  t.match((JSON.parse(array?.body ?? '') as object[]).at(-1), { error: { code: 502 } });
});

test('an upstream that fails behind keep-alives, before any of its answer has left, is not charged for', async (t) => {
  const event = (data: object): string => chunk(`data: ${JSON.stringify(data)}\n\n`);
  const begin = { type: 'message_start', message: { usage: { input_tokens: 42, output_tokens: 1 } } };
  const text = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'abcd' } };
  const { port, line, lines, upstream } = await startTranslated(t, {
    kind: 'messages',
    answer: ({ socket }, index) => socket.write(streamHead + event(begin) + (index === 0 ? '' : event(text))),
    config: quick,
  });
  const body = { model: 'm', stream: true, messages: messagesBody.messages };
  for (const index of [0, 1]) {
    const client = await open(port, postBytes('/v1/chat/completions', body));
    const answer = readAnswer(client);
    // A keep-alive, or the text.
    await once(client, 'data');
    upstream.requests[index]?.socket.destroy();
    await answer;
  }
  const failed = (): readonly LogLine[] => lines.filter(({ outcome }) => outcome === 'upstream_error');
  await line(() => failed().length === 2);
  t.match(
    failed().map(({ inputTokens, outputTokens }) => [inputTokens, outputTokens]),
    [
      [undefined, undefined],
      [42, 1],
    ],
  );
});

test('an upstream that is busy with what the client does not see is filled with keep-alives', async (t) => {
  let pieces = 0;
  const { port } = await startTranslated(t, {
    answer: ({ socket }) => {
      socket.write(streamHead);
      const timer = setInterval(() => {
        if (pieces++ < 14) socket.write(chunk(chatEvent({ reasoning_content: 'hidden ' })));
        else {
          clearInterval(timer);
          socket.write(chunk(whole) + lastChunk);
        }
      }, 200);
    },
    config: { timeouts: { keepAliveMs: 1000 } },
  });
  const { body } = await post(port, `${arrayStream}?alt=sse`, googleBody);
  t.match(body, /^: keep-alive\n\n(.|\n)*"text":"a"/);
  t.notMatch(body, /hidden/);
});

test('the stream ends with its protocol’s end, whatever the upstream’s connection does', async (t) => {
  const { port } = await startTranslated(t, {
    answer: ({ socket }) => socket.write(streamHead + chunk(whole)),
    config: { timeouts: { idleMs: 60_000 } },
  });
  const { body } = await post(port, '/v1/messages', streamedMessages);
  t.match(body, /event: message_stop\ndata: \{"type":"message_stop"\}\n\n$/);
});

test('a connection that breaks behind the last event of a stream that passes as it comes is no error', async (t) => {
  const { port } = await startTranslated(t, {
    answer: ({ socket }) => {
      socket.write(streamHead + chunk(whole));
      setTimeout(() => socket.destroy(), 20);
    },
  });
  const { body } = await post(port, '/v1/chat/completions', {
    model: 'm',
    stream: true,
    stream_options: { include_usage: true },
    messages: [{ role: 'user', content: 'hi' }],
  });
  t.equal(body, whole);
});

test('a comment before an event that is too large to be judged loses nothing', async (t) => {
  const large = chatEvent({ role: 'assistant', content: 'A'.repeat(3 * 1024 * 1024) });
  const bytes = `: hello\n\n${large}${chatEvent({}, 'stop')}${doneEvent}`;
  const { port } = await startTranslated(t, {
    answer: ({ socket }) => {
      socket.write(streamHead + chunk(': hello\n\n'));
      setImmediate(() => socket.write(chunk(bytes.slice(': hello\n\n'.length)) + lastChunk));
    },
  });
  const body = {
    model: 'm',
    stream: true,
    stream_options: { include_usage: true },
    messages: messagesBody.messages,
  };
  const answer = await post(port, '/v1/chat/completions', body);
  t.equal(answer.body.length, bytes.length);
});

test('a client that leaves while its images are fetched ends the fetch, on a second target too', async (t) => {
  const images = await startImages(t, () => null);
  const google = await startRawUpstream(t, () => {});
  const { port } = await startGateway(t, {
    upstreams: [],
    config: {
      upstreams: {
        down: { kind: 'chat', baseUrl: 'http://127.0.0.1:1/v1' },
        google: { kind: 'generateContent', baseUrl: google.url, fetchPrivate: true },
      },
      models: {
        m: { protocols: textProtocols, targets: [{ upstream: 'down' }, { upstream: 'google', priority: 1 }] },
      },
    },
  });
  const client = await open(port, postBytes('/v1/chat/completions', withImages(`${images.url}/a.png`)));
  await eventually(() => images.open.now > 0);
  client.destroy();
  await eventually(() => images.open.now === 0);
  t.equal(images.open.asked, 1);
  t.equal(google.requests.length, 0);
});

test('images are fetched under the limits of bodies and of time', async (t) => {
  const images = await startImages(t, () => null);
  const small = 64 * 1024;
  const bounded = await startTranslated(t, {
    kind: 'generateContent',
    answer: '',
    upstream: { fetchPrivate: true },
    config: {
      limits: { bodyBytes: small, bufferedBytes: 5 * small },
      timeouts: { totalMs: 1500 },
    },
  });
  const answers = await Promise.all(
    Array.from({ length: 10 }, () =>
      post(bounded.port, '/v1/chat/completions', withImages(`${images.url}/a.png`)),
    ),
  );
  const statuses = answers.map(({ status }) => status);
  const late = answers.find(({ status }) => status === 400);
  t.ok(
    statuses.every((status) => status === 400),
    'what does not come takes up no room',
  );
  t.equal(images.open.asked, 10);
  t.match(JSON.parse(late?.body ?? ''), { error: { param: 'messages[0].content[0]' } });
  const closed = await startTranslated(t, { kind: 'generateContent', answer: '' });
  const refused = await post(closed.port, '/v1/chat/completions', withImages(`${images.url}/c.png`));
  t.equal(refused.status, 400);
  t.match(refused.body, /cannot be fetched/, 'a private address is not asked');
});

test('a target that cannot be asked does not hide that the one before it is down', async (t) => {
  const { port } = await startGateway(t, {
    upstreams: [],
    config: {
      upstreams: {
        down: { kind: 'chat', baseUrl: 'http://127.0.0.1:1/v1' },
        other: { kind: 'messages', baseUrl: 'http://127.0.0.1:1/v1' },
      },
      models: {
        m: { protocols: textProtocols, targets: [{ upstream: 'down' }, { upstream: 'other', priority: 1 }] },
      },
    },
  });
  const answer = await post(port, '/v1/chat/completions', {
    model: 'm',
    n: 2,
    messages: messagesBody.messages,
  });
  t.equal(answer.status, 502);
});

test('a translated error keeps the words and the hints of the upstream', async (t) => {
  const hints =
    'retry-after: 1.5\r\nretry-after-ms: 1500\r\nx-should-retry: false\r\nx-ratelimit-limit-requests: 3\r\nx-request-id: up\r\n';
  const limited = await startTranslated(t, {
    answer: jsonAnswer(429, '[{"error":{"message":"slow"}}]', hints),
  });
  const told = await post(limited.port, '/v1/messages', messagesBody);
  t.match(JSON.parse(told.body), { error: { type: 'rate_limit_error', message: 'slow' } });
  for (const line of [
    'retry-after: 1.5',
    'retry-after-ms: 1500',
    'x-should-retry: false',
    'x-ratelimit-limit-requests: 3',
    'x-upstream-request-id: up',
  ])
    t.match(told.head, new RegExp(`\r\n${line}\r\n`));
  t.equal(told.head.match(/retry-after:/g)?.length, 1);
  const detailed = await startTranslated(t, { answer: jsonAnswer(422, '{"detail":"no such field"}') });
  const refused = await post(detailed.port, '/v1/messages', messagesBody);
  t.equal(refused.status, 422);
  t.match(refused.body, /no such field/);
  const padding = ' '.repeat(300 * 1024);
  const large = await startTranslated(t, { answer: jsonAnswer(500, `{"error":{"message":"x"}}${padding}`) });
  const translated = await post(large.port, '/v1/messages', messagesBody);
  t.equal(translated.status, 500);
  t.match(JSON.parse(translated.body), { type: 'error' });
});

test('a translated answer is JSON whatever the upstream called its own', async (t) => {
  const bare = `HTTP/1.1 200 OK\r\ncontent-length: ${completion.length}\r\n\r\n${completion}`;
  const { port } = await startTranslated(t, { answer: bare });
  const { head, body } = await post(port, '/v1/messages', messagesBody);
  t.match(head, /\r\ncontent-type: application\/json/);
  t.match(JSON.parse(body), { type: 'message' });
});

test('an array of events takes large ones, and no end mark of another protocol', async (t) => {
  const data = 'A'.repeat(1_500_000);
  const block = JSON.stringify({
    candidates: [
      {
        content: { role: 'model', parts: [{ inlineData: { mimeType: 'image/png', data } }] },
        finishReason: 'STOP',
        index: 0,
      },
    ],
  });
  const { port } = await startTranslated(t, {
    kind: 'generateContent',
    answer: `${streamHead}${chunk(`data: ${block}\n\ndata: [DONE]\n\n`)}${lastChunk}`,
  });
  const { body } = await post(port, arrayStream, googleBody);
  t.equal(body, `[${block}\n]`);
});

test('an upstream that reports no usage gets an estimated one, marked in the log', async (t) => {
  const bare = JSON.parse(completion) as Record<string, unknown>;
  const answer = JSON.stringify({ ...bare, usage: undefined });
  const stream =
    chatEvent({ role: 'assistant', content: 'twelve chars' }) + chatEvent({}, 'stop') + doneEvent;
  const { port, line } = await startTranslated(t, {
    answer: ({ socket, body }) =>
      socket.write(
        body.includes('"stream":true') ? streamHead + chunk(stream) + lastChunk : jsonAnswer(200, answer),
      ),
  });
  const plain = await post(port, '/v1/messages', messagesBody);
  const { usage } = JSON.parse(plain.body) as { usage: { input_tokens: number; output_tokens: number } };
  t.ok(usage.input_tokens > 0);
  t.equal(usage.output_tokens, 1);
  t.match(await line(({ msg }) => msg === 'request'), { tokensEstimated: true });
  const streamed = await post(port, '/v1/messages', streamedMessages);
  t.match(streamed.body, /"usage":\{"input_tokens":\d+,"output_tokens":3\}\}\n\nevent: message_stop/);
});

test('an array of events is closed when the connection breaks behind the last of them', async (t) => {
  const block = JSON.stringify({
    candidates: [{ content: { role: 'model', parts: [{ text: 'a' }] }, finishReason: 'STOP', index: 0 }],
  });
  const { port } = await startTranslated(t, {
    kind: 'generateContent',
    answer: ({ socket }) => {
      socket.write(streamHead + chunk(`data: ${block}\n\n`));
      setTimeout(() => socket.destroy(), 20);
    },
  });
  const { body } = await post(port, arrayStream, googleBody);
  t.equal(body, `[${block}\n]`);
});

test('a stream of several answers that breaks off before its end mark is an error', async (t) => {
  const { port } = await startTranslated(t, {
    answer: ({ socket }) => {
      socket.write(
        streamHead + chunk(chatEvent({ role: 'assistant', content: 'a' }) + chatEvent({}, 'stop')),
      );
      setTimeout(() => socket.destroy(), 20);
    },
  });
  const body = { model: 'm', n: 2, stream: true, messages: messagesBody.messages };
  const answer = await post(port, '/v1/chat/completions', body);
  t.match(answer.body, /"error"/);
});

test('an upstream is read to its end although the client is slow to take the last of a stream', async (t) => {
  const large = chatEvent({ content: 'x'.repeat(6 * 1024 * 1024) });
  const { port, upstream } = await startTranslated(t, {
    answer: ({ socket }, index) => {
      if (index > 0) socket.write(streamHead + chunk(whole) + lastChunk);
      else {
        socket.write(streamHead + chunk(large + chatEvent({}, 'stop') + doneEvent));
        setTimeout(() => socket.write(lastChunk), 300);
      }
    },
    upstream: { maxConnections: 1 },
  });
  const slow = await open(port, postBytes('/v1/messages', streamedMessages));
  slow.pause();
  await upstream.request(0);
  const { body } = await post(port, '/v1/messages', streamedMessages);
  t.match(body, /message_stop/, 'the only connection is free again, whatever the first client does');
  slow.destroy();
});

test('an encoder that comes to its limit ends the stream and the upstream’s work', async (t) => {
  const piece = 'x'.repeat(1024 * 1024);
  let cancelled = false;
  const { port, line } = await startTranslated(t, {
    answer: ({ socket }) => {
      socket.on('close', () => {
        cancelled = true;
      });
      socket.write(streamHead);
      const more = (left: number): void => {
        if (socket.destroyed || left === 0) return;
        socket.write(chunk(chatEvent({ content: piece })), () => setImmediate(() => more(left - 1)));
      };
      more(40);
    },
  });
  const { body } = await post(port, '/v1/responses', { model: 'm', input: 'hi', stream: true });
  t.match(body, /event: response.failed\n(.|\n)*event: error\n/);
  t.match(await line(({ msg }) => msg === 'request'), { outcome: 'upstream_error', error: 'upstream_error' });
  await eventually(() => cancelled);
  t.ok(cancelled);
});
