import { once } from 'node:events';
import { gzipSync } from 'node:zlib';
import { test } from 'tap';
import { startGateway } from '../../support/gateway.js';
import { exchange, readAnswer } from '../../support/raw-client.js';
import {
  boundary,
  chunkedRequest,
  chunkOf,
  type FormPiece,
  fileOf,
  formOf,
  model,
  uploadHead,
  uploadRequest,
} from '../../support/upload-form.js';
import { startRawUpstream } from '../../support/upstream.js';
import { hears } from '../audio-upstream.js';
import { startUpload } from './upload-client.js';

const mebibyte = 1024 * 1024;
const file = fileOf(1000);
const large = fileOf(2 * mebibyte);

interface Refusal {
  readonly what: string;
  readonly pieces: readonly FormPiece[];
  readonly status?: number;
  readonly param: string | null;
}

const field = (name: string, value: string): FormPiece => ({ name, value });

const refusals: readonly Refusal[] = [
  { what: 'no file', pieces: [model], param: 'file' },
  { what: 'no model', pieces: [file], param: 'model' },
  { what: 'an empty model', pieces: [field('model', ''), file], param: 'model' },
  { what: 'a model twice', pieces: [model, file, model], param: 'model' },
  { what: 'a file twice', pieces: [model, file, file], param: 'file' },
  { what: 'a file twice, once as a list', pieces: [model, file, { ...file, name: 'file[]' }], param: 'file' },
  {
    what: 'a file twice, once by its number',
    pieces: [model, { ...file, name: 'file[0]' }, file],
    param: 'file',
  },
  { what: 'a file as a field', pieces: [model, field('file', 'x')], param: 'file' },
  { what: 'a model as a file', pieces: [{ ...model, filename: 'm' }, file], param: 'model' },
  { what: 'a model as a list', pieces: [field('model[]', 'm'), file], param: 'model' },
  { what: 'an unknown model', pieces: [field('model', 'none'), file], status: 404, param: 'model' },
  { what: 'a flag', pieces: [model, field('stream', 'perhaps'), file], param: 'stream' },
];

for (const { what, pieces, status = 400, param } of refusals) {
  test(`refused: ${what}`, async (t) => {
    const upstream = await startRawUpstream(t, hears);
    const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['audio'] });
    const form = formOf(pieces);
    for (const request of [uploadRequest(form), chunkedRequest(form, [50, 200])]) {
      const answer = await exchange(port, request);
      t.equal(answer.status, status, answer.body);
      const { error } = JSON.parse(answer.body);
      t.equal(error.param, param, error.message);
      t.equal(error.type, 'invalid_request_error');
    }
    t.equal(upstream.arrivals.length, 0);
  });
}

test('a wrong field behind the file of a streamed form is refused, and the upstream is not left with it', async (t) => {
  const upstream = await startRawUpstream(t, hears);
  const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['audio'] });
  const wrong: readonly [FormPiece, string][] = [
    [field('stream', 'perhaps'), 'stream'],
    [model, 'model'],
    [{ ...file, name: 'language' }, 'language'],
  ];
  for (const [index, [piece, param]] of wrong.entries()) {
    const form = formOf([model, large, piece]);
    const client = await startUpload(port, uploadHead({ length: form.length }));
    await client.send(form.subarray(0, mebibyte));
    const arrival = await upstream.arrival(index);
    client.socket.write(form.subarray(mebibyte));
    const answer = await client.answer;
    t.equal(answer.status, 400, answer.body);
    t.equal(JSON.parse(answer.body).error.param, param);
    client.socket.destroy();
    await arrival.closed;
    t.notOk(arrival.isWhole, 'the upstream never got the end of the form');
  }
});

