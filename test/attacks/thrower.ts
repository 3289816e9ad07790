/**
 * Run as a process of its own: a gateway in which every method of the classes that serve calls is made to throw, one
 * after the other, while other calls are under way. Prints one JSON object.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { pino } from 'pino';
import type { Test } from 'tap';
import { WebSocket } from 'ws';
import { parseConfig } from '../../src/config/load.js';
import { Gateway } from '../../src/gateway.js';
import { hashKey } from '../../src/keys/secret.js';
import { startSimulator } from '../../src/simulator/server.js';
import { eventually, seenWithin } from '../support/eventually.js';
import { ownLimits } from '../support/leases.js';
import { lineSink } from '../support/line-sink.js';
import { noManagedKeys } from '../support/managed-keys.js';
import { buildSnapshot } from '../support/snapshot.js';
import { boundary, fileOf, formOf } from '../support/upload-form.js';

const modules = [
  'flow/body/intake',
  'flow/body/upload',
  'flow/answer/relay',
  'flow/answer/ends',
  'attempts/attempts',
  'attempts/relayed-attempt',
  'flow/upstream/hedge',
  'flow/answer/held',
  'flow/upstream/forward',
  'flow/upstream/waiting-client',
  'flow/limits/call-limits',
  'flow/realtime/open',
  'flow/realtime/bridge',
  'flow/sockets/sessions',
  'flow/responses-socket/socket',
  'flow/responses-socket/upstream-session',
  'flow/video/create',
  'flow/video/content-relay',
  'flow/images/convert',
  'wire/byte-blocks',
  'http/exchange',
  'http/socket',
  'http/sized',
  'http/body-stream',
  'upstream/connection',
  'upstream/exchange',
  'upstream/client',
  'upstream/decode',
  'upstream/read-turns',
  'upstream/request-body',
  'upstream/answer',
  'upstream/socket-calls',
  'upstream/socket-handshake',
  'upstream/socket-reader',
  'stream/gather',
  'stream/observe',
  'stream/translate',
  'wire/sse',
  'wire/multipart',
];

/** What ends a call or its answer must work itself, and so must what notes that a client or a socket is there or gone. */
const exempt = new Set([
  'onFault',
  'constructor',
  'onOurFault',
  'onEnded',
  'onGone',
  'onSocketClose',
  'http/socket ClientSocket.onOpen',
  'http/socket ClientSocket.onClose',
]);

type Method = (this: object, ...args: unknown[]) => unknown;

let armed: string | null = null;
let tracing: Set<string> | null = null;
let thrown: string | null = null;
const known = new WeakSet<object>();

async function patch(): Promise<void> {
  for (const module of modules) {
    const exported = (await import(`../../src/${module}.js`)) as Record<string, unknown>;
    for (const [name, value] of Object.entries(exported)) {
      if (typeof value !== 'function' || !/^class\b/.test(Function.prototype.toString.call(value))) continue;
      const { prototype } = value as { prototype: object };
      for (const [method, { value: original, writable }] of Object.entries(
        Object.getOwnPropertyDescriptors(prototype),
      )) {
        if (typeof original !== 'function' || writable !== true) continue;
        const key = `${module} ${name}.${method}`;
        if (exempt.has(method) || exempt.has(key)) continue;
        Reflect.set(prototype, method, function wrapped(this: object, ...args: unknown[]): unknown {
          tracing?.add(key);
          if (armed === null) known.add(this);
          else if (armed === key && !known.has(this)) {
            armed = null;
            thrown = key;
            throw new Error(`injected into ${key}`);
          }
          return (original as Method).apply(this, args);
        });
      }
    }
  }
}

const key = 'sk-test';
const auth = { authorization: `Bearer ${key}` };
/** What takes longer hangs; those that are under way all the time take as long as the rest. */
let patienceMs = 900_000;
const deadline = () => AbortSignal.timeout(patienceMs);

const uncaught: string[] = [];
const onUncaught = (error: unknown): void => {
  const words = error instanceof Error ? String(error.stack) : String(error);
  process.stderr.write(`uncaught ${words}\n`);
  uncaught.push(words);
};
process.on('uncaughtException', onUncaught);
process.on('unhandledRejection', onUncaught);
// Nobody is there to be told.
process.stderr.on('error', () => process.exit(1));

