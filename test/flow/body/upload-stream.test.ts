import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'tap';
import { settled } from '../../support/eventually.js';
import { startGateway } from '../../support/gateway.js';
import { exchange } from '../../support/raw-client.js';
import {
  chunkOf,
  fileOf,
  formOf,
  hashOf,
  model,
  uploadHead,
  uploadRequest,
} from '../../support/upload-form.js';
import { jsonAnswer, startRawUpstream } from '../../support/upstream.js';
import { hears } from '../audio-upstream.js';
import { startUpload, type UploadClient } from './upload-client.js';

const mebibyte = 1024 * 1024;
const large = formOf([model, fileOf(32 * mebibyte)]);
/** What the system keeps for the two connections between client and upstream, at most (tcp(7), the last of three). */
const kernelBytes = ['rmem', 'wmem'].reduce(
  (sum, name) => sum + 2 * Number(readFileSync(`/proc/sys/net/ipv4/tcp_${name}`, 'utf8').split('\t')[2]),
  0,
);
/** What the sockets and the gateway between client and upstream may hold in all. */
const mostBetween = kernelBytes + 4 * mebibyte;

test('the upstream gets a large form while its client still holds back the end', async (t) => {
  const upstream = await startRawUpstream(t, hears);
  const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['audio'] });
  for (const chunked of [false, true]) {
    const head = uploadHead(chunked ? {} : { length: large.length });
    const client = await startUpload(port, head);
    const send = (bytes: Buffer) => client.send(chunked ? chunkOf(bytes) : bytes);
    const half = 16 * mebibyte;
    await send(large.subarray(0, half));
    const arrival = await upstream.arrival(chunked ? 1 : 0);
    await arrival.until(half);
    t.notOk(arrival.isWhole);
    await send(large.subarray(half));
    if (chunked) await client.send('0\r\n\r\n');
    t.equal((await client.answer).status, 200);
    t.equal(hashOf(arrival.body), hashOf(large));
    client.socket.destroy();
  }
});

async function sendAll(client: UploadClient, body: Buffer, chunked: boolean): Promise<void> {
  for (let at = 0; at < body.length; at += 64 * 1024) {
    const piece = body.subarray(at, at + 64 * 1024);
    await client.send(chunked ? chunkOf(piece) : piece);
  }
  if (chunked) await client.send('0\r\n\r\n');
}

test('a client is stopped while its upstream does not read, then goes on', async (t) => {
  const upstream = await startRawUpstream(t, hears, { onHead: ({ socket }) => socket.pause() });
  const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['audio'] });
  const form = formOf([model, fileOf(mostBetween + 16 * mebibyte)]);
  for (const chunked of [false, true]) {
    const client = await startUpload(port, uploadHead(chunked ? {} : { length: form.length }));
    const hash = createHash('sha256').update(form).digest('hex');
    const sent = sendAll(client, form, chunked);
    const arrival = await upstream.arrival(chunked ? 1 : 0);
    const taken = await settled(() => client.taken, { looks: 200, everyMs: 0 });
    t.ok(taken > 1000 && taken < mostBetween, `${taken} bytes were taken`);
    arrival.socket.resume();
    await sent;
    t.equal(hashOf(await arrival.whole()), hash);
    t.equal((await client.answer).status, 200);
    client.socket.destroy();
  }
});

test('a slow client is waited for by a fast upstream', async (t) => {
  const form = formOf([model, fileOf(2 * mebibyte)]);
  const upstream = await startRawUpstream(t, hears);
  const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['audio'] });
  const client = await startUpload(port, uploadHead({ length: form.length }));
  let at = 0;
  for (const size of [1, 60, 20, 100, 1000, 200_000, 1]) {
    await client.send(form.subarray(at, at + size));
    at += size;
    if (at > 200) await (await upstream.arrival(0)).until(at);
  }
  await client.send(form.subarray(at));
  t.equal((await client.answer).status, 200);
  t.equal(hashOf(upstream.arrivals[0]?.body as Buffer), hashOf(form));
  client.socket.destroy();
});

