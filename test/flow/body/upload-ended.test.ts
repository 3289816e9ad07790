import { test } from 'tap';
import { startGateway } from '../../support/gateway.js';
import { exchange, open } from '../../support/raw-client.js';
import { fileOf, formOf, hashOf, model, uploadHead, uploadRequest } from '../../support/upload-form.js';
import { startRawUpstream } from '../../support/upstream.js';
import { hears } from '../audio-upstream.js';

const mebibyte = 1024 * 1024;
/** More than the sockets between hold, so that the answer waits for its client. */
const answerBytes = 24 * mebibyte;
const streamed = formOf([model, { name: 'stream', value: 'true' }, fileOf(8 * mebibyte)]);

function events(): Buffer {
  const event = `data: {"type":"transcript.text.delta","delta":"${'y'.repeat(60_000)}"}\n\n`;
  const chunk = Buffer.from(`${event.length.toString(16)}\r\n${event}\r\n`);
  const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n';
  const count = Math.ceil(answerBytes / chunk.length);
  return Buffer.concat([Buffer.from(head), ...Array.from({ length: count }, () => chunk)]);
}

const late = [
  { what: 'goes on', rest: streamed.subarray(100_000) },
  {
    what: 'is broken',
    rest: Buffer.concat([Buffer.from('\r\n--limit-of-parts!'), streamed.subarray(100_019)]),
  },
];

for (const { what, rest } of late) {
  test(`an upload that ${what} after its call has ended is thrown away`, async (t) => {
    const upstream = await startRawUpstream(t, hears, {
      onHead: ({ socket }, index) => {
        if (index === 0) socket.write(events());
      },
    });
    const gateway = await startGateway(t, {
      upstreams: [upstream.url],
      protocols: ['audio'],
      config: {
        timeouts: { bodyMs: 2000 },
        limits: { bodyBytes: 3 * mebibyte, bufferedBytes: 3 * mebibyte },
      },
    });
    const socket = await open(gateway.port, uploadHead({ length: streamed.length }));
    socket.pause();
    socket.write(streamed.subarray(0, 100_000));
    await gateway.line(({ outcome }) => outcome !== undefined);
    await new Promise<void>((resolve) => socket.write(rest, () => resolve()));
    // All of it has been read when its client has taken the answer.
    let text = '';
    await new Promise<void>((resolve) => {
      socket.on('data', (data) => {
        text = (text + data.toString('latin1')).slice(-200_000);
        if (text.endsWith('\r\n0\r\n\r\n')) resolve();
      });
      socket.on('close', () => resolve());
      socket.resume();
    });
    t.equal(text.split('"error":').length, 2, 'one error has ended the answer');
    t.equal(upstream.arrivals.length, 1, 'the upstream was asked once');
    t.equal(gateway.lines.filter(({ outcome }) => outcome !== undefined).length, 1);
    socket.destroy();
    const last = formOf([fileOf(2 * mebibyte + 900_000), model]);
    const answer = await exchange(gateway.port, uploadRequest(last));
    t.equal(answer.status, 200, `there is room for all that may be held: ${answer.body}`);
    t.equal(hashOf(upstream.arrivals[1]?.body as Buffer), hashOf(last));
  });
}
