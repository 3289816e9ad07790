/** Hostile characters in every part of a client's request, and what its upstream may receive of them. */

import type { Test } from 'tap';
import {
  bytesOf,
  type EntryPoint,
  type EntryRequest,
  entryPoints,
  entryPointsConfig,
  otherKey,
} from './entry-points.js';
import { startGateway, testKey } from './gateway.js';
import { exchange, open, type RawAnswer, readAnswer } from './raw-client.js';
import { type Integers, integersOf } from './seed.js';
import { temporaryFolder } from './temporary-folder.js';
import { jsonAnswer, type RawRequest, startRawUpstream } from './upstream.js';

const isControl = (code: number) => code < 0x20 || code === 0x7f;

/** Control characters except the tab, and characters up to U+2FFF that become one if their upper byte is lost. */
export const hostile: readonly string[] = Array.from({ length: 0x3000 }, (_, code) => code)
  .filter((code) => code !== 0x09 && isControl(code & 0xff) && (code < 0x20 || code === 0x7f || code > 0xff))
  .map((code) => String.fromCharCode(code));

/** Halves of surrogate pairs. */
export const halves: readonly string[] = Array.from({ length: 0x800 }, (_, at) =>
  String.fromCharCode(0xd800 + at),
);

/** Headers of a client that an upstream gets unchanged, or not at all. */
const forwarded = [
  ...['accept', 'user-agent', 'traceparent', 'tracestate', 'baggage'],
  ...['x-title', 'session_id', 'x-codex-other', 'x-claude-code-session-id', 'x-goog-api-client'],
];
/** Headers that upstreams interpret: a value that cannot be written is refused. */
const meaningful = ['anthropic-version', 'vendorc-version', 'anthropic-beta', 'vendorc-beta', 'openai-beta'];
const others = [
  'authorization',
  'content-type',
  'idempotency-key',
  'x-gateway-target',
  'x-request-id',
  'origin',
  'range',
  'if-range',
  'if-none-match',
  'sec-websocket-protocol',
  'host',
];

type Field = 'path' | 'query' | 'body' | 'header name' | (string & {});

const fields: readonly Field[] = [
  'path',
  'query',
  'body',
  'header name',
  ...forwarded,
  ...meaningful,
  ...others,
];

const benign: Readonly<Record<string, string>> = {
  accept: '*/*',
  'anthropic-version': '2023-06-01',
  'vendorc-version': '2023-06-01',
};

interface Shape {
  readonly text: string;
  readonly encoding: 'utf8' | 'latin1';
}

function oneOf<T>(random: Integers, items: readonly T[]): T {
  return items[random(items.length)] as T;
}

/** Returns a character that becomes that of `code` if its upper byte is lost. */
function disguised(random: Integers, code: number): string {
  return String.fromCharCode((1 + random(0x2f)) * 256 + code);
}

/** Texts around a value that would begin another request, end a line, or only damage it. */
function shapeOf(random: Integers, value: string): Shape {
  const cr = disguised(random, 0x0d);
  const lf = disguised(random, 0x0a);
  switch (random(6)) {
    case 0:
      return {
        text: `${value}${cr}${lf}content-length: 0${cr}${lf}${cr}${lf}POST /v1/other HTTP/1.1${cr}${lf}host: x${cr}${lf}x: `,
        encoding: 'utf8',
      };
    case 1:
      return { text: `${value}${cr}${lf}x-injected: 1`, encoding: 'utf8' };
    case 2:
      return { text: `${value}${lf}x-injected: 1`, encoding: 'utf8' };
    case 3:
      return { text: `${value}${oneOf(random, halves)}x`, encoding: 'utf8' };
    case 4: {
      const character = oneOf(random, hostile);
      const encoding = character < '\u0100' && random(2) === 0 ? 'latin1' : 'utf8';
      return { text: oneOf(random, [`${value}${character}`, `${character}${value}`]), encoding };
    }
    default: {
      const at = random(value.length + 1);
      const upper = String.fromCharCode(0x80 + random(0x80));
      const character = random(2) === 0 ? upper : oneOf(random, hostile);
      return {
        text: value.slice(0, at) + character + value.slice(at),
        encoding: character < '\u0100' && random(2) === 0 ? 'latin1' : 'utf8',
      };
    }
  }
}

