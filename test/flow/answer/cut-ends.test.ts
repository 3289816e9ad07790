import { once } from 'node:events';
import { type Test, test } from 'tap';
import { eventually } from '../../support/eventually.js';
import { open, type RawAnswer, readAnswer } from '../../support/raw-client.js';
import { startRouted } from '../../support/routed.js';
import { postBytes, startTranslated, textProtocols } from '../../support/translated.js';
import { chatEvent, chunk, streamHead } from '../../support/upstream.js';

const contents = { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] };
const streamPath = '/v1beta/models/m:streamGenerateContent';
const userAgent = (name: string): string => `user-agent: ${name}\r\n`;

interface Ending extends RawAnswer {
  /** The connection broke before the answer's last chunk. */
  readonly isBroken: boolean;
}

/** Sends a request and reads until its answer has ended in one way or the other. */
async function endingOf(port: number, bytes: string): Promise<Ending> {
  const socket = await open(port, bytes);
  const chunks: Buffer[] = [];
  socket.on('data', (data) => chunks.push(data));
  const answer = await readAnswer(socket);
  const isBroken = !Buffer.concat(chunks).toString('latin1').endsWith('0\r\n\r\n');
  socket.destroy();
  return { ...answer, isBroken };
}

/** An upstream whose stream breaks behind its first text. */
function startBreaking(t: Test, text = 'some') {
  return startTranslated(t, {
    answer: ({ socket }) =>
      socket.write(streamHead + chunk(chatEvent({ role: 'assistant', content: text })), () =>
        socket.resetAndDestroy(),
      ),
  });
}

test('a cut stream ends with a broken connection for clients that do not raise its error event', async (t) => {
  const { port } = await startBreaking(t);
  const clients = [
    ['google-genai-sdk/1.52.0 gl-node/v20.19.0', true],
    ['google-genai-sdk/1.0.0 gl-python/3.12', true],
    ['some-client/3.0', true],
    ['google-genai-sdk/', true],
    ['google-genai-sdk/2.30.0 gl-node/v20.19.0', true],
    ['google-genai-sdk/2.32.0 gl-node/v20.19.0', false],
    ['app google-genai-sdk/3.1.0 gl-node/v20.19.0', false],
    ['google-genai-sdk/12.0.0', false],
  ] as const;
  for (const [name, isBroken] of clients) {
    for (const query of ['?alt=sse', '']) {
      const ending = await endingOf(port, postBytes(streamPath + query, contents, userAgent(name)));
      t.equal(ending.status, 200);
      t.match(ending.body, '"some"');
      t.match(ending.body, '"error":{"code":502', `${name}: the error has left in full`);
      if (query === '') t.ok(Array.isArray(JSON.parse(ending.body)), 'as an array');
      t.equal(ending.isBroken, isBroken, name);
    }
  }
  const unnamed = await endingOf(port, postBytes(`${streamPath}?alt=sse`, contents));
  t.ok(unnamed.isBroken);
  t.match(unnamed.body, /"error":\{.*\}\n\n/s);
});

test('streams of the other protocols end with their error event alone', async (t) => {
  const { port } = await startBreaking(t);
  const messages = [{ role: 'user', content: 'hi' }];
  const calls = [
    postBytes('/v1/chat/completions', { model: 'm', stream: true, messages }),
    postBytes('/v1/messages', { model: 'm', stream: true, max_tokens: 9, messages }),
    postBytes('/v1/responses', { model: 'm', stream: true, input: 'hi', store: false }),
  ];
  for (const call of calls) {
    const { body, isBroken } = await endingOf(port, call);
    t.match(body, 'error');
    t.notOk(isBroken);
  }
});

test('a whole stream ends as such for every client', async (t) => {
  const { port } = await startTranslated(t, {
    answer: ({ socket }) =>
      socket.write(
        streamHead +
          chunk(chatEvent({ role: 'assistant', content: 'all' }) + chatEvent({}, 'stop')) +
          chunk('data: [DONE]\n\n') +
          '0\r\n\r\n',
      ),
  });
  const { body, isBroken } = await endingOf(port, postBytes(`${streamPath}?alt=sse`, contents));
  t.match(body, '"STOP"');
  t.notOk(isBroken);
});