test('a second model is refused before the upstream has the end of the form, even if the client holds back the last byte', async (t) => {
  const upstream = await startRawUpstream(t, hears);
  const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['audio'] });
  const wrong: readonly (readonly [string, readonly FormPiece[]])[] = [
    ['model', [model, large, { ...model, value: 'other' }]],
    ['stream', [model, large, field('stream', 'perhaps')]],
  ];
  for (const [param, pieces] of wrong) {
    const form = formOf(pieces);
    for (const chunked of [false, true]) {
      const length = chunked ? undefined : form.length + 1;
      const index = upstream.arrivals.length;
      const client = await startUpload(port, uploadHead({ length }));
      const whole = chunked ? chunkOf(form) : form;
      await client.send(whole.subarray(0, 1.5 * mebibyte));
      const arrival = await upstream.arrival(index);
      client.socket.write(whole.subarray(1.5 * mebibyte));
      const answer = await client.answer;
      t.equal(answer.status, 400, answer.body);
      t.equal(JSON.parse(answer.body).error.param, param);
      await arrival.closed;
      t.notOk(arrival.body.includes(`--${boundary}--`), 'the end of the form has not left');
      if (param === 'model') t.notOk(arrival.body.includes('other'), 'nor has the second model');
      client.socket.destroy();
    }
  }
});

test('a form that is broken in its middle, or ends early, is refused', async (t) => {
  const upstream = await startRawUpstream(t, hears);
  const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['audio'] });
  for (const content of [file, large]) {
    const form = formOf([model, content, field('prompt', 'x')]);
    const noEnd = form.subarray(0, form.length - 10);
    const badHead = Buffer.from(form);
    badHead.write('no-disposition     ', form.lastIndexOf('content-disposition'));
    for (const broken of [noEnd, badHead]) {
      for (const request of [uploadRequest(broken), chunkedRequest(broken, [70, 3000])]) {
        const answer = await exchange(port, request);
        t.equal(answer.status, 400, answer.body);
        t.match(JSON.parse(answer.body), { error: { type: 'invalid_request_error', message: /form/ } });
      }
    }
  }
  for (const arrival of upstream.arrivals) {
    await arrival.closed;
    t.notOk(arrival.isWhole);
  }
  t.equal((await exchange(port, uploadRequest(Buffer.alloc(0)))).status, 400);
  t.equal((await exchange(port, uploadRequest(Buffer.from('{"model":"m"}')))).status, 400);
});

test('other content types are told what is expected', async (t) => {
  const { port } = await startGateway(t, { upstreams: ['http://127.0.0.1:1/v1'], protocols: ['audio'] });
  const form = formOf([model, file]);
  const types: readonly [string, number, RegExp][] = [
    ['application/json', 415, /multipart\/form-data/],
    ['application/x-www-form-urlencoded', 415, /multipart\/form-data/],
    ['', 415, /found none/],
    ['multipart/form-data', 400, /boundary/],
    ['multipart/form-data; boundary=""', 400, /boundary/],
    ['multipart/form-data; boundary=a; boundary=b', 400, /two boundaries/],
    [`multipart/form-data; boundary=${'x'.repeat(71)}`, 400, /boundary/],
    ['multipart/form-data; boundary=other', 400, /boundary/],
  ];
  for (const [contentType, status, words] of types) {
    const answer = await exchange(port, uploadRequest(form, { contentType }));
    t.equal(answer.status, status, answer.body);
    t.match(JSON.parse(answer.body).error.message, words);
  }
  const coded = await exchange(port, uploadRequest(gzipSync(form), { lines: 'content-encoding: gzip\r\n' }));
  t.equal(coded.status, 415);
  t.match(JSON.parse(coded.body).error.message, /content-encoding/);
  t.notMatch(coded.head, /^accept-encoding: .*gzip/im, 'and not told that the coding is fine');
});

test('a model behind the file is found up to the limit of what is held', async (t) => {
  const upstream = await startRawUpstream(t, hears);
  const { port } = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['audio'],
    config: { limits: { bodyBytes: 3 * mebibyte, uploadBytes: 8 * mebibyte } },
  });
  const within = formOf([fileOf(3 * mebibyte - 1000), model]);
  const beyond = formOf([fileOf(3 * mebibyte + 1000), model]);
  t.equal((await exchange(port, uploadRequest(within))).status, 200);
  t.equal((await exchange(port, chunkedRequest(within, [mebibyte]))).status, 200);
  for (const request of [uploadRequest(beyond), chunkedRequest(beyond, [mebibyte, 2 * mebibyte])]) {
    const answer = await exchange(port, request);
    t.equal(answer.status, 413);
    t.match(JSON.parse(answer.body).error, { param: 'model', message: /must come before the file/ });
  }
  t.equal((await exchange(port, uploadRequest(formOf([model, fileOf(5 * mebibyte)])))).status, 200);
});

