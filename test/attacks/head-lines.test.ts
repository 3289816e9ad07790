import { test } from 'tap';
import type { Protocol, Upstream, UpstreamKind } from '../../src/config/types.js';
import { upstreamKinds } from '../../src/config/words.js';
import { GatewayError } from '../../src/errors.js';
import { credentialLine, vendorLines } from '../../src/protocols/credentials/credentials.js';
import { upstreamQuery } from '../../src/protocols/realtime/query.js';
import { handshakeOf } from '../../src/upstream/socket-handshake.js';
import type { SocketRequest } from '../../src/upstream/socket-types.js';
import { idOrNull } from '../../src/video/upstream-formats/shared.js';
import { writeForm } from '../../src/wire/form-data.js';
import {
  fieldsOf,
  hasNoDotSegments,
  headerLine,
  headerLineOrNull,
  headerLinesOf,
  joinLines,
  requestLine,
} from '../../src/wire/head.js';
import { halves, hostile } from '../support/head-fuzz.js';
import { plainOrigin } from '../upstream/raw.js';

/** What may stand in no head: also what would be written as it is, in a coding that nobody has agreed on. */
const unwritable = [
  ...hostile,
  ...halves,
  ...Array.from({ length: 0x80 }, (_, at) => String.fromCharCode(0x80 + at)),
  '😀',
];
const places = (character: string) => [character, `${character}a`, `a${character}`, `a${character}b`];

const socket = (more: Partial<SocketRequest>): SocketRequest => ({
  origin: plainOrigin(80),
  path: '/v1',
  headers: [],
  maxMessageBytes: 1,
  connectMs: 1,
  firstByteMs: 1,
  pingMs: 1,
  ...more,
});

const upstream = { kind: 'simulator', headers: [], clientHeaders: null } as unknown as Upstream;
const silent = { openaiBeta: '', vendorcBeta: '', vendorcVersion: '' };
const vendor = (wire: Protocol, more: Partial<typeof silent>) =>
  vendorLines(wire, { ...silent, ...more }, upstream.kind, upstream);
const linesOf = headerLinesOf('x-a');

/** Every place of a head that takes a text. */
const writers: Readonly<Record<string, (text: string) => unknown>> = {
  method: (text) => requestLine(text, '/'),
  path: (text) => requestLine('GET', `/${text}`),
  query: (text) => requestLine('GET', `/?a=${text}`),
  name: (text) => headerLine(text, 'a'),
  'name, made once': (text) => headerLinesOf(text),
  value: (text) => headerLine('x-a', text),
  'value of a known name': (text) => linesOf(text),
  'path of a handshake': (text) => handshakeOf(socket({ path: `/${text}` })),
  'name in a handshake': (text) => handshakeOf(socket({ headers: [[text, 'a']] })),
  'value in a handshake': (text) => handshakeOf(socket({ headers: [['x-a', text]] })),
  'host of a handshake': (text) => handshakeOf(socket({ origin: plainOrigin(80, { authority: text }) })),
  ...Object.fromEntries(
    upstreamKinds.map((kind: UpstreamKind) => [
      `key of ${kind}`,
      (text: string) => credentialLine({ kind, keyHeader: null }, text),
    ]),
  ),
  'key in a header of its own': (text) => credentialLine({ kind: 'chat', keyHeader: 'api-key' }, text),
  version: (vendorcVersion) => vendor('messages', { vendorcVersion }),
  'messages beta': (vendorcBeta) => vendor('messages', { vendorcBeta }),
  'chat beta': (openaiBeta) => vendor('chat', { openaiBeta }),
  'realtime beta': (openaiBeta) => vendor('realtime', { openaiBeta }),
};

test('no place of a head takes a character that would be another on the wire, or no printable one', async (t) => {
  // Their stacks would take most of the time.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  t.teardown(() => {
    Error.stackTraceLimit = stackTraceLimit;
  });
  for (const [name, write] of Object.entries(writers)) {
    write('a');
    let refused = 0;
    for (const character of unwritable) {
      for (const text of places(character)) {
        try {
          t.fail(`${name} took ${JSON.stringify(text)}: ${JSON.stringify(write(text))}`);
        } catch (fault) {
          if (fault instanceof GatewayError && fault.status === 500) refused++;
          else t.fail(`${name}: ${String(fault)}`);
        }
      }
    }
    t.equal(refused, unwritable.length * 4, name);
  }
  t.ok(unwritable.every((character) => headerLineOrNull('x-a', character) === null));
});

