import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { test } from 'tap';
import { startGateway, testKey } from '../support/gateway.js';
import { chatRequest, exchange } from '../support/raw-client.js';
import { fc } from '../support/seed.js';
import {
  chatEvent,
  chunk,
  completion,
  doneEvent,
  jsonAnswer,
  lastChunk,
  startRawUpstream,
  streamHead,
} from '../support/upstream.js';
import { anyText, noise, writeJson } from '../wire/json-text.js';

/** JSON text of a value: one of the many, with space before and behind it. */
function textOf(value: unknown): fc.Arbitrary<string> {
  return noise.map((numbers) => writeJson(value, numbers));
}

const anyString = fc.oneof(
  anyText,
  fc.constantFrom('\ud800', '\udc00x', '\0', '\x7f', '\u2028', '\ufeff', '/'),
);
const stringText = anyString.chain(textOf);
const numberText = fc.constantFrom(
  ...['0', '-0', '1.0', '-1E+2', '1e400', '1e-400', '9007199254740993', '0.10000000000000000555111512312578'],
  '123456789012345678901234567890',
);
const unknownKey = fc
  .oneof(
    fc.constantFrom('', '__proto__', 'constructor', 'toString', 'Modell', 'mode', 'stream_option', 'usage'),
    anyString.map((text) => `x-${text}`),
  )
  .chain(textOf);

/** JSON text of an object; keys may come twice. */
function objectOf(members: fc.Arbitrary<readonly string[]>): fc.Arbitrary<string> {
  return members.map((texts) => `{${texts.join()}}`);
}

function arrayOf(items: fc.Arbitrary<string>, minLength = 0): fc.Arbitrary<string> {
  return fc.array(items, { minLength, maxLength: 3 }).map((texts) => `[${texts.join()}]`);
}

function member(key: string, value: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.tuple(textOf(key), value).map((pair) => pair.join(':'));
}

const unknownMember: fc.Arbitrary<string> = fc.letrec<{ value: string; member: string; object: string }>(
  (tie) => ({
    value: fc.oneof(
      { maxDepth: 3, depthSize: 'small' },
      fc.oneof(stringText, numberText, fc.constantFrom('true', 'false', 'null', '{}', '[ ]')),
      arrayOf(tie('value')),
      tie('object'),
    ),
    object: objectOf(fc.array(tie('member'), { maxLength: 3 })),
    member: fc.tuple(unknownKey, tie('value')).map((pair) => pair.join(':')),
  }),
).member;

/** JSON text of an object with these members, perhaps some of those, and unknown ones, in any order. */
function anyObject(
  required: readonly fc.Arbitrary<string>[],
  optional: readonly fc.Arbitrary<string>[] = [],
): fc.Arbitrary<string> {
  const rest = fc
    .subarray([...optional])
    .chain((some) => fc.tuple(...required, ...some, fc.array(unknownMember, { maxLength: 3 })));
  return objectOf(rest.map((all) => all.flat()).chain(shuffled));
}

function shuffled(texts: readonly string[]): fc.Arbitrary<string[]> {
  return fc.shuffledSubarray([...texts], { minLength: texts.length });
}

const part = anyObject([member('type', textOf('text')), member('text', stringText)]);
const call = anyObject([
  member('id', stringText),
  member('type', textOf('function')),
  member('function', anyObject([member('name', textOf('f')), member('arguments', stringText)])),
]);
const message = fc.oneof(
  anyObject([
    member('role', fc.oneof(...['user', 'system', 'developer', 'someone'].map(textOf))),
    member('content', fc.oneof(stringText, arrayOf(part))),
  ]),
  anyObject(
    [member('role', textOf('assistant'))],
    [member('content', fc.oneof(stringText, fc.constant('null'))), member('tool_calls', arrayOf(call, 1))],
  ),
  anyObject([
    member('role', textOf('tool')),
    member('tool_call_id', stringText),
    member('content', stringText),
  ]),
);
const tool = anyObject([
  member('type', textOf('function')),
  member('function', anyObject([member('name', textOf('f'))], [member('parameters', anyObject([]))])),
]);
const settings = [
  member('temperature', fc.constantFrom('0.70', '7e-1', '2', 'null', '0.30000000000000004')),
  member('max_tokens', fc.constantFrom('1', '1e3', '16.0', 'null')),
  member('seed', fc.constantFrom('-9007199254740993', '7', 'null')),
  member('stop', fc.oneof(stringText, arrayOf(stringText))),
  member('tools', arrayOf(tool, 1)),
  member('metadata', objectOf(fc.array(fc.tuple(stringText, stringText).map((pair) => pair.join(':'))))),
];
/** A stream whose usage nobody has to ask for, or none. */
const streaming = fc.oneof(
  fc.constant<string[]>([]),
  member('stream', fc.constantFrom('false', 'null')).map((text) => [text]),
  fc
    .tuple(
      member('stream', fc.constant(' true ')),
      member('stream_options', anyObject([member('include_usage', fc.constant('true'))])),
    )
    .map((pair) => [...pair]),
);

