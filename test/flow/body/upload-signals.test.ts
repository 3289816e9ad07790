import { test } from 'tap';
import { hashKey } from '../../../src/keys/secret.js';
import { startGateway, testKey } from '../../support/gateway.js';
import { fileOf, formOf, hashOf, model, uploadHead } from '../../support/upload-form.js';
import { startRawUpstream } from '../../support/upstream.js';
import { hears } from '../audio-upstream.js';
import { startUpload } from './upload-client.js';

const mebibyte = 1024 * 1024;

test('a gateway that is told to end lets an upload finish first', async (t) => {
  const upstream = await startRawUpstream(t, hears);
  const gateway = await startGateway(t, {
    workers: 1,
    file: {
      upstreams: { u: { kind: 'chat', baseUrl: upstream.url } },
      models: { m: { protocols: ['audio'], targets: [{ upstream: 'u' }] } },
      groups: { all: { models: ['*'] } },
      keys: [{ id: 'k', hash: hashKey(testKey), groups: ['all'] }],
    },
  });
  t.teardown(() => gateway.end());
  const form = formOf([model, fileOf(16 * mebibyte)]);
  const client = await startUpload(gateway.port, uploadHead({ length: form.length }));
  await client.send(form.subarray(0, 4 * mebibyte));
  const arrival = await upstream.arrival(0);
  await arrival.until(4 * mebibyte);
  gateway.kill('SIGTERM');
  await gateway.untilLogged(({ msg }) => msg === 'draining');
  await client.send(form.subarray(4 * mebibyte));
  const answer = await client.answer;
  t.equal(answer.status, 200);
  t.equal(hashOf(arrival.body), hashOf(form));
  t.match(await gateway.exited, { code: 0 });
});