/** Streams that have had their first event and wait for the rest. */
const held = new Set<ServerResponse>();
const event = (content: string): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`;
const whole = JSON.stringify({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
});

/** An upstream that does what the model's name says. */
const odd = createServer((request, response) => {
  const pieces: Buffer[] = [];
  request.on('data', (piece: Buffer) => pieces.push(piece));
  request.on('error', () => {});
  request.on('end', () => {
    const body = Buffer.concat(pieces).toString('latin1');
    if (body.includes('"hold"')) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(event('first'));
      held.add(response);
      response.on('close', () => held.delete(response));
    } else if (body.includes('"drawn"')) {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end('{"data":[{"b64_json":"iVBORw0KGgo="}]}');
    } else if (body.includes('"gz"')) {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
      response.end(gzipSync(whole));
    } else if (body.includes('"broken"')) request.socket.destroy();
    else if (body.includes('"large"')) {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(`{"filler":"${'x'.repeat(8_000_000)}",${whole.slice(1)}`);
    } else {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ text: `${body.length}` }));
    }
  });
});
odd.listen(0, '127.0.0.1');
await once(odd, 'listening');
const oddUrl = `http://127.0.0.1:${(odd.address() as AddressInfo).port}/v1`;

await patch().catch((error: unknown) => {
  process.stderr.write(`${String(error)}\n`);
  process.exit(1);
});
const simulator = await startSimulator({ videoPace: { queuedMs: 0, runningMs: 0 } });
const folder = mkdtempSync(join(tmpdir(), 'gateway-throws-'));
const simulatorUrl = `http://127.0.0.1:${simulator.port}`;
const text = ['chat', 'responses', 'messages', 'generateContent'];
const on = (upstream: string, model: string, protocols: readonly string[]) => ({
  protocols,
  targets: [{ upstream, model }],
});
const config = parseConfig(
  JSON.stringify({
    store: { kind: 'embedded', path: folder },
    usage: { ledger: false },
    // Those under way all the time wait for as long as the rest takes.
    // An upload is held open all the while.
    limits: { leastBodyRate: 0 },
    timeouts: { bodyMs: 900_000, idleMs: 900_000, totalMs: 900_000 },
    upstreams: {
      sim: { kind: 'simulator' },
      chat: { kind: 'chat', baseUrl: `${simulatorUrl}/v1`, apiKeys: ['k'], responsesSocket: true },
      odd: { kind: 'chat', baseUrl: oddUrl, apiKeys: ['k'] },
    },
    models: {
      native: on('sim', 'sim-text', text),
      translated: on('chat', 'sim-text', ['chat', 'messages', 'generateContent']),
      session: on('chat', 'sim-text', ['responses']),
      embedding: on('sim', 'sim-embedding', ['embeddings']),
      image: on('sim', 'sim-image', ['images']),
      drawn: on('odd', 'drawn', ['generateContent', 'images']),
      speech: on('sim', 'sim-speech', ['audio']),
      ears: on('odd', 'ears', ['audio']),
      video: on('sim', 'sim-video', ['video']),
      realtime: on('sim', 'sim-realtime', ['realtime']),
      hold: on('odd', 'hold', ['chat', 'messages']),
      gz: on('odd', 'gz', ['chat']),
      broken: on('odd', 'broken', ['chat']),
      large: on('odd', 'large', ['chat']),
      limited: {
        ...on('sim', 'sim-text', ['chat']),
        limits: { requestsPerMinute: 100_000, tokensPerMinute: 100_000_000, concurrent: 100 },
      },
    },
    groups: { default: { models: ['*'] } },
    keys: [{ id: 'test', hash: hashKey(key), groups: ['default'] }],
  }),
  { directory: folder, environment: {}, created: 1 },
);
const lines: Record<string, unknown>[] = [];
const take = (line: string): number => lines.push(JSON.parse(line));
const log = pino({ base: null }, { write: take });
const endless = { teardown: () => {} } as unknown as Test;
const gateway = ownLimits(endless, config).join(
  (sendLease) =>
    new Gateway({
      snapshot: buildSnapshot(config, { simulatorUrl }),
      log,
      lines: lineSink(take),
      sendLease,
      managedKeys: noManagedKeys(),
    }),
);
const port = await gateway.listen('127.0.0.1', 0);
const url = `http://127.0.0.1:${port}`;

/** @returns the answer, or that there was none: a call that hangs is the worst */
async function http(path: string, init: RequestInit): Promise<string> {
  try {
    const answer = await fetch(url + path, {
      method: 'POST',
      signal: deadline(),
      ...init,
      headers: { ...auth, ...(init.headers as object) },
    });
    const body = await answer.text();
    return `${answer.status} ${body.slice(0, 200)}${body.length > 4000 ? ` … ${body.slice(-200)}` : body.slice(200)}`;
  } catch (error) {
    return (error as Error).name === 'TimeoutError' ? 'hangs' : 'cut';
  }
}

const json = (path: string, body: object): Promise<string> =>
  http(path, {
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
  });

function textCall(protocol: string, model: string, stream: boolean): () => Promise<string> {
  const messages = [{ role: 'user', content: 'hello there' }];
  switch (protocol) {
    case 'chat':
      return () => json('/v1/chat/completions', { model, stream, messages });
    case 'messages':
      return () => json('/v1/messages', { model, stream, messages, max_tokens: 50 });
    case 'responses':
      return () => json('/v1/responses', { model, stream, input: 'hello there' });
    default:
      return () =>
        json(`/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`, {
          contents: [{ role: 'user', parts: [{ text: 'hello there' }] }],
        });
  }
}

/** A socket that asks, hears an answer and ends. */
function socketCall(path: string, message: object, isLast: (type: string) => boolean): () => Promise<string> {
  return () =>
    new Promise((resolve) => {
      const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers: auth });
      let seen = '';
      const timer = setTimeout(() => {
        socket.terminate();
        resolve('hangs');
      }, 10_000);
      const end = (word: string): void => {
        clearTimeout(timer);
        resolve(word);
      };
      socket.on('open', () => socket.send(JSON.stringify(message)));
      socket.on('unexpected-response', (_request, response) => {
        response.resume();
        end(`${response.statusCode}`);
      });
      socket.on('error', () => end('cut'));
      socket.on('message', (data) => {
        const { type } = JSON.parse(data.toString()) as { type: string };
        seen += `${type} `;
        if (isLast(type)) socket.close(1000);
      });
      socket.on('close', (code) => end(`${seen}${code}`));
    });
}

