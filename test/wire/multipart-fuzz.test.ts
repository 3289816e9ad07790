import { test } from 'tap';
import { GatewayError } from '../../src/errors.js';
import { boundaryOf } from '../../src/wire/multipart-type.js';
import { randomOf, seed } from '../support/seed.js';
import { decode, wide } from './multipart-decoding.js';
import { formSamples } from './multipart-samples.js';

const seeds = 6000;

const tokens = [
  '\r\n',
  '\n',
  '\r',
  '--',
  '"',
  '\\"',
  ';',
  '\0',
  '%',
  "filename*=UTF-8''%",
  ': ',
  '\r\n\r\n',
  '\xff',
  '\r\n--',
];

function mutate(bytes: Buffer, random: () => number, boundary: string): Buffer {
  const at = Math.floor(random() * (bytes.length + 1));
  const length = Math.floor(random() * 30);
  const before = bytes.subarray(0, at);
  const after = bytes.subarray(at);
  switch (Math.floor(random() * 6)) {
    case 0:
      return Buffer.concat([before, Buffer.from([Math.floor(random() * 256)]), after.subarray(1)]);
    case 1:
      return Buffer.concat([before, after.subarray(length)]);
    case 2:
      return Buffer.concat([before, after.subarray(0, length), after]);
    case 3:
      return Buffer.concat([
        before,
        Buffer.from(tokens[Math.floor(random() * tokens.length)] as string, 'latin1'),
        after,
      ]);
    case 4:
      return Buffer.concat([before, Buffer.from(`\r\n--${boundary}`), after]);
    default:
      return before;
  }
}

test('a damaged form is read or refused, the same at every split, and little of it is held', async (t) => {
  const limits = { ...wide, parts: 6, headerBytes: 200, fieldBytes: 40, fileBytes: 60 };
  let refusals = 0;
  for (let each = 1; each <= seeds; each++) {
    const random = randomOf(seed + each);
    const sample = formSamples[each % formSamples.length] as (typeof formSamples)[number];
    const boundary = boundaryOf(sample.contentType);
    let body = sample.body;
    for (let count = Math.floor(random() * 4); count >= 0; count--) body = mutate(body, random, boundary);
    const whole = decode({ body, boundary, limits }, []);
    const cuts = Array.from({ length: 1 + (each % 9) }, () => Math.floor(random() * (body.length + 1)));
    const split = decode(
      { body, boundary, limits },
      cuts.sort((a, b) => a - b),
    );
    const isSame =
      JSON.stringify(whole.parts) === JSON.stringify(split.parts) &&
      whole.error?.message === split.error?.message;
    if (!isSame) t.fail(`case ${each} depends on the split`);
    if (Math.max(whole.held, split.held) > limits.headerBytes)
      t.fail(`case ${each} holds ${split.held} bytes`);
    if (whole.error !== null && ![400, 413].includes(whole.error.status)) t.fail(`case ${each}`);
    if (whole.error !== null) refusals++;
  }
  t.ok(refusals > seeds / 2, `${refusals} refused`);
  t.ok(refusals < seeds, `${seeds - refusals} read`);
});

test('a damaged content type has a boundary or is refused', async (t) => {
  for (let each = 1; each <= seeds; each++) {
    const random = randomOf(seed + each);
    const sample = formSamples[each % formSamples.length] as (typeof formSamples)[number];
    const contentType = mutate(Buffer.from(sample.contentType), random, 'b').toString('latin1');
    try {
      const boundary = boundaryOf(contentType);
      if (boundary.length < 1 || boundary.length > 70) t.fail(contentType);
    } catch (error) {
      if (!(error instanceof GatewayError)) t.fail(contentType);
    }
  }
  t.pass();
});

test('what is hostile to a search takes no longer than anything else', async (t) => {
  const boundary = '-'.repeat(70);
  const head = `--${boundary}\r\ncontent-disposition: form-data; name="a"; filename="b"\r\n\r\nx`;
  for (const filling of ['\r\n', '-', '\r\n--', `\r\n--${'-'.repeat(69)}!`, '\r']) {
    const body = Buffer.concat([
      Buffer.from(head),
      Buffer.alloc(4_000_000, filling),
      Buffer.from(`!\r\n--${boundary}--`),
    ]);
    const cuts = Array.from({ length: 60 }, (_, index) => index * 65_536);
    const started = performance.now();
    const { error } = decode({ body, boundary, limits: { ...wide, fileBytes: 8_000_000 } }, cuts);
    t.equal(error, null);
    t.ok(performance.now() - started < 3000, JSON.stringify(filling));
  }
});
