import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import type { Socket } from 'node:net';
import { test } from 'tap';
import { fc } from '../support/seed.js';
import { answering, Call, get, makeClient, type RawServer, rawServer, unhurried } from './raw.js';

/** What a client made of an answer. */
interface Verdict {
  readonly accepted: boolean;
  readonly status: number;
  readonly fields: string[];
  readonly body: string;
  /** Why not, in the client's words. */
  readonly why: string;
}

/** An answer, and where it is cut into writes. */
interface Script {
  readonly method: string;
  readonly answer: string;
  readonly cuts: readonly number[];
}

/** Serves whatever script is current, then ends the connection. */
function scripted(t: Parameters<typeof rawServer>[0], current: () => Script): Promise<RawServer> {
  return rawServer(t, (socket) => {
    socket.once('data', () => play(socket, current()));
  });
}

function play(socket: Socket, { answer, cuts }: Script): void {
  const bytes = Buffer.from(answer, 'latin1');
  let at = 0;
  let turn = 0;
  const next = () => {
    if (socket.destroyed) return;
    if (at >= bytes.length) {
      socket.end();
      return;
    }
    const size = cuts[turn++ % cuts.length] ?? bytes.length;
    socket.write(bytes.subarray(at, at + size));
    at += size;
    setImmediate(next);
  };
  next();
}

/** The oracle: Node's own client, strict parser, one connection for each request. */
async function nodeVerdict(port: number, method: string): Promise<Verdict> {
  const request = httpRequest({ port, host: '127.0.0.1', method, agent: false, insecureHTTPParser: false });
  let why = '';
  let body = '';
  let verdict: Verdict | null = null;
  let judge = (): Verdict => ({ accepted: false, status: 0, fields: [], body: '', why });
  request.on('error', (error: NodeJS.ErrnoException) => {
    why = `${error.code}: ${error.message}`;
  });
  request.on('response', (response) => {
    response.setEncoding('latin1');
    response.on('data', (text: string) => {
      body += text;
    });
    response.on('error', (error) => {
      why = error.message;
    });
    judge = () => ({
      accepted: response.complete,
      status: response.statusCode ?? 0,
      fields: response.rawHeaders.map((text, i) => (i % 2 === 0 ? text.toLowerCase() : text)),
      body,
      why,
    });
    response.on('close', () => {
      verdict = judge();
    });
  });
  request.end();
  await new Promise((resolve) => request.on('close', resolve));
  // Ticks that deliver the rest of the body may follow the end of the request.
  for (let i = 0; i < 3 && verdict === null; i++) await new Promise((resolve) => setImmediate(resolve));
  return judge();
}

/** The same cases in every run: what another seed finds must not stop a change that has nothing to do with it. */
const seed = 20;

const newline = '\r\n';
const token = fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,12}$/);
const value = fc.stringMatching(/^([!-~\xa0-\xff]([ \t!-~\xa0-\xff]{0,12}[!-~\xa0-\xff])?)?$/);
const governed = new Set([
  'connection',
  'content-encoding',
  'content-length',
  'keep-alive',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
const fields = fc
  .array(fc.tuple(token, value), { maxLength: 6 })
  .map((all) => all.filter(([name]) => !governed.has(name.toLowerCase())))
  .map((all) => all.map(([name, text]) => `${name}: ${text}${newline}`).join(''));
const text = fc.string({ maxLength: 60, unit: 'binary-ascii' });

const body = fc.oneof(
  text.map((content) => `Content-Length: ${content.length}${newline}${newline}${content}`),
  fc
    .array(fc.string({ minLength: 1, maxLength: 40, unit: 'binary-ascii' }), { maxLength: 5 })
    .map((chunks) => {
      const coded = chunks
        .map((chunk) => `${chunk.length.toString(16)}${newline}${chunk}${newline}`)
        .join('');
      return `Transfer-Encoding: chunked${newline}${newline}${coded}0${newline}X-T: 1${newline}${newline}`;
    }),
  text.map((content) => `${newline}${content}`),
);
const status = fc.constantFrom(
  '200 OK',
  '404 Not Found',
  '500 ',
  '299',
  '204 No Content',
  '304 x',
  '429 Slow',
);
const interim = fc.constantFrom(
  '',
  '',
  `HTTP/1.1 100 Continue${newline}${newline}`,
  `HTTP/1.1 103 E${newline}A: b${newline}${newline}`,
);
const connection = fc.constantFrom('', `Connection: close${newline}`, `Connection: keep-alive${newline}`);
const answer = fc
  .tuple(interim, status, fields, connection, body)
  .map((parts) => `${parts[0]}HTTP/1.1 ${parts[1]}${newline}${parts.slice(2).join('')}`);
const script = fc.record({
  method: fc.constantFrom('GET', 'GET', 'GET', 'HEAD'),
  answer,
  cuts: fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 5 }),
});