test('a form that begins with its model may be larger than a body, read whole or passed on', async (t) => {
  const upstream = await startRawUpstream(t, hears);
  const { port } = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['audio'],
    config: { limits: { bodyBytes: 4096 } },
  });
  for (const bytes of [100_000, 2 * mebibyte]) {
    const form = formOf([model, fileOf(bytes)]);
    for (const request of [uploadRequest(form), chunkedRequest(form, [5000])]) {
      const answer = await exchange(port, request);
      t.equal(answer.status, 200, answer.body);
    }
  }
});

test('a form beyond the limit is refused: announced, and counted', async (t) => {
  const upstream = await startRawUpstream(t, hears);
  const { port } = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['audio'],
    config: { limits: { uploadBytes: 3 * mebibyte } },
  });
  const form = formOf([model, fileOf(3 * mebibyte)]);
  const announced = await startUpload(port, uploadHead({ length: form.length }));
  t.match(await announced.answer, { status: 413 });
  t.equal(upstream.arrivals.length, 0);
  const counted = await startUpload(port, uploadHead());
  await counted.send(chunkOf(form.subarray(0, 2 * mebibyte)));
  const arrival = await upstream.arrival(0);
  for (let at = 2 * mebibyte; at < form.length; at += 65_536)
    counted.socket.write(chunkOf(form.subarray(at, at + 65_536)));
  const answer = await counted.answer;
  t.equal(answer.status, 413, answer.body);
  t.match(JSON.parse(answer.body).error.message, /3145728 bytes/);
  await arrival.closed;
  t.notOk(arrival.isWhole);
  await counted.closed;
  announced.socket.destroy();
});

test('fields have a limit, each and together', async (t) => {
  const upstream = await startRawUpstream(t, hears);
  const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['audio'] });
  const one = formOf([model, field('prompt', 'x'.repeat(256 * 1024 + 1)), file]);
  const tooLarge = await exchange(port, uploadRequest(one));
  t.match([tooLarge.status, JSON.parse(tooLarge.body).error.param], [400, 'prompt']);
  const several = Array.from({ length: 16 }, (_, index) => field(`x${index}`, 'x'.repeat(256 * 1024)));
  const together = await exchange(port, uploadRequest(formOf([model, large, ...several])));
  t.equal(together.status, 400);
  t.match(JSON.parse(together.body).error.message, /fields of the form/);
  const parts = Array.from({ length: 128 }, (_, index) => field(`x${index}`, 'x'));
  const many = await exchange(port, uploadRequest(formOf([model, ...parts, file])));
  t.match([many.status, JSON.parse(many.body).error.message], [400, /more than 128 parts/]);
});

test('a client that falls silent is told so', async (t) => {
  const upstream = await startRawUpstream(t, hears);
  const { port } = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['audio'],
    config: { timeouts: { bodyMs: 1000 } },
  });
  const form = formOf([model, large]);
  const late = formOf([large, model]);
  const silent = await Promise.all([
    startUpload(port, uploadHead({ length: form.length })),
    startUpload(
      port,
      Buffer.concat([Buffer.from(uploadHead({ length: form.length })), form.subarray(0, mebibyte)]),
    ),
    startUpload(
      port,
      Buffer.concat([Buffer.from(uploadHead({ length: late.length })), late.subarray(0, mebibyte)]),
    ),
    startUpload(port, uploadHead() + chunkOf(form.subarray(0, 5000)).toString('latin1')),
  ]);
  for (const client of silent) {
    const answer = await client.answer;
    t.equal(answer.status, 408);
    t.match(JSON.parse(answer.body).error, { message: /did not arrive in time/ });
    t.match(answer.head, /^connection: close$/im);
    await client.closed;
  }
  await (await upstream.arrival(0)).closed;
});

test('a client that sends a form in time but never its model is cut by the total time', async (t) => {
  const { port } = await startGateway(t, {
    upstreams: ['http://127.0.0.1:1/v1'],
    protocols: ['audio'],
    config: { timeouts: { totalMs: 500, bodyMs: 60_000 } },
  });
  const client = await startUpload(port, uploadHead({ length: 5 * mebibyte }));
  client.socket.write(formOf([large]).subarray(0, 5000));
  t.equal((await client.answer).status, 408);
  await client.closed;
});