/** Makes the request that is sent in place of an entry's. */
function attackOn(
  { request }: EntryPoint,
  field: Field,
  random: Integers,
): { request: EntryRequest; shape: Shape } {
  const { path, query, headers, body } = request;
  if (field === 'path') {
    const shape = shapeOf(random, '');
    const segments = path.split('/');
    const at = 1 + random(segments.length - 1);
    segments[at] += oneOf(random, [shape.text, `/..${shape.text}`, `${shape.text}/../..`]);
    return { request: { ...request, path: segments.join('/') }, shape };
  }
  if (field === 'query') {
    const shape = shapeOf(random, 'x');
    const pair = oneOf(random, [`${shape.text}=1`, `a=${shape.text}`, `model=${shape.text}`]);
    return { request: { ...request, query: query === '' ? pair : `${query}&${pair}` }, shape };
  }
  if (field === 'body') {
    const shape = shapeOf(random, '');
    const text = body ?? '';
    // The name `stream` stays: without that member, the call would be another one, with another request line.
    const places = [...text.matchAll(/(?<=[a-z]{2})(?<!"stream)(?=[";])/g)].map(({ index }) => index);
    const at = places.length === 0 ? 0 : oneOf(random, places);
    return { request: { ...request, body: body && text.slice(0, at) + shape.text + text.slice(at) }, shape };
  }
  if (field === 'header name') {
    const shape = shapeOf(random, 'x-a');
    return { request: { ...request, headers: [...headers, [shape.text, '1']] }, shape };
  }
  const known = headers.find(([name]) => name === field)?.[1];
  const shape = shapeOf(random, known ?? benign[field] ?? 'a-1');
  const rest = headers.filter(([name]) => name !== field);
  return { request: { ...request, headers: [...rest, [field, shape.text]] }, shape };
}

interface Heard {
  readonly answer: RawAnswer;
  readonly arrived: readonly RawRequest[];
}

interface Expected {
  readonly names: readonly string[];
  readonly line: string;
}

const namesOf = ({ head }: RawRequest): string[] =>
  head
    .split('\r\n')
    .slice(1)
    .map((line) => line.slice(0, line.indexOf(':')));

const lineOf = ({ head }: RawRequest): string => head.split('\r\n', 1)[0] as string;

const idOf = (head: string): string | undefined => /^x-request-id: (.*?)\r?$/m.exec(head)?.[1];

/** The upstream names each request in its answer, so that answers can be told apart. */
function answerTo({ head }: RawRequest): string {
  const error = { message: `refused ${idOf(head)}`, type: 'invalid_request_error', code: 'no' };
  return jsonAnswer(422, JSON.stringify({ type: 'error', message: error.message, error }));
}

interface HeadFuzz {
  /** Numbers of client requests, and of those that reached the upstream. */
  readonly sent: number;
  readonly arrived: number;
  /** What must not happen but did, each with its cause. */
  readonly faults: readonly string[];
}

/**
 * Sends attacks through every entry point, on one field after the other, each followed by an honest call of another key over
 * the same connections.
 * @param attacks number of attacks on each entry point
 */
export async function fuzzHeads(t: Pick<Test, 'teardown'>, seed: number, attacks: number): Promise<HeadFuzz> {
  const random = integersOf(seed);
  const upstream = await startRawUpstream(t, (request) => request.socket.write(answerTo(request)));
  const { port } = await startGateway(t, {
    upstreams: [],
    config: { ...entryPointsConfig(upstream.url), store: { kind: 'embedded', path: temporaryFolder(t) } },
  });
  const faults: string[] = [];
  let sent = 0;
  let seen = 0;
  const send = async (bytes: Buffer, isDoubtful = false): Promise<Heard> => {
    sent++;
    const answer = await (isDoubtful ? exchangeBriefly(port, bytes) : exchange(port, bytes));
    const arrived = upstream.requests.slice(seen);
    seen = upstream.requests.length;
    return { answer, arrived };
  };
  let turn = random(fields.length);
  for (const entry of entryPoints) {
    const honest = bytesOf(withKey(entry.request, otherKey));
    const first = await send(honest);
    const expected = expectedOf(first.arrived);
    if (expected === null || !isOwn(first.answer)) {
      faults.push(`${entry.name}: an honest call was answered ${first.answer.status} ${first.answer.body}`);
      continue;
    }
    for (let count = 0; count < attacks; count++) {
      const field = fields[turn++ % fields.length] as Field;
      const { request, shape } = attackOn(entry, field, random);
      const heard = await send(bytesOf(request, shape.encoding), isNoHttp(field, shape));
      for (const fault of faultsOf(field, expected, heard))
        faults.push(`${entry.name}, ${field}, ${JSON.stringify(shape)}: ${fault}`);
    }
    const last = await send(honest);
    if (last.arrived.length !== 1 || !isOwn(last.answer))
      faults.push(`${entry.name}, after the attacks: an honest call was answered ${last.answer.body}`);
  }
  return { sent, arrived: upstream.requests.length, faults };
}

