import { once } from 'node:events';
import type { Socket } from 'node:net';
import { type Test, test } from 'tap';
import { hashKey } from '../../../src/keys/secret.js';
import { eventually } from '../../support/eventually.js';
import {
  type GatewayOptions,
  type LogLine,
  type RunningGateway,
  startGateway,
  testKey,
} from '../../support/gateway.js';
import { open } from '../../support/raw-client.js';
import { post, postBytes, textProtocols } from '../../support/translated.js';
import {
  chatEvent,
  chunk,
  completion,
  doneEvent,
  jsonAnswer,
  lastChunk,
  type RawUpstream,
  startRawUpstream,
  streamHead,
  usageEvent,
} from '../../support/upstream.js';

const messages = [{ role: 'user', content: 'hi' }];
const chat = '/v1/chat/completions';
const streamed = { model: 'm', stream: true, messages };
const first = chatEvent({ role: 'assistant', content: 'hello' });
const rest = chatEvent({}, 'stop') + usageEvent + doneEvent;

interface Stage extends RunningGateway {
  readonly upstream: RawUpstream;
  /** Sends a call and leaves when something of its answer has come. @returns the upstream's socket of it */
  leave(path: string, body: object): Promise<Socket>;
  line(test?: (line: LogLine) => boolean): Promise<LogLine>;
}

async function startStage(t: Test, begin: string, options: GatewayOptions = {}): Promise<Stage> {
  const upstream = await startRawUpstream(t, begin);
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: [...textProtocols, 'audio'],
    ...options,
  });
  return {
    ...gateway,
    upstream,
    async leave(path, body) {
      const index = upstream.requests.length;
      const client = await open(gateway.port, postBytes(path, body));
      const request = await upstream.request(index);
      if (begin !== '') await once(client, 'data');
      client.destroy();
      return request.socket;
    },
    line: (test = () => true) => gateway.line((line) => line.msg === 'request' && test(line)),
  };
}

const exact = { outcome: 'client_gone', inputTokens: 3, outputTokens: 4 };

function isExact(t: Test, line: LogLine): void {
  t.match(line, exact);
  t.equal(line.tokensPartial, undefined);
  t.equal(line.tokensEstimated, undefined);
}

const calls = {
  'passes as it comes': [chat, streamed],
  'is translated to messages': ['/v1/messages', { ...streamed, max_tokens: 9 }],
  'is translated to responses': ['/v1/responses', { model: 'm', stream: true, input: 'hi' }],
  'is translated to generateContent': [
    '/v1beta/models/m:streamGenerateContent?alt=sse',
    { contents: [{ parts: [{ text: 'hi' }] }] },
  ],
} as const;

for (const [how, [path, body]] of Object.entries(calls)) {
  test(`of a stream that ${how} and whose client leaves before the usage, the usage is what the upstream says`, async (t) => {
    const stage = await startStage(t, streamHead + chunk(first));
    const socket = await stage.leave(path, body);
    socket.write(chunk(rest) + lastChunk);
    isExact(t, await stage.line());
  });
}

test('a client that leaves before anything of its stream has come pays what the upstream says', async (t) => {
  const stage = await startStage(t, '');
  const socket = await stage.leave(chat, streamed);
  socket.write(streamHead + chunk(first));
  socket.write(chunk(rest) + lastChunk);
  isExact(t, await stage.line());
});

for (const [how, path] of [
  ['passes', chat],
  ['is translated', '/v1/messages'],
] as const) {
  test(`of a whole answer that ${how} and comes when its client has left, the usage is read`, async (t) => {
    const stage = await startStage(t, '');
    const socket = await stage.leave(path, { model: 'm', max_tokens: 9, messages });
    socket.write(jsonAnswer(200, completion));
    isExact(t, await stage.line());
  });
}

test('an upstream that fails when its client has left before anything came, has cost nothing', async (t) => {
  const stage = await startStage(t, '');
  for (const answer of [jsonAnswer(500, '{"error":{"message":"no"}}'), null]) {
    const socket = await stage.leave(chat, streamed);
    if (answer === null) socket.destroy();
    else socket.write(answer);
    const line = await stage.line(({ id }) => id !== undefined);
    t.match(line, { outcome: 'client_gone' });
    t.equal(line.outputTokens, undefined);
  }
  t.equal(stage.upstream.requests.length, 2, 'nothing is asked again');
});

