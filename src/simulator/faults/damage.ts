import { once } from 'node:events';
import { createGzip, constants as zlib } from 'node:zlib';
import type { Reply, Step } from '../http/reply.js';

/** The bytes of all data steps. */
export async function textOf(steps: Reply['steps']): Promise<Buffer> {
  const found: Buffer[] = [];
  for await (const step of steps) {
    if (step.kind === 'data') {
      found.push(Buffer.from(step.bytes));
    }
  }
  return Buffer.concat(found);
}

/** Heads that RFC 9112 does not allow, by the name of what is wrong with them. */
export function badHead(what: string): string {
  switch (what) {
    case 'header':
      return 'HTTP/1.1 200 OK\r\ncontent-type application/json\r\ncontent-length: 2\r\n\r\n{}';
    case 'lengths':
      return 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{} ';
    case 'huge':
      return `HTTP/1.1 200 OK\r\nx-huge: ${'a'.repeat(1_000_000)}\r\ncontent-length: 2\r\n\r\n{}`;
    default:
      return 'HTTP/1.1 two hundred\r\ncontent-length: 2\r\n\r\n{}';
  }
}

/** A page as a proxy before the upstream would send it. */
export function plainPage(status: number): string {
  return `<html><head><title>${status}</title></head><body><h1>${status}</h1><p>Simulated page.</p></body></html>\n`;
}

/** The given steps as chunks, then a chunk that announces more than it holds, then FIN. */
export function withoutLastChunk(reply: Reply, steps: AsyncIterable<Step>): Reply {
  async function* cut(): AsyncGenerator<Step> {
    yield* steps;
    yield { kind: 'raw', bytes: '40\r\ndata: {"cut' };
    yield { kind: 'disconnect' };
  }
  return {
    ...reply,
    length: null,
    headers: { ...reply.headers, 'transfer-encoding': 'chunked' },
    steps: cut(),
  };
}

/** The answer with `content-encoding: gzip`, flushed event by event. */
export function compressed(reply: Reply): Reply {
  async function* steps(): AsyncGenerator<Step> {
    const gzip = createGzip();
    const ended = once(gzip, 'end');
    let ready: Buffer[] = [];
    gzip.on('data', (chunk: Buffer) => ready.push(chunk));
    const taken = (tokens: number): Step => {
      const bytes = Buffer.concat(ready);
      ready = [];
      return { kind: 'data', bytes, tokens };
    };
    for await (const step of reply.steps) {
      if (step.kind !== 'data') {
        yield step;
        continue;
      }
      gzip.write(step.bytes);
      await new Promise<void>((resolve) => gzip.flush(zlib.Z_SYNC_FLUSH, resolve));
      // What the flush pushed is emitted in the next turn at the latest.
      await new Promise((resolve) => setImmediate(resolve));
      yield taken(step.tokens);
    }
    gzip.end();
    await ended;
    yield taken(0);
  }
  return {
    ...reply,
    length: null,
    headers: { ...reply.headers, 'content-encoding': 'gzip' },
    steps: steps(),
  };
}

/** Every byte in a step of its own, a turn of the event loop or some milliseconds apart. */
export function singleBytes(reply: Reply, ms: number): Reply {
  async function* steps(): AsyncGenerator<Step> {
    for await (const step of reply.steps) {
      if (step.kind !== 'data') {
        yield step;
        continue;
      }
      const bytes = Buffer.from(step.bytes);
      for (let at = 0; at < bytes.length; at += 1) {
        yield { kind: 'data', bytes: bytes.subarray(at, at + 1), tokens: at === 0 ? step.tokens : 0 };
        yield { kind: 'wait', ms };
      }
    }
  }
  return { ...reply, steps: steps() };
}

/** So many bytes of content before the end of the answer, as fast as they are taken. */
export function flooded(reply: Reply, size: { readonly bytes: number; readonly eventBytes: number }): Reply {
  const event = Buffer.from(
    reply.stream ? reply.answerFormat.contentEvent('x'.repeat(size.eventBytes)) : ' '.repeat(size.eventBytes),
  );
  const count = Math.ceil(size.bytes / event.length);
  const padding: Step = { kind: 'data', bytes: event, tokens: 0 };
  async function* steps(): AsyncGenerator<Step> {
    // A stream opens with its own first events; a body has the padding before it.
    let ahead = reply.stream ? reply.answerFormat.eventsBeforeContent : 0;
    for await (const step of reply.steps) {
      for (let sent = 0; ahead === 0 && sent < count; sent += 1) {
        yield padding;
      }
      ahead -= 1;
      yield step;
    }
  }
  const length = reply.length === null ? null : reply.length + count * event.length;
  return { ...reply, length, tokensPerSecond: 0, steps: steps() };
}
