import type { HttpRequest } from 'uWebSockets.js';
import assert from 'node:assert/strict';
import { test } from 'tap';
import { headerSlots, type RequestHead, readHead } from '../../src/http/request-head.js';
import { fc } from '../support/seed.js';
import { headAnd, startServer, Wire } from './http-server.js';

test('the head holds what conditions and ranges a request names', async (t) => {
  const heads: RequestHead[] = [];
  const { port } = await startServer(t, (exchange) => {
    heads.push(exchange.head);
    exchange.respond(200, '', 'ok');
  });
  const wire = new Wire(port);
  const ask = async (headers: string) => {
    wire.send(`GET / HTTP/1.1\r\n${headers}\r\n`);
    await wire.take(headAnd(2));
    return heads.at(-1);
  };
  t.match(
    await ask(
      'Host: example.org:8080\r\nRange: bytes=5-\r\nIf-Range: "v1"\r\nIf-None-Match: "v1", W/"v2"\r\nIdempotency-Key: k1\r\n',
    ),
    {
      host: 'example.org:8080',
      range: 'bytes=5-',
      ifRange: '"v1"',
      ifNoneMatch: '"v1", W/"v2"',
      idempotencyKey: 'k1',
      forwarded: '',
    },
  );
  t.match(await ask('host: x\r\n'), {
    range: '',
    ifRange: '',
    ifNoneMatch: '',
    idempotencyKey: '',
    forwarded: '',
  });
  t.match(
    await ask(
      'host: a\r\nrange: bytes=0-1\r\nrange: bytes=2-3\r\nif-range: "1"\r\nif-range: "2"\r\n' +
        'if-none-match: "1"\r\nif-none-match: "2"\r\nidempotency-key: 1\r\nidempotency-key: 2\r\n',
    ),
    { host: 'a', range: 'bytes=0-1', ifRange: '"1"', ifNoneMatch: '"1"', idempotencyKey: '1' },
    'of several lines the first counts',
  );
  wire.socket.destroy();
});

/** What is read of a request with these headers. */
function readOf(headers: readonly (readonly [name: string, value: string])[]): RequestHead {
  const request = {
    forEach: (take: (name: string, value: string) => void) => {
      for (const [name, value] of headers) take(name, value);
    },
    getQuery: () => '',
  };
  return readHead(request as unknown as HttpRequest, slots);
}
const slots = headerSlots({ vendorc: [], vendorg: [], passed: ['x-mine'] }, false);

test('the lines of a request are its own, whatever the requests before it had', (t) => {
  const fields = {
    'x-title': 'sharedLines',
    'x-stainless-lang': 'sharedLines',
    'x-stainless-new': 'sharedLines',
    version: 'openaiLines',
    session_id: 'openaiLines',
    'x-app': 'anthropicLines',
    'x-goog-api-client': 'googleLines',
    'x-mine': 'passed',
    accept: 'forwarded',
    'user-agent': 'forwarded',
  } as const;
  const names = Object.keys(fields) as (keyof typeof fields)[];
  const header = fc.tuple(fc.constantFrom(...names), fc.constantFrom('', 'a', 'b', 'a\u010a', 'b\r\nc: d'));
  fc.assert(
    fc.property(fc.array(fc.array(header, { maxLength: 8 }), { maxLength: 12 }), (requests) => {
      for (const headers of requests) {
        const head = readOf(headers);
        for (const field of new Set(Object.values(fields))) {
          const lines = headers.filter(([name, value]) => fields[name] === field && /^[ -~]*$/.test(value));
          assert.equal(head[field], lines.map(([name, value]) => `${name}: ${value}\r\n`).join(''));
        }
        assert.equal(head.userAgent, headers.findLast(([name]) => name === 'user-agent')?.[1] ?? '');
      }
    }),
  );
  t.end();
});

test('a value for upstreams that is longer than any vendor takes is left out, and one of its greatest length is not', (t) => {
  const read = (name: string, length: number) => readOf([[name, 'a'.repeat(length)]]);
  for (const [name, field] of [
    ['x-title', 'sharedLines'],
    ['version', 'openaiLines'],
    ['x-app', 'anthropicLines'],
    ['x-goog-api-client', 'googleLines'],
    ['x-mine', 'passed'],
    ['user-agent', 'forwarded'],
  ] as const) {
    t.equal(read(name, 8193)[field], '', name);
    t.equal(read(name, 8192)[field].length, name.length + 8192 + 4, name);
  }
  t.end();
});
