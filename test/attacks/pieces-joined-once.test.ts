import t, { test } from 'tap';
import type { Exchange, SocketOffer } from '../../src/http/exchange.js';
import { type MessageHandler, serveMessage } from '../../src/http/message-response.js';
import { RequestHead } from '../../src/http/request-head.js';
import { SizedAnswer } from '../../src/http/sized.js';
import type { ClientSocket } from '../../src/http/socket.js';
import { messageIdOf, requestIdOf } from '../../src/wire/head.js';

/** Counts the bytes that are copied from one buffer to another while `work` runs. */
function copiedBy(work: () => void): number {
  let copied = 0;
  const { concat, from } = Buffer;
  const { copy } = Buffer.prototype;
  Buffer.concat = ((list: readonly Uint8Array[], length?: number) => {
    const joined = concat(list, length);
    copied += joined.length;
    return joined;
  }) as typeof Buffer.concat;
  Buffer.from = ((...given: Parameters<typeof from>) => {
    const made = from(...given);
    if (Buffer.isBuffer(given[0])) copied += made.length;
    return made;
  }) as typeof Buffer.from;
  Buffer.prototype.copy = function count(this: Buffer, ...given: Parameters<typeof copy>) {
    const bytes = copy.apply(this, given);
    copied += bytes;
    return bytes;
  };
  try {
    work();
  } finally {
    Buffer.concat = concat;
    Buffer.from = from;
    Buffer.prototype.copy = copy;
  }
  return copied;
}

const pieceBytes = 16 * 1024;
const eventBytes = 16 * 1024 * 1024;

/** A call over a socket whose answer the test writes. */
function served(hold: MessageHandler['hold'] = () => true) {
  const messages: string[] = [];
  let exchange: Exchange | undefined;
  const socket = {
    send: (text: string) => {
      messages.push(text);
      return true;
    },
  } as unknown as ClientSocket;
  const host = { sweepList: { add() {}, remove() {} }, open: 0, served: 0, draining: false, onIdle: null };
  let ended = 0;
  serveMessage(
    socket,
    { context: null, host } as unknown as SocketOffer,
    {
      method: 'POST',
      path: '/v1/responses',
      head: new RequestHead(),
      id: messageIdOf(requestIdOf('req_', 1), 1),
      body: Buffer.alloc(0),
    },
    {
      words: { whole: (_status, body) => body, cut: 'cut' },
      serve: (given) => {
        exchange = given;
      },
      hold,
      onEvent: () => {},
      onEnd: () => {
        ended++;
      },
    },
  );
  if (exchange === undefined) throw new Error('nothing was served');
  exchange.begin(200, '');
  return { exchange, messages, ended: () => ended };
}

test('an event of 16 MB that comes in pieces of 16 KB moves a few times its bytes, not a thousand times', async (t) => {
  const { exchange, messages } = served();
  const event = Buffer.from(`data: ${'x'.repeat(eventBytes)}\n\n`);
  const copied = copiedBy(() => {
    for (let at = 0; at < event.length; at += pieceBytes) exchange.write(event.subarray(at, at + pieceBytes));
  });
  t.equal(messages.length, 1);
  t.equal(messages[0]?.length, eventBytes);
  t.ok(copied < 5 * eventBytes, `${copied} bytes moved`);
});

test('events are the same however they are cut', async (t) => {
  const texts = ['{"a":1}', '{"b":"ä€😀"}', 'x'.repeat(100_000), '{}'];
  const stream = Buffer.from(texts.map((text) => `event: e\ndata: ${text}\n\n`).join(''));
  for (const size of [1, 7, 4096, stream.length]) {
    const { exchange, messages } = served();
    for (let at = 0; at < stream.length; at += size) exchange.write(stream.subarray(at, at + size));
    t.strictSame(messages, texts, `in pieces of ${size}`);
  }
});

test('an event that finds no room ends its call with a word, and leaves nothing of it', async (t) => {
  let held = 0;
  const { exchange, messages, ended } = served((bytes) => {
    if (bytes > 100_000) return false;
    held = bytes;
    return true;
  });
  for (let at = 0; at < 100; at++) exchange.write(Buffer.alloc(pieceBytes, 0x78));
  t.strictSame(messages, ['cut']);
  t.equal(ended(), 1);
  t.ok(held <= 100_000);
});

test('what is written while a client does not read is joined once', async (t) => {
  let offset = 0;
  let room = 1;
  const sent: Buffer[] = [];
  const response = {
    cork: (work: () => void) => work(),
    getWriteOffset: () => offset,
    tryEnd: (bytes: Buffer, total: number) => {
      const taken = Math.min(bytes.length, room);
      sent.push(Buffer.from(bytes.subarray(0, taken)));
      offset += taken;
      room -= taken;
      return [taken === bytes.length, offset === total];
    },
  };
  const answer = new SizedAnswer(response as never, eventBytes);
  const all = Buffer.alloc(eventBytes);
  for (let at = 0; at < all.length; at += 4) all.writeUInt32LE(at, at);
  const copied = copiedBy(() => {
    for (let at = 0; at < eventBytes; at += pieceBytes) answer.write(all.subarray(at, at + pieceBytes), null);
  });
  t.ok(copied < 3 * eventBytes, `${copied} bytes moved`);
  let rounds = 0;
  do {
    room = 1_000_003;
    rounds++;
  } while (answer.flush() === 'waiting');
  t.ok(Buffer.concat(sent).equals(all), 'all of it, in order');
  t.ok(rounds < 20);
});

t.end();