test('an upload whose client leaves ends at its upstream, and nothing of it is held', async (t) => {
  const upstream = await startRawUpstream(t, hears);
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['audio'],
    config: { limits: { bodyBytes: 3 * mebibyte, bufferedBytes: 3 * mebibyte } },
  });
  const gone = () => gateway.lines.filter(({ outcome }) => outcome === 'client_gone').length;
  for (let round = 0; round < 5; round++) {
    const client = await startUpload(gateway.port, uploadHead({ length: large.length }));
    await client.send(large.subarray(0, 2 * mebibyte));
    const arrival = await upstream.arrival(round);
    await arrival.until(2 * mebibyte);
    const left = performance.now();
    client.socket.destroy();
    await arrival.closed;
    t.ok(performance.now() - left < 10_000);
  }
  const late = formOf([fileOf(2 * mebibyte), model]);
  for (let round = 0; round < 5; round++) {
    const client = await startUpload(gateway.port, uploadHead({ length: late.length }));
    await client.send(late.subarray(0, late.length - 100));
    client.socket.destroy();
    await gateway.line(() => gone() === 6 + round);
  }
  const answer = await exchange(gateway.port, uploadRequest(late));
  t.equal(answer.status, 200, 'there is room for a form that needs nearly all of it');
  t.equal(hashOf(upstream.arrivals[5]?.body as Buffer), hashOf(late));
});

test('a form that has begun to leave takes up no room', async (t) => {
  const upstream = await startRawUpstream(t, hears);
  const { port } = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['audio'],
    config: {
      limits: { bodyBytes: 3 * mebibyte, bufferedBytes: 4 * mebibyte, bufferedBytesPerKey: 4 * mebibyte },
    },
  });
  const late = formOf([fileOf(2 * mebibyte), model, { ...fileOf(mebibyte), name: 'other' }]);
  const clients = [];
  for (let index = 0; index < 4; index++) {
    const client = await startUpload(port, uploadHead({ length: late.length }));
    clients.push(client);
    await client.send(late.subarray(0, late.length - 10));
    await (await upstream.arrival(index)).until(late.length - 10);
  }
  for (const [index, client] of clients.entries()) {
    await client.send(late.subarray(late.length - 10));
    t.equal((await client.answer).status, 200);
    t.equal(hashOf(upstream.arrivals[index]?.body as Buffer), hashOf(late));
    client.socket.destroy();
  }
});

test('small forms that wait for their answer take up no more than their size', async (t) => {
  const upstream = await startRawUpstream(t, () => {});
  const { port } = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['audio'],
    config: { limits: { bodyBytes: mebibyte, bufferedBytes: mebibyte } },
  });
  const form = formOf([model, fileOf(20_000)]);
  const clients = [];
  for (let index = 0; index < 32; index++) {
    clients.push(await startUpload(port, uploadRequest(form)));
    await (await upstream.arrival(index)).whole();
  }
  for (const client of clients) client.socket.destroy();
  t.equal(upstream.arrivals.length, 32);
});

test('an upstream that refuses before the end of an upload is heard', async (t) => {
  for (const status of [400, 413]) {
    const refusal = `{"error":{"message":"no","code":"c${status}"}}`;
    const upstream = await startRawUpstream(t, hears, {
      onHead: ({ socket }) => socket.end(jsonAnswer(status, refusal, 'connection: close\r\n')),
    });
    const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['audio'] });
    for (const chunked of [false, true]) {
      const client = await startUpload(port, uploadHead(chunked ? {} : { length: large.length }));
      const part = large.subarray(0, 4 * mebibyte);
      client.socket.write(chunked ? chunkOf(part) : part);
      const answer = await client.answer;
      t.equal(answer.status, status);
      t.equal(answer.body, refusal);
      client.socket.destroy();
    }
  }
});

