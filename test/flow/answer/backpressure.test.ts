import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { test } from 'tap';
import { settled } from '../../support/eventually.js';
import { startGateway } from '../../support/gateway.js';
import { chatRequest, open } from '../../support/raw-client.js';
import {
  chatEvent,
  chunk,
  doneEvent,
  lastChunk,
  startRawUpstream,
  streamHead,
} from '../../support/upstream.js';

const streamed =
  '{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}';
const event = chatEvent({ content: 'x'.repeat(900) });
const events = 64_000;

interface Flood {
  written: number;
  finished: boolean;
}

function drainedOrClosed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      socket.off('drain', done);
      socket.off('close', done);
      resolve();
    };
    socket.on('drain', done);
    socket.on('close', done);
  });
}

/** Writes the whole stream as fast as the socket takes it. */
async function flood(socket: Socket, state: Flood): Promise<void> {
  socket.write(streamHead);
  for (let i = 0; i < events && !socket.destroyed; i++) {
    const more = socket.write(chunk(event));
    state.written += event.length;
    if (!more) await drainedOrClosed(socket);
  }
  socket.write(chunk(doneEvent) + lastChunk);
  state.finished = true;
}

test('a client that does not read stops its upstream, and gets every byte once it does', async (t) => {
  const state: Flood = { written: 0, finished: false };
  const upstream = await startRawUpstream(t, ({ socket }) => void flood(socket, state));
  const gateway = await startGateway(t, { upstreams: [upstream.url] });
  const client = await open(gateway.port, chatRequest(streamed));
  client.pause();
  const before = process.memoryUsage.rss();
  const held = await settled(() => state.written, { looks: 1, everyMs: 300 });
  t.notOk(state.finished, `the upstream stands still after ${held} of ${event.length * events} bytes`);
  t.ok(held < 32 * 1024 * 1024, 'what is under way fits into the buffers of the system');
  t.ok(process.memoryUsage.rss() - before < 64 * 1024 * 1024);

  const hash = createHash('sha256');
  let pending = Buffer.alloc(0);
  let body = false;
  const received = (async () => {
    for await (const data of client as AsyncIterable<Buffer>) {
      pending = Buffer.concat([pending, data]);
      if (!body) {
        const end = pending.indexOf('\r\n\r\n');
        if (end === -1) continue;
        body = true;
        pending = pending.subarray(end + 4);
      }
      for (;;) {
        const lineEnd = pending.indexOf('\r\n');
        const size =
          lineEnd === -1 ? Number.NaN : Number.parseInt(pending.toString('latin1', 0, lineEnd), 16);
        if (size === 0) return;
        if (Number.isNaN(size) || pending.length < lineEnd + 2 + size + 2) break;
        hash.update(pending.subarray(lineEnd + 2, lineEnd + 2 + size));
        pending = pending.subarray(lineEnd + 2 + size + 2);
      }
    }
  })();
  await received;
  client.destroy();
  const expected = createHash('sha256');
  for (let i = 0; i < events; i++) expected.update(event);
  expected.update(doneEvent);
  t.equal(hash.digest('hex'), expected.digest('hex'));
  t.match(await gateway.line((line) => line.msg === 'request'), { outcome: 'complete' });
});

test('a client that leaves while it does not read cancels its upstream', async (t) => {
  const state: Flood = { written: 0, finished: false };
  const upstream = await startRawUpstream(t, ({ socket }) => void flood(socket, state));
  const gateway = await startGateway(t, { upstreams: [upstream.url] });
  const client = await open(gateway.port, chatRequest(streamed));
  client.pause();
  const { socket } = await upstream.request(0);
  await settled(() => state.written, { looks: 1, everyMs: 300 });
  const closed = new Promise((resolve) => socket.on('close', resolve));
  client.destroy();
  await closed;
  t.match(await gateway.line((line) => line.msg === 'request'), { outcome: 'client_gone' });
});

test('slow readers get whole streams in small steps', async (t) => {
  const state: Flood = { written: 0, finished: false };
  const upstream = await startRawUpstream(t, ({ socket }) => {
    const part: Flood = { written: 0, finished: false };
    void (async () => {
      socket.write(streamHead);
      for (let i = 0; i < 8000; i++) {
        if (!socket.write(chunk(event))) await drainedOrClosed(socket);
        part.written += event.length;
      }
      socket.write(chunk(doneEvent) + lastChunk);
      state.written += part.written;
    })();
  });
  const gateway = await startGateway(t, { upstreams: [upstream.url] });
  const lengths = await Promise.all(
    Array.from({ length: 4 }, async () => {
      const client = await open(gateway.port, chatRequest(streamed));
      client.pause();
      let length = 0;
      let last = '';
      while (!last.endsWith('0\r\n\r\n')) {
        const data = client.read() as Buffer | null;
        if (data === null) {
          await once(client, 'readable');
          continue;
        }
        length += data.length;
        last = (last + data.toString('latin1')).slice(-16);
        await new Promise(setImmediate);
      }
      client.destroy();
      return length;
    }),
  );
  for (const length of lengths) t.ok(length > 8000 * event.length);
});