test('every valid answer means to us what it means to node:http', async (t) => {
  const client = makeClient(t);
  let current: Script = { method: 'GET', answer: '', cuts: [1] };
  const server = await scripted(t, () => current);
  const scripts = fc.sample(script, { numRuns: 300, seed });
  let disagreements = 0;
  for (current of scripts) {
    const oracle = await nodeVerdict(server.port, current.method);
    const ours = await new Call(client, server.origin, get('/', current.method)).over;
    const same =
      oracle.accepted &&
      ours.failure === null &&
      ours.head?.status === oracle.status &&
      JSON.stringify(ours.head.fields) === JSON.stringify(oracle.fields) &&
      ours.body === oracle.body;
    if (same) continue;
    disagreements++;
    t.comment(current, oracle, ours.failure, ours.head?.fields, ours.body);
  }
  t.equal(disagreements, 0);
});

const mutation = fc.record({
  /** Where, in millionths of the answer. */
  at: fc.noBias(fc.integer({ min: 0, max: 999_999 })),
  cut: fc.integer({ min: 0, max: 3 }),
  insert: fc.constantFrom(
    '',
    '\r',
    '\n',
    '\r\n',
    '\r\n\r\n',
    '\0',
    ' ',
    '\t',
    ':',
    ';',
    '0',
    'f',
    '-',
    '\x7f',
    '\xff',
    'Content-Length: 3\r\n',
    'Transfer-Encoding: chunked\r\n',
    'Transfer-Encoding: gzip\r\n',
    'HTTP/1.0 200 OK\r\n',
    'HTTP/1.1 101 S\r\n\r\n',
  ),
});

function mutate(original: string, mutations: { at: number; cut: number; insert: string }[]): string {
  let result = original;
  for (const { at, cut, insert } of mutations) {
    const offset = Math.floor((at / 1e6) * result.length);
    result = result.slice(0, offset) + insert + result.slice(offset + cut);
  }
  return result;
}

/**
 * Where we may take what Node refuses. Extensions of chunks are ignored here, so only their characters are checked,
 * while llhttp checks their grammar. Trailers are discarded here, as RFC 9110 section 6.5.1 has it, while llhttp looks
 * for framing fields among them.
 */
function isExplained({ answer }: Script, { why }: Verdict): boolean {
  if (/chunk extension/i.test(why)) return true;
  const extension = /\r\n[0-9a-f]+;/i;
  const trailer = /\r\n0+\r\n[\s\S]*(content-length|transfer-encoding):/i;
  // Once the head is out, Node does not tell why it gave up.
  return why === 'aborted' && (extension.test(answer) || trailer.test(answer));
}

test('no broken answer hangs us, and what we accept, node:http accepts alike', async (t) => {
  const client = makeClient(t);
  let current: Script = { method: 'GET', answer: '', cuts: [1] };
  const server = await scripted(t, () => current);
  const mutations = fc.array(mutation, { minLength: 1, maxLength: 3 });
  let disagreements = 0;
  let accepted = 0;
  const cases = fc.sample(fc.tuple(script, mutations), { numRuns: 700, seed });
  for (const [original, changes] of cases) {
    current = { ...original, answer: mutate(original.answer, changes) };
    const ours = await new Call(client, server.origin, get('/', current.method), unhurried).over;
    t.equal(ours.events.filter((event) => event === 'end' || event === 'failure').length, 1);
    if (ours.failure !== null) continue;
    accepted++;
    const oracle = await nodeVerdict(server.port, current.method);
    const same =
      oracle.accepted &&
      ours.head?.status === oracle.status &&
      JSON.stringify(ours.head.fields) === JSON.stringify(oracle.fields) &&
      ours.body === oracle.body;
    if (same || isExplained(current, oracle)) continue;
    disagreements++;
    t.comment(JSON.stringify({ current, oracle, fields: ours.head?.fields, body: ours.body }));
  }
  t.equal(disagreements, 0);
  t.ok(accepted > cases.length / 10, `${accepted} accepted`);
});

test('what a handler throws reaches the process after the connection is gone', async (t) => {
  const server = await rawServer(t, answering('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'));
  for (const method of ['onHead', 'onData', 'onEnd']) {
    const code = `
      const { createUpstreamClient } = await import(${JSON.stringify(new URL('../../src/upstream/client.js', import.meta.url))});
      const client = createUpstreamClient();
      process.once('uncaughtException', (error) => {
        process.stdout.write(JSON.stringify({ message: error.message, ...client.stats(), failures }));
        client.close();
      });
      let failures = 0;
      const handler = { onHead() {}, onData() { return true; }, onEnd() {}, onFailure() { failures++; } };
      handler.${method} = () => { throw new Error('thrown'); };
      client.send(${JSON.stringify(server.origin)}, ${JSON.stringify(get())}, ${JSON.stringify(unhurried)}, handler);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', code]);
    let output = '';
    child.stdout.on('data', (chunk) => {
      output += chunk;
    });
    await once(child, 'close');
    const { message, open, busy, failures } = JSON.parse(output);
    t.strictSame(
      { message, open, busy, failures },
      { message: 'thrown', open: method === 'onEnd' ? 1 : 0, busy: 0, failures: 0 },
    );
  }
});