test('what can be written is written as it is', async (t) => {
  const printable = Array.from({ length: 0x5f }, (_, at) => String.fromCharCode(0x20 + at)).join('');
  t.equal(headerLine('x-a', `\t${printable}`), `x-a: \t${printable}\r\n`);
  t.equal(headerLineOrNull('x-a', ''), 'x-a: \r\n');
  t.equal(requestLine('GET', '/a/%0d%0a?x="{|}"'), 'GET /a/%0d%0a?x="{|}" HTTP/1.1\r\n');
  const lines = joinLines(headerLine('a', 'b: c'), headerLine('d', ''));
  t.strictSame(fieldsOf(lines), [
    ['a', 'b: c'],
    ['d', ''],
  ]);
  for (const name of ['', 'a b', 'a:', 'a\t', '(', 'a/b', '"', '@', '[', '{'])
    t.throws(() => headerLine(name, 'a'));
  for (const path of ['', 'a', '*', 'http://x/', '/ a', '/a\tb', '/#a', '/?a#b', '/a b'])
    t.throws(() => requestLine('GET', path), path);
});

test('no path leads out of where it is', async (t) => {
  const dots = ['..', '.', '%2e%2e', '%2E.', '.%2e', '%2e'];
  const shapes = [
    '/v1/D/admin',
    '/v1/D',
    '/D',
    '/v1/D?a',
    '/v1/D;a/b',
    '/v1/models/a%2FD%2fb:x',
    '/v1/a\\D\\b',
    '/v1%5cD%5Cb',
  ];
  for (const dot of dots) {
    for (const shape of shapes) {
      const path = shape.replace('D', dot);
      t.notOk(hasNoDotSegments(path), path);
      t.throws(() => requestLine('GET', path), path);
    }
  }
  for (const path of ['/v1/..a', '/v1/a..b/c.', '/v1/.well-known', '/v1/...', '/v1?a=/../b', '/v1/a%2e%2eb'])
    t.ok(hasNoDotSegments(path), path);
  for (const id of ['../x', 'a/../b', '..\\x', '..', '.', 'a/.', 'a b', 'é', 'a\u010ab', 'a\nb'])
    t.equal(idOrNull(id), null);
  t.equal(idOrNull('models/a:b..c'), 'models/a:b..c');
});

test('a query is its client’s, percent-encoded, without another model or a key in any spelling', async (t) => {
  for (const character of [...unwritable, ' ', '#', ';', '\t', '\r\n']) {
    for (const text of places(character)) {
      const query = upstreamQuery(`${text}=${text}&model=x`, 'up');
      if (!/^model=up(?:&[!-~]+)?$/.test(query) || /[#;\s]/.test(query))
        t.fail(`${JSON.stringify(text)}: ${query}`);
    }
  }
  t.equal(
    upstreamQuery('a=\u010d\u010a\ud800&b=é;model=y#&c', 'm/ä'),
    'model=m%2F%C3%A4&a=%C4%8D%C4%8A%EF%BF%BD&b=%C3%A9%3Bmodel=y%23&c',
  );
  for (const spelled of [
    'model=y',
    '%6dodel=y',
    'mode%6C=y',
    'Model=y',
    'MODEL',
    '+model=y',
    'model%20=y',
    'key=k',
    '%6Bey=k',
    'Key=k',
    'api-key=k',
    'API%2Dkey=k',
    'Authorization=Bearer+k',
    'access_token=k',
    '=x',
  ])
    t.equal(upstreamQuery(`a=1&${spelled}&b=2`, 'up'), 'model=up&a=1&b=2', spelled);
  t.equal(upstreamQuery('call_id=c&%4Dodel=y', null), 'call_id=c');
  t.equal(upstreamQuery('a=1&Api%2Dversion=x', 'up', 'b=2&api-version=y'), 'model=up&a=1');
});

test('no name in a form begins another line or another parameter, and all else of it stays', async (t) => {
  const texts = [...unwritable, '"', '\\', '\r\n', '"\r\nx: y', '; name="model"', '\\"'].flatMap(places);
  for (const text of texts) {
    const { body } = writeForm([{ name: text, filename: text, contentType: text, data: '' }], 'b');
    const lines = Buffer.concat(body).toString('utf8').split('\r\n');
    const quoted = text
      .replaceAll('"', '%22')
      .replaceAll('\r', '%0D')
      .replaceAll('\n', '%0A')
      .replaceAll('\0', '%00')
      .replace(/\p{Surrogate}/gu, '\ufffd')
      .replace(/\\$/, '\\\\');
    const isExpected =
      lines.length === 7 &&
      lines[1] === `Content-Disposition: form-data; name="${quoted}"; filename="${quoted}"` &&
      !Array.from(lines[2] ?? '').some((each) => each < ' ' || each === '\x7f');
    if (!isExpected) t.fail(`${JSON.stringify(text)}: ${JSON.stringify(lines)}`);
  }
  t.pass(`${texts.length} names`);
});
