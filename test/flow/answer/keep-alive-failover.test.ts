import { type Test, test } from 'tap';
import { eventually } from '../../support/eventually.js';
import { open, type RawAnswer, readAnswer } from '../../support/raw-client.js';
import { errorAnswer, type Routed, startRouted } from '../../support/routed.js';
import { postBytes, textProtocols } from '../../support/translated.js';
import { type Answer, chatEvent, chunk, doneEvent, lastChunk, streamHead } from '../../support/upstream.js';

const silent: Answer = () => {};
const good: Answer =
  streamHead + chunk(chatEvent({ content: 'second' }) + chatEvent({}, 'stop') + doneEvent) + lastChunk;
const messages = [{ role: 'user', content: 'hi' }];
const calls: readonly (readonly [string, string])[] = [
  ['chat', postBytes('/v1/chat/completions', { model: 'm', stream: true, messages })],
  ['messages', postBytes('/v1/messages', { model: 'm', stream: true, max_tokens: 9, messages })],
  ['responses', postBytes('/v1/responses', { model: 'm', stream: true, input: 'hi' })],
  [
    'generateContent',
    postBytes('/v1beta/models/m:streamGenerateContent?alt=sse', {
      contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
    }),
  ],
];

/** A gateway that sends keep-alives at once, with a target for each behaviour. */
function start(t: Test, behaviours: readonly Answer[]) {
  return startRouted(t, behaviours, {
    protocols: textProtocols,
    config: { timeouts: { keepAliveMs: 1 }, routing: { retries: 0 } },
  });
}

/** Sends a call and waits until its client has had a keep-alive. @returns its answer to come */
async function askUntilAlive(port: number, bytes: string): Promise<{ readonly whole: Promise<RawAnswer> }> {
  const socket = await open(port, bytes);
  const pieces: Buffer[] = [];
  socket.on('data', (piece) => pieces.push(piece));
  const whole = readAnswer(socket);
  await eventually(() => /keep-alive\n|event: ping/.test(Buffer.concat(pieces).toString()));
  return { whole };
}

/** Lets calls of all protocols wait for a silent target until their clients have had keep-alives. */
async function askAll({ gateway, upstreams }: Routed) {
  const asked = await Promise.all(calls.map(([, bytes]) => askUntilAlive(gateway.port, bytes)));
  // A keep-alive may leave before the upstream has heard of the call.
  const requests = await Promise.all(calls.map((_, index) => upstreams[0]?.request(index)));
  return {
    wholes: asked.map(({ whole }) => whole),
    sockets: requests.flatMap((request) => request?.socket ?? []),
  };
}

/** Error events of a stream, in any protocol. */
function errorsIn(body: string): number {
  return body.match(/data: \{(?:"error":\{|"type":"error")/g)?.length ?? 0;
}

const failures: readonly (readonly [string, string])[] = [
  ['503', errorAnswer(503)],
  ['429', errorAnswer(429)],
  [
    'an error for a stream',
    `${streamHead}${chunk('data: {"error":{"message":"busy","code":"rate_limit_exceeded"}}\n\n')}${lastChunk}`,
  ],
  ['another protocol', `${streamHead}${chunk('data: {"no":"event"}\n\n')}${lastChunk}`],
  ['no stream', 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}'],
];

for (const [what, failure] of failures) {
  test(`after keep-alives a call goes to the next target: ${what}`, async (t) => {
    const routed = await start(t, [silent, good]);
    const { wholes, sockets } = await askAll(routed);
    t.equal(sockets.length, calls.length);
    for (const socket of sockets) socket.write(failure);
    for (const [index, { status, body }] of (await Promise.all(wholes)).entries()) {
      t.equal(status, 200);
      t.match(body, 'second', `${calls[index]?.[0]}`);
      t.equal(errorsIn(body), 0);
    }
    t.strictSame(routed.counts(), [calls.length, calls.length]);
    t.match(await routed.gateway.line(({ msg }) => msg === 'request'), {
      target: 'u1/m',
      retries: 1,
      outcome: 'complete',
    });
  });
}

test('when the last target fails too, each client is told once, in the words of its protocol', async (t) => {
  const routed = await start(t, [silent, errorAnswer(503)]);
  const { wholes, sockets } = await askAll(routed);
  for (const socket of sockets) socket.write(errorAnswer(502));
  const answers = await Promise.all(wholes);
  t.strictSame(routed.counts(), [calls.length, calls.length]);
  for (const [index, { body }] of answers.entries())
    t.equal(errorsIn(body), 1, `${calls[index]?.[0]}: ${body}`);
});

test('what a target has sent of its answer ends the right to ask another', async (t) => {
  const routed = await start(t, [silent, good]);
  const { wholes, sockets } = await askAll(routed);
  for (const socket of sockets)
    socket.write(streamHead + chunk(chatEvent({ role: 'assistant', content: 'first' })), () =>
      socket.resetAndDestroy(),
    );
  for (const { body } of await Promise.all(wholes)) {
    t.match(body, 'first');
    t.match(body, 'error');
  }
  t.strictSame(routed.counts(), [calls.length, 0]);
});
