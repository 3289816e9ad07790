import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { test } from 'tap';
import { hashKey } from '../../src/keys/secret.js';
import { startGateway } from '../support/gateway.js';
import { exchange } from '../support/raw-client.js';
import { randomOf, seed } from '../support/seed.js';
import { fileOf, formOf, model, uploadHead } from '../support/upload-form.js';
import { completion, jsonAnswer, type RawRequest, startRawUpstream } from '../support/upstream.js';
import { heldWhen } from './held-bytes.js';

const bodyBytes = 1024 * 1024;
const keys = ['sk-a', 'sk-b', 'sk-c'];
const rounds = 150;
const atOnce = 12;

const large = jsonAnswer(200, completion.replace('{', `{${' '.repeat(300_000)}`));
/** What an upstream does with a call. */
const answers: readonly ((request: RawRequest) => void)[] = [
  ({ socket }) => socket.write(jsonAnswer(200, completion)),
  ({ socket }) => socket.write(large),
  ({ socket }) => socket.write(large.slice(0, 200_000), () => socket.destroy()),
  ({ socket }) => socket.destroy(),
  ({ socket }) => socket.write(jsonAnswer(500, '{"error":{"message":"no"}}')),
  ({ socket }) => socket.write(jsonAnswer(200, 'x'.repeat(20_000))),
  () => {},
];

function head(path: string, key: string, lines: string): string {
  return (
    `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\nx-api-key: ${key}\r\n` +
    `anthropic-version: 2023-06-01\r\ncontent-type: application/json\r\n${lines}\r\n\r\n`
  );
}

/** The bytes of a request of some kind. */
function requestOf(random: () => number, key: string): Buffer {
  const size = Math.floor(random() ** 3 * 1.2 * bodyBytes);
  const content = 'x'.repeat(size);
  const path = ['/v1/chat/completions', '/v1/messages'][Math.floor(random() * 2)] as string;
  const body = Buffer.from(
    JSON.stringify({ model: 'm', max_tokens: 5, messages: [{ role: 'user', content }] }),
  );
  const of = (lines: string, ...parts: readonly (string | Buffer)[]) =>
    Buffer.concat([head(path, key, lines), ...parts].map((part) => Buffer.from(part)));
  switch (Math.floor(random() * 6)) {
    case 0:
      return of('transfer-encoding: chunked', `${body.length.toString(16)}\r\n`, body, '\r\n0\r\n\r\n');
    case 1: {
      const coded = gzipSync(body);
      return of(`content-encoding: gzip\r\ncontent-length: ${coded.length}`, coded);
    }
    case 2:
      return of('content-length: 30000', 'x'.repeat(30_000));
    case 3: {
      const form = formOf(random() < 0.5 ? [model, fileOf(size)] : [fileOf(size), model]);
      return Buffer.concat([Buffer.from(uploadHead({ length: form.length, key })), form]);
    }
    default:
      return of(`content-length: ${body.length}`, body);
  }
}

/** Sends it, or a part of it, and leaves after an answer, or at once, or after a while. */
function play(port: number, bytes: Buffer, random: () => number): Promise<void> {
  const part = random() < 0.3 ? Math.floor(random() * bytes.length) : bytes.length;
  const patienceMs = random() < 0.3 ? random() * 30 : 300;
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes.subarray(0, part)));
    const timer = setTimeout(() => socket.destroy(), patienceMs);
    socket.on('error', () => {});
    socket.on('data', () => {
      if (random() < 0.8) socket.destroy();
    });
    socket.on('close', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

test(`whatever becomes of calls, all that they held is given back, once (SEED=${seed})`, async (t) => {
  const random = randomOf(seed);
  const upstream = await startRawUpstream(t, (request) => {
    const answer = answers[Math.floor(random() * answers.length)] as (request: RawRequest) => void;
    answer(request);
  });
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    config: {
      limits: { bodyBytes, bufferedBytes: 3 * bodyBytes, bufferedBytesPerKey: bodyBytes },
      routing: { failures: 1_000_000, failureRate: 1, minimumCalls: 1_000_000 },
      models: {
        m: { protocols: ['chat', 'messages', 'audio'], targets: [{ upstream: 'u0', model: 'm' }] },
      },
      keys: keys.map((key, index) => ({
        id: `k${index}`,
        hash: hashKey(key),
        groups: ['default'],
        limits: { requestsPerMinute: 100_000, concurrent: atOnce },
      })),
    },
  });
  let left = rounds;
  const client = async (): Promise<void> => {
    while (left-- > 0) {
      const key = keys[Math.floor(random() * keys.length)] as string;
      await play(gateway.port, requestOf(random, key), random);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, client));
  await heldWhen(gateway, (bytes) => bytes === 0);
  for (const key of keys) {
    // A byte that is still counted for the key would leave no room for this.
    const whole = head('/v1/chat/completions', key, `content-length: ${bodyBytes}`) + ' '.repeat(bodyBytes);
    t.equal((await exchange(gateway.port, whole)).status, 400, 'its whole share is free');
  }
  for (const key of keys) {
    const short = head('/v1/chat/completions', key, 'content-length: 2');
    const burst = await Promise.all(
      Array.from({ length: atOnce }, () => exchange(gateway.port, `${short}{}`)),
    );
    t.strictSame([...new Set(burst.map(({ status }) => status))], [400], 'and so are its places');
  }
});
