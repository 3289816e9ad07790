import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { test } from 'tap';
import { startGateway } from '../support/gateway.js';
import { chatRequest, exchange } from '../support/raw-client.js';
import { fc } from '../support/seed.js';
import { lastChunk, startRawUpstream, streamHead } from '../support/upstream.js';
import { anyJson, anyText, noise, writeJson } from '../wire/json-text.js';

const lineEnd = fc.constantFrom('\n', '\n', '\r\n', '\r');

/** JSON text of an object on one line. Its values have space and escapes of all kinds; no upstream escapes its keys. */
function textOf(object: object): fc.Arbitrary<string> {
  return noise.map((numbers) => {
    const members = Object.entries(object).map(
      ([key, value]) => `"${key}" :${writeJson(value, numbers).replaceAll(/[\r\n]/g, ' ')}`,
    );
    return `{ ${members.join(', ')}}`;
  });
}

/** One event with such data, in one of the ways in which it may be written. */
function eventOf(data: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .tuple(data, lineEnd, fc.constantFrom('data: ', 'data:', ': comment', 'id: 7'))
    .map(([text, end, form]) =>
      form.startsWith('data') ? `${form}${text}${end}${end}` : `${form}${end}data: ${text}${end}${end}`,
    );
}

function choicesOf(delta: object, finish: string | null = null): object {
  return { choices: [{ index: 0, delta, finish_reason: finish }] };
}

const contentEvent = eventOf(
  fc
    .tuple(anyText, anyJson)
    .chain(([content, extra]) => textOf({ id: 'c', ...choicesOf({ content }), usage: null, extra })),
);
/** As it is written beside a content: no text has a quote that is not escaped. */
const unasked = /, "usage" :\s*null/g;
const comment = lineEnd.map((end) => `: a "usage" and {"choices":[]}${end}${end}`);
const finishEvent = eventOf(textOf(choicesOf({}, 'stop')));
const usageEvent = eventOf(
  fc
    .tuple(fc.constantFrom('', ' ', '\t'), fc.nat(100_000))
    .map(
      ([space, input]) =>
        `{"choices":${space}[],${space}"usage"${space}:${space}{"prompt_tokens":${input},"completion_tokens":2}}`,
    ),
);
const stream = fc.record({
  opening: contentEvent,
  events: fc.array(fc.oneof({ weight: 5, arbitrary: contentEvent }, { weight: 1, arbitrary: comment }), {
    maxLength: 6,
  }),
  finish: finishEvent,
  usage: usageEvent,
  done: eventOf(fc.constant('[DONE]')),
});
/** Sizes of the HTTP chunks in turn, and whether each has a write of its own. */
const pace = fc.record({
  sizes: fc.array(fc.oneof(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 9, max: 700 })), {
    minLength: 1,
    maxLength: 6,
  }),
  apart: fc.boolean(),
});

async function send(socket: Socket, bytes: Buffer, { sizes, apart }: { sizes: number[]; apart: boolean }) {
  socket.setNoDelay(true);
  let waiting = streamHead;
  for (let at = 0, index = 0; at < bytes.length; index++) {
    const piece = bytes.subarray(at, at + (sizes[index % sizes.length] ?? 1));
    at += piece.length;
    waiting += `${piece.length.toString(16)}\r\n${piece.toString('latin1')}\r\n`;
    if (!apart) continue;
    if (!socket.write(waiting, 'latin1')) await once(socket, 'drain');
    waiting = '';
    await turn();
  }
  socket.write(waiting + lastChunk, 'latin1');
}

for (const asked of [true, false]) {
  const title = asked
    ? 'a stream reaches the client byte for byte, however it is written and cut'
    : 'of a stream only the usage that the client has not asked for is missing';
  test(title, async (t) => {
    let next = { bytes: Buffer.alloc(0), pace: { sizes: [1], apart: false } };
    const upstream = await startRawUpstream(t, ({ socket }) => {
      void send(socket, next.bytes, next.pace);
    });
    const gateway = await startGateway(t, { upstreams: [upstream.url] });
    const body = JSON.stringify({
      model: 'm',
      stream: true,
      messages: [{ role: 'user', content: 'hi' }],
      ...(asked ? { stream_options: { include_usage: true } } : {}),
    });
    await fc.assert(
      fc.asyncProperty(stream, pace, async ({ opening, events, finish, usage, done }, how) => {
        const before = opening + events.join('') + finish;
        next = { bytes: Buffer.from(before + usage + done), pace: how };
        const answer = await exchange(gateway.port, chatRequest(body));
        const expected = asked ? before + usage + done : before.replaceAll(unasked, '') + done;
        if (answer.status !== 200 || answer.body !== expected) {
          throw new Error(`${answer.status} ${JSON.stringify(answer.body)}\nnot ${JSON.stringify(expected)}`);
        }
      }),
      { numRuns: 150 },
    );
    await gateway.line(() => gateway.lines.length === upstream.requests.length);
    t.ok(gateway.lines.every((line) => line.outcome === 'complete' && line.outputTokens === 2));
  });
}