/** Leaves in the middle of a stream. */
async function leaver(): Promise<string> {
  const leave = new AbortController();
  try {
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      signal: AbortSignal.any([leave.signal, deadline()]),
      headers: { ...auth, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'hold', stream: true, messages: [{ role: 'user', content: 'hold' }] }),
    });
    if (answer.status !== 200) return `${answer.status}`;
    const reader = answer.body?.getReader();
    await reader?.read();
    // Past a tick of the watch.
    await after(1100);
    leave.abort();
    return 'left';
  } catch (error) {
    return (error as Error).name === 'TimeoutError' ? 'hangs' : 'cut';
  }
}

/** Reads nothing for a while, then all. */
async function slow(): Promise<string> {
  const body = JSON.stringify({ model: 'large', messages: [{ role: 'user', content: 'x' }] });
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.pause();
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\nconnection: close\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  await after(150);
  let bytes = 0;
  let head = '';
  socket.on('data', (piece) => {
    if (bytes === 0) head = piece.toString('latin1', 9, 12);
    bytes += piece.length;
    // The gateway keeps the connection: a whole answer is known by its length.
    if (bytes > 8_000_000 || (head !== '200' && piece.includes('}}'))) socket.destroy();
  });
  socket.resume();
  const word = await Promise.race([
    once(socket, 'close').then(() => 'closed'),
    after(10_000, 'hangs', { ref: false }),
  ]);
  socket.destroy();
  return word === 'hangs' ? 'hangs' : `${head} ${bytes}`;
}