test('an upstream that takes a form and never answers is cut by the total time', async (t) => {
  const upstream = await startRawUpstream(t, () => {});
  const { port } = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['audio'],
    config: { timeouts: { totalMs: 300 } },
  });
  const answer = await exchange(port, uploadRequest(formOf([model, file])));
  t.equal(answer.status, 504);
  await (await upstream.arrival(0)).closed;
});

test('a client that is stopped by its upstream is not blamed for its silence', async (t) => {
  const upstream = await startRawUpstream(t, hears, { onHead: ({ socket }) => socket.pause() });
  const { port } = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['audio'],
    config: { timeouts: { bodyMs: 500, idleMs: 1500 } },
  });
  const client = await startUpload(port, uploadRequest(formOf([model, fileOf(32 * mebibyte)])));
  const answer = await client.answer;
  t.equal(answer.status, 504, 'the upstream is');
  client.socket.destroy();
});

test('a connection goes on behind a form that was refused', async (t) => {
  const upstream = await startRawUpstream(t, hears);
  const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['audio'] });
  const good = uploadRequest(formOf([model, file]));
  const bad = [
    uploadRequest(formOf([model])),
    uploadRequest(formOf([field('model', 'none'), large])),
    uploadRequest(formOf([model, large, field('stream', 'perhaps')])),
    uploadRequest(formOf([model, file]), { contentType: 'text/plain' }),
    uploadRequest(formOf([model, large]), { key: 'sk-other' }),
  ];
  for (const request of bad) {
    const client = await startUpload(port, request);
    const refused = await client.answer;
    t.ok(refused.status >= 400 && refused.status < 500, String(refused.status));
    const next = readAnswer(client.socket);
    await client.send(good);
    t.equal((await next).status, 200);
    client.socket.destroy();
  }
  const chunked = await startUpload(port, chunkedRequest(formOf([model]), []));
  t.equal((await chunked.answer).status, 400);
  await chunked.closed;
});

test('a form for which there is no room is told to come again', async (t) => {
  const upstream = await startRawUpstream(t, hears);
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    protocols: ['audio'],
    config: { limits: { bodyBytes: 3 * mebibyte, bufferedBytes: 3 * mebibyte } },
  });
  const late = formOf([large, model]);
  const held = late.length - 10;
  let holder = await startUpload(gateway.port, uploadHead({ length: late.length }));
  await holder.send(late.subarray(0, held));
  // What was sent has not all been read at once: the two race for the room until the first has most of it.
  let refused = await exchange(gateway.port, uploadRequest(late));
  while (refused.status === 200 || holder.isAnswered) {
    if (holder.isAnswered) {
      holder.socket.destroy();
      holder = await startUpload(gateway.port, uploadHead({ length: late.length }));
      await holder.send(late.subarray(0, held));
    }
    refused = await exchange(gateway.port, uploadRequest(late));
  }
  t.equal(refused.status, 503, refused.body);
  t.match(refused.head, /^retry-after: 1$/im);
  await holder.send(late.subarray(held));
  t.equal((await holder.answer).status, 200);
  t.equal((await exchange(gateway.port, uploadRequest(late))).status, 200);
  holder.socket.destroy();
});

test('a text that is on its way when the form turns out wrong is cut, not mixed with words of ours', async (t) => {
  const text = 'a'.repeat(600_000);
  const upstream = await startRawUpstream(t, hears, {
    onHead: ({ socket }) =>
      socket.write(
        `HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n${chunkOf(Buffer.from(text))}`,
      ),
  });
  const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['audio'] });
  const form = formOf([model, large, field('stream', 'perhaps')]);
  const client = await startUpload(port, uploadHead({ length: form.length }));
  let received = '';
  client.socket.on('data', (data) => {
    received += data.toString('latin1');
  });
  await client.send(form.subarray(0, 1_500_000));
  while (!received.includes('aaaa')) await once(client.socket, 'data');
  await client.send(form.subarray(1_500_000));
  await client.closed;
  t.notMatch(received, /error/);
  t.notOk(received.endsWith('0\r\n\r\n'), 'the client can tell that it is not whole');
});
