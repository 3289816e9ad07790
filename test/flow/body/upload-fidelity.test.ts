import { once } from 'node:events';
import { test } from 'tap';
import { startGateway } from '../../support/gateway.js';
import { exchange, open, readAnswer } from '../../support/raw-client.js';
import {
  chunkedRequest,
  fileOf,
  formOf,
  hashOf,
  model,
  uploadHead,
  uploadRequest,
} from '../../support/upload-form.js';
import { startRawUpstream } from '../../support/upstream.js';
import { hears } from '../audio-upstream.js';

const language = { name: 'language', value: 'en' };
const verbose = { name: 'response_format', value: 'verbose_json' };
const small = fileOf(5000);
const large = fileOf(3_000_000);

function headerOf(head: string, name: string): string | undefined {
  return new RegExp(`^${name}: *(.*)$`, 'im').exec(head)?.[1];
}

const orders = [
  { order: 'all fields before the file', rest: (file: typeof small) => [language, model, file] },
  { order: 'all fields behind the file', rest: (file: typeof small) => [file, model, language] },
  { order: 'the model before, others behind', rest: (file: typeof small) => [model, file, language] },
  {
    order: 'names in brackets and without',
    rest: (file: typeof small) => [
      model,
      verbose,
      { name: 'timestamp_granularities[]', value: 'word' },
      { name: 'timestamp_granularities[]', value: 'segment' },
      { name: 'include', value: 'logprobs' },
      file,
    ],
  },
  {
    order: 'fields that nobody knows',
    rest: (file: typeof small) => [
      { name: 'x_new', value: 'é\r\n--' },
      { name: 'chunking_strategy[type]', value: 'server_vad' },
      model,
      file,
      { name: 'x_new', value: '' },
    ],
  },
];

for (const { order, rest } of orders) {
  for (const file of [small, large]) {
    test(`byte for byte: ${order}, ${file.value.length} bytes of file`, async (t) => {
      const form = formOf(rest(file));
      const upstream = await startRawUpstream(t, hears);
      const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['audio'] });
      for (const request of [uploadRequest(form), chunkedRequest(form, [1, 90, 4096, 4097, 100_000])]) {
        const answer = await exchange(port, request);
        t.equal(answer.status, 200, answer.body);
        t.equal(answer.body, '{"text":"heard"}');
        t.match(answer.head, /^x-gateway-path: exact$/im);
      }
      for (const arrival of upstream.arrivals) t.equal(hashOf(arrival.body), hashOf(form));
      t.equal(headerOf(upstream.arrivals[0]?.head ?? '', 'content-length'), String(form.length));
      t.match(upstream.arrivals[0]?.head, /^POST \/v1\/audio\/transcriptions HTTP\/1\.1$/m);
      t.match(upstream.arrivals[0]?.head, /^authorization: Bearer upstream-key$/im);
    });

    test(`but for the model: ${order}, ${file.value.length} bytes of file`, async (t) => {
      for (const alias of ['x', 'a-model-with-a-longer-name']) {
        const renamed = formOf(
          rest(file).map((piece) => (piece === model ? { ...model, value: alias } : piece)),
        );
        const form = formOf(rest(file));
        const upstream = await startRawUpstream(t, hears);
        const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['audio'], alias });
        for (const request of [uploadRequest(form), chunkedRequest(form, [7, 80, 81, 82, 200_000])]) {
          const answer = await exchange(port, request);
          t.equal(answer.status, 200, answer.body);
          t.match(answer.head, /^x-gateway-path: spliced$/im);
        }
        for (const arrival of upstream.arrivals) t.equal(hashOf(arrival.body), hashOf(renamed));
        t.equal(headerOf(upstream.arrivals[0]?.head ?? '', 'content-length'), String(renamed.length));
      }
    });
  }
}

test('a boundary is understood however it is written, and the upstream gets the same', async (t) => {
  const upstream = await startRawUpstream(t, hears);
  const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['audio'] });
  const written = [
    ['----WebKitFormBoundary7MA4', '----WebKitFormBoundary7MA4'],
    ['plain', '"plain"'],
    ["a b'()+_,-./:=?c", `"a b'()+_,-./:=?c"`],
    ['with:colon', 'with:colon; charset=utf-8'],
    [`${'x'.repeat(70)}`, 'x'.repeat(70)],
  ] as const;
  for (const [index, [limit, text]] of written.entries()) {
    const form = formOf([model, small], limit);
    const contentType = `Multipart/Form-Data;boundary=${text}`;
    const answer = await exchange(port, uploadRequest(form, { contentType }));
    t.equal(answer.status, 200, answer.body);
    const { head } = await upstream.arrival(index);
    t.equal(hashOf(upstream.arrivals[index]?.body as Buffer), hashOf(form));
    const response = new Response(new Uint8Array(form), {
      headers: { 'content-type': headerOf(head, 'content-type') ?? '' },
    });
    t.equal((await response.formData()).get('model'), 'm', 'another parser reads it by the content type');
  }
});

test('a client that waits for permission gets it and is served', async (t) => {
  const upstream = await startRawUpstream(t, hears);
  const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['audio'] });
  const form = formOf([model, large]);
  const socket = await open(port, uploadHead({ length: form.length, lines: 'expect: 100-continue\r\n' }));
  const [permission] = (await once(socket, 'data')) as [Buffer];
  t.equal(permission.toString(), 'HTTP/1.1 100 Continue\r\n\r\n');
  socket.write(form);
  t.equal((await readAnswer(socket)).status, 200);
  t.equal(hashOf(upstream.arrivals[0]?.body as Buffer), hashOf(form));
  t.notMatch(upstream.arrivals[0]?.head, /^expect:/im);
  socket.destroy();
});

test('a part with no content, and a form with line ends around it, pass', async (t) => {
  const upstream = await startRawUpstream(t, hears);
  const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['audio'] });
  const form = Buffer.concat([
    formOf([model, { name: 'prompt', value: '' }, fileOf(0)]),
    Buffer.from('\r\n'),
  ]);
  const answer = await exchange(port, uploadRequest(form));
  t.equal(answer.status, 200, answer.body);
  t.equal(hashOf(upstream.arrivals[0]?.body as Buffer), hashOf(form));
  const later = Buffer.concat([Buffer.from('\r\n'), formOf([model, large])]);
  t.equal((await exchange(port, uploadRequest(later))).status, 200);
  t.equal(hashOf(upstream.arrivals[1]?.body as Buffer), hashOf(later));
});

test('translations go to their own path', async (t) => {
  const upstream = await startRawUpstream(t, hears);
  const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['audio'] });
  const path = '/v1/audio/translations';
  const answer = await exchange(port, uploadRequest(formOf([model, small]), { path }));
  t.equal(answer.status, 200);
  t.match(upstream.arrivals[0]?.head, /^POST \/v1\/audio\/translations HTTP\/1\.1$/m);
});