async function videoCall(): Promise<string> {
  const created = await fetch(`${url}/v1/videos`, {
    method: 'POST',
    signal: deadline(),
    headers: { ...auth, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'video', prompt: 'a house', seconds: '4' }),
  }).catch((error: Error) => error);
  if (created instanceof Error) return created.name === 'TimeoutError' ? 'hangs' : 'cut';
  if (created.status !== 200) return `${created.status} ${await created.text()}`;
  const { id } = (await created.json()) as { id: string };
  for (let tries = 0; tries < 20; tries++) {
    const shown = await http(`/v1/videos/${id}`, { method: 'GET' });
    if (!shown.startsWith('200')) return shown;
    if (shown.includes('"completed"'))
      return http(`/v1/videos/${id}/content`, { method: 'GET', headers: { range: 'bytes=5-100' } });
    await after(1050);
  }
  return 'not completed';
}

const form = (bytes: number): Promise<string> =>
  http('/v1/audio/transcriptions', {
    body: new Uint8Array(formOf([{ name: 'model', value: 'ears' }, fileOf(bytes)])),
    headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
  });

const victims: Record<string, () => Promise<string>> = {
  ...Object.fromEntries(
    text.flatMap((protocol) =>
      [false, true].map((stream) => [
        `${protocol} ${stream ? 'streamed' : 'whole'}`,
        textCall(protocol, 'native', stream),
      ]),
    ),
  ),
  ...Object.fromEntries(
    ['messages', 'generateContent'].flatMap((protocol) =>
      [false, true].map((stream) => [
        `${protocol} translated ${stream ? 'streamed' : 'whole'}`,
        textCall(protocol, 'translated', stream),
      ]),
    ),
  ),
  limited: textCall('chat', 'limited', false),
  'gzip upstream': () =>
    json('/v1/chat/completions', { model: 'gz', messages: [{ role: 'user', content: 'x' }] }),
  'gzip body': () =>
    http('/v1/chat/completions', {
      body: new Uint8Array(
        gzipSync(JSON.stringify({ model: 'native', messages: [{ role: 'user', content: 'x' }] })),
      ),
      headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
    }),
  'broken upstream': textCall('chat', 'broken', false),
  embeddings: () => json('/v1/embeddings', { model: 'embedding', input: 'x' }),
  image: () => json('/v1/images/generations', { model: 'image', prompt: 'x' }),
  'image of dashscope': () =>
    json('/v1/images/generations', {
      model: 'image',
      input: { prompt: 'x' },
      prompt: 'x',
      response_format: 'url',
    }),
  'image by generateContent': () =>
    json('/v1beta/models/drawn:generateContent', {
      contents: [{ role: 'user', parts: [{ text: 'x' }] }],
      generationConfig: { responseModalities: ['IMAGE'] },
    }),
  speech: () => json('/v1/audio/speech', { model: 'speech', input: 'hello', voice: 'alloy' }),
  'small upload': () => form(1000),
  'large upload': () => form(3_000_000),
  video: videoCall,
  realtime: socketCall(
    '/v1/realtime?model=realtime',
    { type: 'session.update', session: { type: 'realtime' } },
    (type) => type === 'session.updated',
  ),
  'responses socket': socketCall(
    '/v1/responses',
    { type: 'response.create', model: 'native', input: 'x' },
    (type) => type === 'response.completed' || type === 'error',
  ),
  'responses upstream session': socketCall(
    '/v1/responses',
    { type: 'response.create', model: 'session', input: 'x' },
    (type) => type === 'response.completed' || type === 'error',
  ),
  leaver,
  slow,
};

function gauge(name: string): number {
  const rows = gateway.metrics().gauges.find(([family]) => family === name);
  return rows?.[2]?.[0] ?? 0;
}
const faults = (): number => {
  const rows = gateway.metrics().counters.find(([family]) => family === 'gateway_faults_total');
  return [...(rows?.[2] ?? [])].reduce((sum: number, value) => sum + value, 0);
};
const state = (): string =>
  `${gauge('gateway_open_requests')} requests, ${gauge('gateway_open_sockets')} sockets, ${gauge('gateway_buffered_bytes')} bytes`;