/** After a control character or an invalid name, uWS may wait for more until its time limit. */
function isNoHttp(field: Field, { text }: Shape): boolean {
  return field === 'header name' || Array.from(text).some((each) => isControl(each.charCodeAt(0)));
}

const briefMs = 100;

async function exchangeBriefly(port: number, bytes: Buffer): Promise<RawAnswer> {
  const socket = await open(port, bytes);
  const timer = setTimeout(() => socket.destroy(), briefMs);
  const answer = await readAnswer(socket);
  clearTimeout(timer);
  socket.destroy();
  return answer;
}

function withKey(request: EntryRequest, key: string): EntryRequest {
  const headers = request.headers.map(([name, value]) => [name, value.replace(testKey, key)] as const);
  return { ...request, headers };
}

function expectedOf([request, more]: readonly RawRequest[]): Expected | null {
  return request === undefined || more !== undefined
    ? null
    : { names: namesOf(request), line: lineOf(request) };
}

/** Whether the answer is for the very request that was sent. */
function isOwn({ head, body }: RawAnswer): boolean {
  return body.includes(`refused ${idOf(head)}`);
}

const refusals = [400, 401, 404, 405, 413, 415, 426, 431, 500, 501, 505];
/** Whether there is nothing but printable ASCII and tabs between line ends. */
const cleanHead = /^[\t\x20-\x7e]+(?:\r\n[\t\x20-\x7e]+)*$/;

function faultsOf(field: Field, expected: Expected, { answer, arrived }: Heard): string[] {
  const [request] = arrived;
  const { status, body } = answer;
  if (arrived.length > 1)
    return [`${arrived.length} requests: ${arrived.map(({ head }) => head).join(' | ')}`];
  if (request === undefined) {
    // What is not HTTP is closed, or answered, by uWS itself.
    return status === 0 || refusals.includes(status)
      ? []
      : [`nothing arrived, and the answer is ${status} ${body}`];
  }
  const found: string[] = [];
  if (!cleanHead.test(request.head)) found.push(`a head of ${JSON.stringify(request.head)}`);
  const names = namesOf(request);
  const wanted = expected.names.filter((name) => name !== field);
  const mayHave = new Set([...expected.names, ...passedOnAs(field)]);
  if (!wanted.every((name) => names.includes(name)) || !names.every((name) => mayHave.has(name)))
    found.push(`the names ${names.join()} in place of ${expected.names.join()}`);
  if (new Set(names).size !== names.length) found.push(`a name twice: ${names.join()}`);
  if (!isExpectedLine(field, lineOf(request), expected.line)) found.push(`the line ${lineOf(request)}`);
  if (!isOwn(answer)) found.push(`an answer that is not its own: ${status} ${body}`);
  return found;
}

/** If its value can be written after all, an upstream may receive the header under its vendor's name. */
function passedOnAs(field: Field): string[] {
  if (meaningful.includes(field)) return [field.replace('vendorc', 'anthropic')];
  return forwarded.includes(field) || field === 'idempotency-key' ? [field] : [];
}

/** The query of a WebSocket is the client's. All other request lines are the gateway's own. */
function isExpectedLine(field: Field, line: string, expected: string): boolean {
  if (field !== 'query' || !expected.startsWith('GET ')) return line === expected;
  const start = expected.slice(0, expected.lastIndexOf(' '));
  return line.startsWith(start) && /^GET [^\s#]+ HTTP\/1\.1$/.test(line);
}
