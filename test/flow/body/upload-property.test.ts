import { test } from 'tap';
import { startGateway } from '../../support/gateway.js';
import { exchange, open, readAnswer } from '../../support/raw-client.js';
import { fc } from '../../support/seed.js';
import {
  chunkedRequest,
  type FormPiece,
  fileOf,
  formOf,
  hashOf,
  uploadRequest,
} from '../../support/upload-form.js';
import { startRawUpstream } from '../../support/upstream.js';
import { hears } from '../audio-upstream.js';

const fields = fc.array(
  fc.record({
    name: fc.constantFrom('prompt', 'language', 'x', 'x[]', 'include[]', 'é"name'.replaceAll('"', '%22')),
    value: fc.string({ maxLength: 300, unit: 'binary' }),
  }),
  { maxLength: 6 },
);
const sizes = fc.constantFrom(0, 1, 5000, 1_048_576, 1_500_000);

/** Fields that may come once, once. */
function once(pieces: readonly FormPiece[]): readonly FormPiece[] {
  const single = new Set(['prompt', 'language']);
  return pieces.filter(
    ({ name }, index) => !single.has(name) || pieces.findIndex((piece) => piece.name === name) === index,
  );
}

test('any form, cut anywhere, reaches the upstream as it is but for its model', async (t) => {
  const upstream = await startRawUpstream(t, hears);
  const gateways = {
    exact: await startGateway(t, { upstreams: [upstream.url], protocols: ['audio'] }),
    renamed: await startGateway(t, {
      upstreams: [upstream.url],
      protocols: ['audio'],
      alias: 'a longer name',
    }),
  };
  const cuts = fc.array(fc.nat(2_000_000), { maxLength: 20 });
  const property = fc.asyncProperty(
    fields,
    fields,
    fc.record({
      bytes: sizes,
      at: fc.nat(12),
      modelAt: fc.nat(12),
      noise: fc.uint8Array({ maxLength: 500 }),
    }),
    cuts,
    fc.option(cuts, { freq: 2 }),
    fc.boolean(),
    async (before, after, place, writes, chunks, renamed) => {
      const rest = once([...before, ...after]);
      const file = fileOf(place.bytes);
      const value = Buffer.concat([Buffer.from(place.noise), file.value as Buffer]);
      const pieces = rest.toSpliced(place.at, 0, { ...file, value });
      const named = (model: string) =>
        formOf(pieces.toSpliced(place.modelAt, 0, { name: 'model', value: model }), 'a-boundary-of-its-own');
      const contentType = 'multipart/form-data; boundary=a-boundary-of-its-own';
      const request =
        chunks === null
          ? uploadRequest(named('m'), { contentType })
          : chunkedRequest(named('m'), chunks, { contentType });
      const { port } = renamed ? gateways.renamed : gateways.exact;
      const index = upstream.arrivals.length;
      // How the server's own parser takes a request line in pieces is not looked at here.
      let from = request.indexOf('\r\n') + 2;
      const socket = await open(port, request.subarray(0, from));
      const ends = writes.filter((at) => at > from && at < request.length).sort((a, b) => a - b);
      for (const to of [...ends, request.length]) {
        socket.write(request.subarray(from, to));
        from = to;
        await new Promise((resolve) => setImmediate(resolve));
      }
      const answer = await readAnswer(socket);
      socket.destroy();
      if (answer.status !== 200) throw new Error(answer.body);
      const body = upstream.arrivals[index]?.body as Buffer;
      return hashOf(body) === hashOf(named(renamed ? 'a longer name' : 'm'));
    },
  );
  await fc.assert(property, { numRuns: 60 });
  t.ok(upstream.arrivals.length >= 60);
});

test('a body in chunks of one byte arrives whole', async (t) => {
  const upstream = await startRawUpstream(t, hears);
  const { port } = await startGateway(t, { upstreams: [upstream.url], protocols: ['audio'] });
  const prompt = { name: 'prompt', value: 'x'.repeat(1000) };
  const form = formOf([prompt, fileOf(50_000), { name: 'model', value: 'm' }]);
  const everywhere = Array.from({ length: form.length }, (_, at) => at);
  const answer = await exchange(port, chunkedRequest(form, everywhere));
  t.equal(answer.status, 200, answer.body);
  t.equal(hashOf(upstream.arrivals[0]?.body as Buffer), hashOf(form));
});