test('a client that goes on sending behind an early refusal may use its connection again', async (t) => {
  const upstream = await startRawUpstream(t, hears, {
    onHead: ({ socket }, index) => {
      if (index === 0) socket.end(jsonAnswer(413, '{}', 'connection: close\r\n'));
    },
  });
  const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['audio'] });
  const client = await startUpload(port, uploadHead({ length: large.length }));
  await client.send(large.subarray(0, 4 * mebibyte));
  t.equal((await client.answer).status, 413);
  await client.send(large.subarray(4 * mebibyte));
  const small = formOf([model, fileOf(1000)]);
  client.socket.write(uploadRequest(small));
  t.equal(hashOf(await (await upstream.arrival(1)).whole()), hashOf(small));
  client.socket.destroy();
});

test('an upstream that breaks off in the middle of an upload is an upstream error', async (t) => {
  const upstream = await startRawUpstream(t, hears);
  const second = await startRawUpstream(t, hears);
  const { port } = await startGateway(t, { upstreams: [upstream.url, second.url], protocols: ['audio'] });
  for (const chunked of [false, true]) {
    const client = await startUpload(port, uploadHead(chunked ? {} : { length: large.length }));
    const part = large.subarray(0, 4 * mebibyte);
    await client.send(chunked ? chunkOf(part) : part);
    const arrival = await upstream.arrival(chunked ? 1 : 0);
    await arrival.until(4 * mebibyte);
    arrival.socket.resetAndDestroy();
    const answer = await client.answer;
    t.equal(answer.status, 502);
    t.match(JSON.parse(answer.body), { error: { code: 'upstream_error', message: String } });
    client.socket.destroy();
  }
  t.equal(second.arrivals.length, 0, 'what is gone cannot be sent to another');
});

for (const { name, form } of [
  { name: 'a small form', form: formOf([model, fileOf(10_000)]) },
  { name: 'a form of three megabytes', form: formOf([model, fileOf(3 * mebibyte)]) },
]) {
  test(`an upstream that is not there: the next gets the whole of ${name}`, async (t) => {
    const second = await startRawUpstream(t, hears);
    const { port } = await startGateway(t, {
      upstreams: ['http://127.0.0.1:1/v1', second.url],
      protocols: ['audio'],
    });
    const answer = await exchange(port, uploadRequest(form));
    t.equal(answer.status, 200, answer.body);
    t.equal(hashOf(second.arrivals[0]?.body as Buffer), hashOf(form));
  });
}

test('after a reset the next upstream gets the whole of a small form', async (t) => {
  const first = await startRawUpstream(t, ({ socket }) => socket.resetAndDestroy());
  const second = await startRawUpstream(t, hears);
  const { port } = await startGateway(t, {
    upstreams: [first.url, second.url],
    protocols: ['audio'],
    alias: 'renamed',
  });
  const form = formOf([fileOf(10_000), model]);
  const answer = await exchange(port, uploadRequest(form));
  t.equal(answer.status, 200, answer.body);
  const renamed = formOf([fileOf(10_000), { ...model, value: 'renamed' }]);
  t.equal(hashOf(second.arrivals[0]?.body as Buffer), hashOf(renamed));
});

test('a drain lets an upload finish', async (t) => {
  const upstream = await startRawUpstream(t, hears);
  const { port, gateway } = await startGateway(t, { upstreams: [upstream.url], protocols: ['audio'] });
  const client = await startUpload(port, uploadHead({ length: large.length }));
  await client.send(large.subarray(0, 2 * mebibyte));
  const arrival = await upstream.arrival(0);
  await arrival.until(2 * mebibyte);
  const drained = gateway.drain();
  await client.send(large.subarray(2 * mebibyte));
  const answer = await client.answer;
  t.equal(answer.status, 200);
  t.equal(hashOf(arrival.body), hashOf(large));
  await drained;
  client.socket.destroy();
});
