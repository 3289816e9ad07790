import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { test } from 'tap';
import { hashKey } from '../../src/keys/secret.js';
import { responsesCodec } from '../../src/protocols/responses/index.js';
import { context } from '../protocols/responses/conversation.js';
import { eventually } from '../support/eventually.js';
import { testKey } from '../support/gateway.js';
import { open } from '../support/raw-client.js';
import { postBytes, startTranslated } from '../support/translated.js';

import { heldBytes, heldWhen } from './held-bytes.js';

const mebibyte = 1024 * 1024;
const chunk = (content: string): string =>
  `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"${content}"}}]}\n\n`;

test('what a stream of responses keeps for its last events is little more than its text', (t) => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const text = 'what a model has said'.padEnd(64, '.');
  const event = chunk(text);
  const run = (number: number): string => `${number}${event.repeat(200)}`;
  const at = event.indexOf(text);
  collect();
  const before = process.memoryUsage().heapUsed;
  const encoders = Array.from({ length: 40 }, () => {
    const encoder = responsesCodec.createEncoder(context);
    encoder.encode({ kind: 'text', choice: 0, text: 'begun' });
    for (let runs = 0; runs < 20; runs++) {
      const bytes = Buffer.from(run(runs)).toString('latin1');
      const from = bytes.indexOf('d') + at;
      for (let n = 0; n < 200; n++) {
        const start = from + n * event.length;
        encoder.encodeRawText(bytes.slice(start, start + text.length));
      }
    }
    return encoder;
  });
  collect();
  const kept = process.memoryUsage().heapUsed - before;
  const said = encoders.length * 20 * 200 * text.length;
  t.ok(kept < 1.5 * said, `${kept} for ${said}`);
  t.ok(encoders.every((encoder) => (encoder.kept ?? 0) >= said / encoders.length));
  t.end();
});

test('texts that streams keep for their last events count: a key with many of them has some broken off', async (t) => {
  let begun = 0;
  const gateway = await startTranslated(t, {
    upstream: { onLeave: 'cancel' },
    answer: ({ socket }) => {
      begun++;
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n');
      for (let n = 0; n < 25; n++) socket.write(chunk('x'.repeat(10_000)));
    },
    config: {
      keys: [{ id: 'k', hash: hashKey(testKey), groups: ['default'] }],
      limits: { bodyBytes: mebibyte, bufferedBytes: 64 * mebibyte, bufferedBytesPerKey: 2 * mebibyte },
    },
  });
  const request = postBytes('/v1/responses', { model: 'm', input: 'hi', stream: true, store: false });
  const texts: string[] = [];
  const sockets = await Promise.all(
    Array.from({ length: 16 }, async (_, index) => {
      const socket = await open(gateway.port, request);
      texts[index] = '';
      socket.on('data', (data) => {
        texts[index] += data.toString('latin1');
      });
      return socket;
    }),
  );
  await eventually(() => begun === sockets.length);
  const refused = (): string[] => texts.filter((text) => text.includes('event: error'));
  await eventually(() => refused().length > 0);
  t.match(refused()[0], /The calls of your key hold as much memory/);
  await heldWhen(gateway, (bytes) => bytes > mebibyte);
  t.ok(heldBytes(gateway) <= 2 * mebibyte, `${heldBytes(gateway)}`);
  for (const socket of sockets) socket.destroy();
  await heldWhen(gateway, (bytes) => bytes === 0);
});

test('what a client has not taken of the end of its stream counts until it has', async (t) => {
  const pieces = 400;
  const length = 16_000;
  let end = (): void => {};
  const gateway = await startTranslated(t, {
    answer: ({ socket }) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n');
      for (let n = 0; n < pieces; n++) socket.write(chunk('x'.repeat(length)));
      end = () => {
        const last = '{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}';
        socket.end(`data: ${last}\n\ndata: [DONE]\n\n`);
      };
    },
  });
  const request = postBytes('/v1/responses', { model: 'm', input: 'hi', stream: true, store: false });
  const socket = await open(gateway.port, request);
  let received = 0;
  socket.on('data', (data) => {
    received += data.length;
  });
  const said = pieces * length;
  await eventually(() => received > said);
  socket.pause();
  end();
  // The last events have the text four times.
  await heldWhen(gateway, (bytes) => bytes > 2 * said);
  socket.resume();
  await heldWhen(gateway, (bytes) => bytes === 0);
  await eventually(() => received > 5 * said);
});