test('an error event of the upstream passes before the connection breaks', async (t) => {
  const candidate = { content: { role: 'model', parts: [{ text: 'some' }] }, index: 0 };
  const events =
    `data: ${JSON.stringify({ candidates: [candidate] })}\n\n` +
    `data: ${JSON.stringify({ error: { code: 503, message: 'too busy', status: 'UNAVAILABLE' } })}\n\n`;
  const { port } = await startTranslated(t, {
    kind: 'generateContent',
    answer: ({ socket }) => socket.write(`${streamHead}${chunk(events)}0\r\n\r\n`),
  });
  for (const [name, isBroken] of [
    ['google-genai-sdk/1.52.0', true],
    ['google-genai-sdk/2.32.0', false],
  ] as const) {
    const ending = await endingOf(port, postBytes(`${streamPath}?alt=sse`, contents, userAgent(name)));
    t.match(ending.body, 'too busy');
    t.equal(ending.isBroken, isBroken, name);
  }
});

test('a connection that breaks behind the upstream’s own error adds no other one', async (t) => {
  const error = { error: { message: 'too busy', type: 'server_error', code: null } };
  const events = `${chatEvent({ role: 'assistant', content: 'some' })}data: ${JSON.stringify(error)}\n\n`;
  const { port, line } = await startTranslated(t, {
    answer: ({ socket }) =>
      socket.write(streamHead + chunk(events), () => setTimeout(() => socket.resetAndDestroy(), 20)),
  });
  const call = { model: 'm', stream: true, messages: [{ role: 'user', content: 'hi' }] };
  const { body } = await endingOf(port, postBytes('/v1/chat/completions', call));
  t.equal(body.match(/"error"/g)?.length, 1);
  t.match(body, 'too busy');
  t.match(await line(({ msg }) => msg === 'request'), { outcome: 'upstream_error', error: 'upstream_error' });
});

test('a stream whose end mark has come is whole, however it is written and whatever becomes of its connection', async (t) => {
  for (const mark of ['data: [DONE]\n\n', 'data:[DONE]\r\n\r\n']) {
    const { port, line } = await startTranslated(t, {
      answer: ({ socket }) =>
        socket.write(streamHead + chunk(chatEvent({ content: 'all' }) + mark), () =>
          setTimeout(() => socket.resetAndDestroy(), 20),
        ),
    });
    const call = { model: 'm', stream: true, messages: [{ role: 'user', content: 'hi' }] };
    const { body, isBroken } = await endingOf(port, postBytes('/v1/chat/completions', call));
    t.notMatch(body, '"error"');
    t.notOk(isBroken);
    t.match(await line(({ msg }) => msg === 'request'), { outcome: 'complete' });
  }
});

test('a client that does not read gets what was written before its connection breaks once it does', async (t) => {
  // More than the buffers of the system take.
  const text = '~'.repeat(16_000_000);
  const { gateway, counted } = await startRouted(
    t,
    [({ socket }) => void socket.write(streamHead + chunk(chatEvent({ content: text })))],
    { protocols: textProtocols, config: { timeouts: { totalMs: 4000 } } },
  );
  const socket = await open(gateway.port, postBytes(`${streamPath}?alt=sse`, contents));
  await once(socket, 'readable');
  await eventually(() => counted('gateway_upstream_attempts_total')['u0/m timeout']);
  const received: Buffer[] = [];
  socket.on('data', (data) => received.push(data));
  await once(socket, 'close');
  const bytes = Buffer.concat(received);
  const all = bytes.toString('latin1');
  t.equal(bytes.filter((byte) => byte === 0x7e).length, text.length);
  // Where the client is slow to read, the last words come in chunks of a byte.
  t.match(all.slice(-2000).replace(/\r\n[0-9a-f]+\r\n/g, ''), '"error":{"code":504');
  t.notOk(all.endsWith('0\r\n\r\n'));
});