const settled = (wanted: string): Promise<string> =>
  seenWithin(state, { fits: (now) => now === wanted, withinMs: 60_000, everyMs: 10 });

// Calls of others that are under way all the time.
const streams = [textCall('chat', 'hold', true)(), textCall('messages', 'hold', true)()];
const slowForm = formOf([{ name: 'model', value: 'ears' }, fileOf(200_000)]);
const uploader = connect(port, '127.0.0.1');
await once(uploader, 'connect');
uploader.write(
  `POST /v1/audio/transcriptions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n` +
    `content-type: multipart/form-data; boundary=${boundary}\r\ncontent-length: ${slowForm.length}\r\n\r\n`,
);
uploader.write(slowForm.subarray(0, 100_000));
const session = new WebSocket(`ws://127.0.0.1:${port}/v1/realtime?model=realtime`, { headers: auth });
await once(session, 'message');
await eventually(() => held.size >= 2, { everyMs: 10 });
await after(100);
const before = state();
patienceMs = 10_000;

const only = process.argv[2] ?? '';
const calls = new Map<string, string[]>();
const healthy: Record<string, string> = {};
for (const [name, victim] of Object.entries(victims)) {
  tracing = new Set();
  healthy[name] = await victim();
  process.stderr.write(`${name}: ${healthy[name]?.slice(0, 100)}\n`);
  await settled(before);
  for (const method of tracing) {
    const those = calls.get(method);
    if (those === undefined) calls.set(method, [name]);
    else those.push(name);
  }
}
tracing = null;

const problems: string[] = [];
let runs = 0;
const most = Number(process.env.THROWS_MS ?? 120_000);
const startedAt = performance.now();
for (const [method, names] of calls) {
  if (!method.includes(only)) continue;
  // The first of those that call it, since the cheap ones come first; or all, for whoever has the time.
  for (const name of process.env.THROWS_ALL === '1' ? names : names.slice(0, 1)) {
    if (performance.now() - startedAt > most) break;
    const [faultsBefore, linesBefore] = [faults(), lines.length];
    thrown = null;
    armed = method;
    const outcome = await (victims[name as string] as () => Promise<string>)();
    armed = null;
    if (thrown === null) continue;
    runs++;
    const about = `${method} in ${name}: `;
    const left = await settled(before);
    process.stderr.write(`${about}${outcome.slice(0, 80)}\n`);
    if (outcome === 'hangs') problems.push(`${about}hangs`);
    if (left !== before) problems.push(`${about}left ${left}`);
    if (faults() === faultsBefore && uncaught.length === 0)
      problems.push(`${about}not counted, answered ${outcome}`);
    if (uncaught.length > 0) problems.push(`${about}uncaught ${uncaught.splice(0)[0]}`);
    const told = lines
      .slice(linesBefore)
      .filter((line) => JSON.stringify(line.err ?? '').includes(`injected into ${method}`));
    if (told.length === 0) problems.push(`${about}not logged`);
    const ids = lines
      .slice(linesBefore)
      .filter((line) => line.msg === 'request')
      .map(({ id }) => id);
    if (new Set(ids).size !== ids.length) problems.push(`${about}accounted twice`);
  }
}

// The others end whole.
for (const response of held) {
  response.write(event('second'));
  response.end('data: [DONE]\n\n');
}
uploader.write(slowForm.subarray(100_000));
const [answered] = (await once(uploader, 'data')) as [Buffer];
session.send(JSON.stringify({ type: 'session.update', session: { type: 'realtime' } }));
const [updated] = (await once(session, 'message')) as [Buffer];
const bystanders = {
  streams: await Promise.all(streams),
  upload: answered.toString('latin1', 0, 15),
  session: (JSON.parse(updated.toString()) as { type: string }).type,
};
session.terminate();
uploader.destroy();
const after0 = await settled('0 requests, 0 sockets, 0 bytes');
process.stdout.write(
  `${JSON.stringify({ runs, methods: calls.size, healthy, problems, bystanders, end: after0, uncaught })}\n`,
);
await gateway.close();
await simulator.close();
odd.close();
rmSync(folder, { recursive: true, force: true });
process.exit(0);
