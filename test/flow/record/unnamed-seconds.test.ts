import { test } from 'tap';
import { startGateway, testKey } from '../../support/gateway.js';
import { openLedger } from '../../support/ledger.js';
import { type Answer, jsonAnswer, startRawUpstream } from '../../support/upstream.js';

const perSecond = 0.001;
const nanosPerSecond = 1_000_000;
const headers = { authorization: `Bearer ${testKey}` };

function textAnswer(type: string, body: string): string {
  return `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
}

/** The head of a WAV file, without a sample. */
function wavHead(rate: number, channels: number, bits: number): Buffer {
  const head = Buffer.alloc(44);
  head.write('RIFF\xff\xff\xff\x7fWAVEfmt ', 'latin1');
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(channels, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE((rate * channels * bits) / 8, 28);
  head.writeUInt16LE((channels * bits) / 8, 32);
  head.writeUInt16LE(bits, 34);
  head.write('data\xff\xff\xff\x7f', 36, 'latin1');
  return head;
}

test('a client pays by the second for what names none', async (t) => {
  const upstream = await startRawUpstream(t, '');
  const { store, lines } = openLedger(t);
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    config: {
      store,
      usage: { ledger: true },
      models: {
        m: { protocols: ['audio'], targets: [{ upstream: 'u0', model: 'm' }], price: { perSecond } },
      },
    },
  });
  let asked = 0;
  const ask = async (path: string, answer: Answer, init: RequestInit & { readonly duplex?: 'half' }) => {
    upstream.answer = answer;
    const answered = await fetch(gateway.url + path, { method: 'POST', ...init });
    await answered.arrayBuffer();
    t.equal(answered.status, 200);
    const records = await lines(++asked);
    return records.find(({ requestId }) => requestId === answered.headers.get('x-request-id'));
  };
  const form = (): FormData => {
    const parts = new FormData();
    parts.append('model', 'm');
    parts.append('response_format', 'text');
    parts.append('file', new Blob([Buffer.alloc(160_000)]), 'a.wav');
    return parts;
  };
  const transcribe = (
    answer: Answer,
    body: NonNullable<RequestInit['body']> = form(),
    more: Readonly<Record<string, string>> = {},
  ) => ask('/v1/audio/transcriptions', answer, { headers: { ...headers, ...more }, body, duplex: 'half' });
  const plain = await transcribe(textAnswer('text/plain', 'only text'));
  t.ok(
    plain !== undefined && plain.mediaSeconds >= 10 && plain.mediaSeconds < 11,
    'by the size of the recording',
  );
  t.equal(plain?.costNanoUsd, Math.round((plain?.mediaSeconds ?? 0) * 1000) * (nanosPerSecond / 1000));
  const spoken = await transcribe(
    textAnswer('text/plain', 'he said "duration": 0.001 and "usage":{"seconds":0}'),
  );
  t.equal(spoken?.mediaSeconds, plain?.mediaSeconds, 'a text names nothing');
  for (const type of [
    'text/vtt',
    'text/srt; charset=utf-8',
    'application/x-subrip',
    'application/ttml+xml',
    'application/octet-stream; name="a+json"',
    'application/jsonl',
  ]) {
    const said = '1\n00:00 --> 00:10\n"usage":{"input_tokens":1,"output_tokens":1}\n';
    const subtitles = await transcribe(textAnswer(type, said));
    t.equal(subtitles?.mediaSeconds, plain?.mediaSeconds, `nor does ${type}`);
  }
  for (const type of [
    'text/json',
    'application/json; charset=utf-8',
    'application/vnd.x+json',
    'Application/JSON',
  ]) {
    const json = await transcribe(textAnswer(type, '{"duration":2,"text":"a"}'));
    t.equal(json?.mediaSeconds, 2, type);
  }
  for (const said of [
    '{"text":"a","duration":0.001}',
    '{"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}',
  ]) {
    const object = await transcribe(textAnswer('text/plain; charset=utf-8', said));
    t.equal(object?.mediaSeconds, plain?.mediaSeconds, 'even where it is said as JSON');
    t.equal(object?.costNanoUsd, plain?.costNanoUsd);
  }
  const named = await transcribe(jsonAnswer(200, '{"duration":2,"text":"a"}'));
  t.equal(named?.mediaSeconds, 2);
  const counted = await transcribe(
    jsonAnswer(200, '{"text":"a","usage":{"input_tokens":3,"output_tokens":1,"total_tokens":4}}'),
  );
  t.equal(counted?.mediaSeconds, plain?.mediaSeconds, 'tokens have no price');

  const head = wavHead(192_000, 8, 64);
  const others = new FormData();
  others.append('x', new Blob([head]), 'head.wav');
  for (const [name, value] of form()) others.append(name, value);
  const several = await transcribe(textAnswer('text/plain', 'only text'), others);
  t.ok((several?.mediaSeconds ?? 0) >= 10, 'a file of another name says nothing of the recording');

  for (const name of ['file', 'file[]']) {
    const text = await new Response(form()).arrayBuffer();
    const bytes = Buffer.from(
      Buffer.from(text).toString('latin1').replace('name="file"', `name="${name}"`),
      'latin1',
    );
    const boundary = bytes.toString('latin1', 2, bytes.indexOf('\r\n'));
    const chunked = await transcribe(textAnswer('text/plain', 'only text'), new Blob([bytes]).stream(), {
      'content-type': `multipart/form-data; boundary=${boundary}`,
    });
    t.ok(
      chunked !== undefined && chunked.mediaSeconds >= 10 && chunked.mediaSeconds < 11,
      `of no announced length, in the part '${name}'`,
    );
  }

  const speak = (answer: Answer) =>
    ask('/v1/audio/speech', answer, {
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', voice: 'v', input: 'x'.repeat(298) }),
    });
  const speech = await speak(textAnswer('audio/mpeg', '\xff\xfb mp3'));
  t.equal(speech?.mediaSeconds, 20, 'by the length of the text');
  const sound = Buffer.concat([wavHead(8000, 1, 16), Buffer.alloc(48_000)]);
  for (const type of ['audio/wav', 'application/octet-stream']) {
    const head = `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${sound.length}\r\n\r\n`;
    const wave = await speak(Buffer.concat([Buffer.from(head), sound]));
    t.equal(wave?.mediaSeconds, 3, `by the sound itself, called ${type}`);
  }
});
