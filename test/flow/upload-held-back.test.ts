import { test } from 'tap';
import { hashKey } from '../../src/keys/secret.js';
import { settled } from '../support/eventually.js';
import { startGateway, testKey } from '../support/gateway.js';
import { fileOf, formOf, hashOf, model, uploadHead } from '../support/upload-form.js';
import { startRawUpstream } from '../support/upstream.js';
import { hears } from './audio-upstream.js';
import { startUpload, type UploadClient } from './upload-client.js';

const mebibyte = 1024 * 1024;

test('uploads of one key that together are far larger than what it may hold are held back and all served', async (t) => {
  // Together the first reads would bring three times what the key may hold.
  const held: { resume(): unknown }[] = [];
  let isHolding = true;
  const upstream = await startRawUpstream(t, hears, {
    onHead: ({ socket }) => {
      if (!isHolding) return;
      socket.pause();
      held.push(socket);
    },
  });
  const gateway = await startGateway(t, {
    workers: 1,
    file: {
      limits: { bodyBytes: 4 * mebibyte, bufferedBytesPerKey: 40 * mebibyte },
      upstreams: { u: { kind: 'chat', baseUrl: upstream.url } },
      models: { m: { protocols: ['audio'], targets: [{ upstream: 'u' }] } },
      groups: { all: { models: ['*'] } },
      keys: [{ id: 'k', hash: hashKey(testKey), groups: ['all'] }],
    },
  });
  t.teardown(() => gateway.end());
  const form = formOf([model, fileOf(24 * mebibyte)]);
  const clients: UploadClient[] = [];
  for (let index = 0; index < 6; index++) {
    const client = await startUpload(gateway.port, uploadHead({ length: form.length }));
    void client.send(form);
    clients.push(client);
  }
  await upstream.arrival(0);
  const taken = () => clients.reduce((sum, client) => sum + client.taken, 0);
  await settled(taken, { looks: 200, everyMs: 1 });
  isHolding = false;
  for (const socket of held) socket.resume();
  for (const client of clients) {
    const answer = await client.answer;
    t.equal(answer.status, 200, `${answer.body}`);
    client.socket.destroy();
  }
  for (const arrival of upstream.arrivals) t.equal(hashOf(arrival.body), hashOf(form));
});