test('an upstream is read on for 2,000 tokens at most', async (t) => {
  const stage = await startStage(t, streamHead + chunk(first));
  const socket = await stage.leave(chat, streamed);
  // A hundred tokens each.
  const event = chunk(chatEvent({ content: 'abcd'.repeat(100) }));
  let events = 0;
  const timer = setInterval(() => {
    if (!socket.writable) return;
    events++;
    socket.write(event);
  }, 1);
  await once(socket, 'close');
  clearInterval(timer);
  const line = await stage.line();
  t.match(line, { outcome: 'client_gone', tokensPartial: true });
  t.ok(Number(line.outputTokens) > 2000 && Number(line.outputTokens) < 2500, `${line.outputTokens} tokens`);
  t.ok(events >= 20, `${events} events`);
});

test('an upstream that says nothing more is read on for ten seconds at most, and what has passed is estimated by its script', async (t) => {
  const content = '東京は日本の首都です'.repeat(10);
  const stage = await startStage(t, streamHead + chunk(chatEvent({ reasoning_content: content, content })));
  const socket = await stage.leave(chat, streamed);
  await once(socket, 'close');
  const line = await stage.line();
  t.match(line, { outcome: 'client_gone', tokensPartial: true });
  t.ok(Math.abs(Number(line.outputTokens) - 200) <= 2, `${line.outputTokens} tokens for 200 characters`);
  t.ok(Number(line.durationMs) < 5000, 'the call has lasted as long as its client was there');
});

test('an upstream that is to be cancelled when a client leaves is, at once', async (t) => {
  const stage = await startStage(t, streamHead + chunk(first), { upstream: { onLeave: 'cancel' } });
  await stage.leave(chat, streamed);
  t.match(await stage.line(), { outcome: 'client_gone', tokensPartial: true });
});

test('media are not made for a client that has left', async (t) => {
  const stage = await startStage(t, '');
  await stage.leave('/v1/audio/speech', { model: 'm', input: 'hi', voice: 'v' });
  t.match(await stage.line(), { outcome: 'client_gone' });
});

test('the place of a call among those of its key is free when its client has left', async (t) => {
  const keys = [{ id: 'test', hash: hashKey(testKey), groups: ['default'], limits: { concurrent: 1 } }];
  const stage = await startStage(t, streamHead + chunk(first), {
    config: { keys },
  });
  await stage.leave(chat, streamed);
  stage.upstream.answer = jsonAnswer(200, completion);
  await eventually(async () => (await post(stage.port, chat, { model: 'm', messages })).status === 200);
  t.equal(
    stage.lines.filter(({ outcome }) => outcome === 'client_gone').length,
    0,
    'the first is read on for',
  );
});

test('of the calls of one key, fifty are read on for at once', async (t) => {
  const stage = await startStage(t, streamHead + chunk(first));
  const sockets: Socket[] = [];
  for (let call = 0; call < 51; call++) sockets.push(await stage.leave(chat, streamed));
  await stage.line();
  t.equal(stage.lines.filter(({ msg }) => msg === 'request').length, 1, 'one is cancelled');
  for (const socket of sockets) socket.end(chunk(rest) + lastChunk);
  await eventually(
    () =>
      stage.lines.filter(({ tokensPartial, outcome }) => outcome === 'client_gone' && tokensPartial !== true)
        .length === 50,
  );
});

test('a gateway that closes reads on for nobody', async (t) => {
  const stage = await startStage(t, streamHead + chunk(first));
  await stage.leave(chat, streamed);
  stage.upstream.answer = jsonAnswer(200, completion);
  await post(stage.port, chat, { model: 'm', messages });
  await stage.gateway.close();
  t.match(await stage.line(({ outcome }) => outcome === 'client_gone'), { tokensPartial: true });
});

const sound = `data: ${JSON.stringify({ type: 'speech.audio.delta', audio: 'QUJD' })}\n\n`;
const spoken = { model: 'm', input: 'hi', voice: 'v', stream_format: 'sse' };
const priced = (price: object): GatewayOptions => ({
  config: { models: { m: { protocols: ['audio'], targets: [{ upstream: 'u0', model: 'm' }], price } } },
});

test('a sound that is streamed and left before its last event costs its seconds, in tokens or as such', async (t) => {
  const byToken = await startStage(t, streamHead + chunk(sound), priced({ input: 1, output: 1 }));
  await byToken.leave('/v1/audio/speech', spoken);
  t.match(await byToken.line(), { outcome: 'client_gone', outputTokens: 3, tokensPartial: true });
  const bySecond = await startStage(t, streamHead + chunk(sound), priced({ perSecond: 1 }));
  await bySecond.leave('/v1/audio/speech', spoken);
  t.match(await bySecond.line(), { outcome: 'client_gone', outputTokens: undefined });
});