const mark = '\u0001model\u0001';
const body = fc
  .tuple(
    member('model', fc.constant(` ${mark}\n`)),
    member('messages', arrayOf(message, 1)),
    fc.subarray([...settings]).chain((some) => fc.tuple(...some)),
    streaming,
    fc.array(unknownMember, { maxLength: 3 }),
  )
  .chain((all) => objectOf(shuffled(all.flat())));

/** How a body comes to the gateway. */
interface Delivery {
  readonly coding: '' | 'gzip' | 'deflate' | 'br';
  /** Sizes of its HTTP chunks; empty for a body with a content-length. */
  readonly chunks: readonly number[];
}
const delivery: fc.Arbitrary<Delivery> = fc.record({
  coding: fc.constantFrom('' as const, '' as const, 'gzip' as const, 'deflate' as const, 'br' as const),
  chunks: fc.oneof(
    fc.constant([]),
    fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 5 }),
  ),
});

const encoders = {
  '': (bytes: Buffer) => bytes,
  gzip: (bytes: Buffer) => gzipSync(bytes),
  deflate: (bytes: Buffer) => deflateSync(bytes),
  br: (bytes: Buffer) => brotliCompressSync(bytes),
};

function requestOf(plain: Buffer, { coding, chunks }: Delivery): Buffer {
  const bytes = encoders[coding](plain);
  const codingLine = coding === '' ? '' : `content-encoding: ${coding}\r\n`;
  if (chunks.length === 0) return chatRequest(bytes, codingLine);
  const head =
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\n` +
    `content-type: application/json\r\n${codingLine}transfer-encoding: chunked\r\n\r\n`;
  const pieces: Buffer[] = [Buffer.from(head)];
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const piece = bytes.subarray(at, at + (chunks[turn % chunks.length] ?? 1));
    pieces.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n'));
    at += piece.length;
  }
  return Buffer.concat([...pieces, Buffer.from(lastChunk)]);
}

for (const alias of [null, 'vendor/other:2026 "x"']) {
  const title =
    alias === null
      ? 'a valid chat body reaches the upstream byte for byte'
      : 'of a body with an alias only the value of the model differs';
  test(title, async (t) => {
    const upstream = await startRawUpstream(t, ({ socket, body: received }) => {
      const { stream } = JSON.parse(received.toString()) as { stream?: boolean };
      socket.write(
        stream === true
          ? streamHead + chunk(chatEvent({}, 'stop') + doneEvent) + lastChunk
          : jsonAnswer(200, completion),
      );
    });
    const { port } = await startGateway(t, {
      upstreams: [upstream.url],
      ...(alias === null ? {} : { alias }),
    });
    let count = 0;
    await fc.assert(
      fc.asyncProperty(body, textOf('m'), delivery, async (pattern, model, how) => {
        const [before, behind] = pattern.split(mark);
        const around = (text: string): Buffer => Buffer.from(`${before}${text}${behind}`);
        const answer = await exchange(port, requestOf(around(model.trim()), how));
        if (answer.status !== 200) throw new Error(answer.body);
        const received = upstream.requests[count++]?.body.toString('latin1');
        const expected = around(alias === null ? model.trim() : JSON.stringify(alias)).toString('latin1');
        if (received !== expected) throw new Error(`upstream: ${received}\nexpected: ${expected}`);
      }),
      { numRuns: 200 },
    );
    t.equal(upstream.requests.length, count);
  });
}

test('a body of megabytes reaches the upstream byte for byte', async (t) => {
  const upstream = await startRawUpstream(t, jsonAnswer(200, completion));
  const { port } = await startGateway(t, { upstreams: [upstream.url] });
  const content = `${'漢字 \\"quoted\\" \\\\ '.repeat(100_000)}${'A'.repeat(4_000_000)}`;
  const sent = Buffer.from(`{"messages":[{"content":"${content}","role":"user"}],\t"model":"m"}`);
  const deliveries: readonly Delivery[] = [
    { coding: '', chunks: [] },
    { coding: '', chunks: [60_001, 7] },
    { coding: 'gzip', chunks: [] },
  ];
  for (const [index, how] of deliveries.entries()) {
    t.equal((await exchange(port, requestOf(sent, how))).status, 200);
    t.ok(upstream.requests[index]?.body.equals(sent));
  }
});
