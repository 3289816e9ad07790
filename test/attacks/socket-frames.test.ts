import t, { type Test, test } from 'tap';
import { hashKey } from '../../src/keys/secret.js';
import { eventually } from '../support/eventually.js';
import { startGateway } from '../support/gateway.js';
import { residentMb } from '../support/process-memory.js';
import { type FrameShape, frame, openRaw, type RawSocket } from '../support/raw-socket.js';
import { connect } from '../support/responses-socket.js';

const mebibyte = 1024 * 1024;
const messageBytes = 4 * mebibyte;
const heldBytesPerKey = 16 * mebibyte;
const heldBytes = 48 * mebibyte;
const path = '/v1/responses';

const options = {
  workers: 1,
  file: {
    upstreams: { simulator: { kind: 'simulator' } },
    models: { m: { protocols: ['responses'], targets: [{ upstream: 'simulator', model: 'sim-text' }] } },
    groups: { default: { models: ['*'] } },
    keys: ['hostile', 'other'].map((id) => ({
      id,
      hash: hashKey(`sk-${id}`),
      groups: ['default'],
    })),
    sockets: { messageBytes, heldBytes, heldBytesPerKey },
  },
  env: { SIMULATOR_LATENCY_MS: '0', SIMULATOR_TOKENS_PER_SECOND: '0' },
};
const gateway = await startGateway(t, options);
t.teardown(() => gateway.end());

/** A session of another key, which is asked for responses. */
async function otherKey(t: Test, { baseUrl } = gateway): Promise<() => Promise<void>> {
  const client = await connect(t, baseUrl, { authorization: 'Bearer sk-other' });
  return async () => {
    client.send({ type: 'response.create', model: 'm', input: 'hi' });
    t.equal((await client.answer()).at(-1)?.type, 'response.completed', 'another key gets its answer');
  };
}

const dial = (key = 'hostile', { port } = gateway): Promise<RawSocket> =>
  openRaw(port, { path, key: `sk-${key}` });

test('frames that are wrong, or too large at their head, end their socket and nothing else', async (t) => {
  const goesOn = await otherKey(t);
  const wrong: readonly (readonly [string, Buffer])[] = [
    ...[
      messageBytes + 1,
      2 ** 31,
      2 ** 32,
      2 ** 32 + 5,
      2 ** 53 - 1,
      2n ** 63n - 1n,
      2n ** 63n,
      2n ** 64n - 1n,
    ].map((announced) => [`${announced} bytes announced`, frame('x', { announced })] as const),
    [
      'fragments that add up',
      Buffer.concat([frame('x', { fin: false }), frame('', { opcode: 0, announced: messageBytes })]),
    ],
    ['a ping of 126 bytes', frame(Buffer.alloc(126), { opcode: 9 })],
    ['a ping in fragments', frame('x', { opcode: 9, fin: false })],
    ['a continuation of nothing', frame('x', { opcode: 0 })],
    ['a message within another', Buffer.concat([frame('x', { fin: false }), frame('y')])],
    ['opcode 3', frame('x', { opcode: 3 })],
    ['opcode 11', frame('x', { opcode: 11 })],
    ['a compressed frame', frame(Buffer.alloc(1000), { reserved: 0x40 })],
    ['a reserved bit', frame('x', { reserved: 0x20 })],
    ['text that is no UTF-8', frame(Buffer.from([0xff, 0xfe, 0x80]))],
    ['a lone surrogate', frame(Buffer.from([0xed, 0xa0, 0x80]))],
    [
      'text that is no UTF-8 over two fragments',
      Buffer.concat([
        frame(Buffer.from([0xe2, 0x82]), { fin: false }),
        frame(Buffer.from([0x28]), { opcode: 0 }),
      ]),
    ],
    ['a close with a code that may not be sent', frame(Buffer.from([0x03, 0xed]), { opcode: 8 })],
  ];
  for (const [name, bytes] of wrong) {
    const raw = await dial();
    raw.send(bytes);
    // What completes fragments to more than may be is only known when it comes.
    if (name.startsWith('fragments')) raw.send(Buffer.alloc(messageBytes));
    t.equal(typeof (await raw.closed), 'number', name);
  }
  const pid = gateway.workerPids()[0];
  await goesOn();
  // Without a mask, which uWS does not look for: whatever it takes it for, the worker lives on.
  const shapes: readonly FrameShape[] = [
    { masked: false },
    { masked: false, opcode: 9 },
    { masked: false, announced: 200 },
  ];
  for (const shape of shapes) {
    const raw = await dial();
    raw.send(frame('{"type":"response.create"}', shape));
    raw.socket.end();
    await raw.closed;
  }
  await goesOn();
  t.equal(gateway.workerPids()[0], pid, 'by the same worker');
});

test('an offer to compress is not taken', async (t) => {
  const client = await connect(t, gateway.baseUrl, { authorization: 'Bearer sk-other' });
  t.equal(client.socket.extensions, '');
});

test('control frames between the fragments of a message are answered, and the message is whole', async (t) => {
  const raw = await dial();
  const text = JSON.stringify({ type: 'response.create', model: 'm', input: 'hi' });
  raw.send(
    frame(text.slice(0, 5), { fin: false }),
    frame('ping', { opcode: 9 }),
    frame(text.slice(5, 20), { opcode: 0, fin: false }),
    frame('pong', { opcode: 10 }),
    frame(text.slice(20), { opcode: 0 }),
  );
  const isLast = () => raw.heard.some(({ payload }) => payload.includes('"response.completed"'));
  await eventually(isLast, { everyMs: 20 });
  t.equal(raw.heard.find(({ opcode }) => opcode === 10)?.payload.toString(), 'ping');
});

for (const kind of ['one frame', 'fragments'] as const) {
  test(`messages in ${kind} that do not end hold no more than a key may, and a worker`, async (t) => {
    // A worker of its own: one that has freed memory before uses that again, and does not grow.
    const own = await startGateway(t, options);
    t.teardown(() => own.end());
    const goesOn = await otherKey(t, own);
    await goesOn();
    const worker = own.workerPids()[0] as number;
    const before = residentMb(worker);
    const sockets = await Promise.all(Array.from({ length: 40 }, () => dial('hostile', own)));
    let closed = 0;
    for (const raw of sockets) {
      raw.closed.then(() => {
        closed++;
      });
      // A client that answers pings, where it can: between two frames.
      let answered = 0;
      raw.socket.on('data', () => {
        for (; kind === 'fragments' && answered < raw.heard.length; answered++) {
          const { opcode, payload } = raw.heard[answered] as RawSocket['heard'][number];
          if (opcode === 9) raw.send(frame(payload, { opcode: 10 }));
        }
      });
      const most = messageBytes - 1;
      if (kind === 'one frame') raw.send(frame(Buffer.alloc(most), { announced: messageBytes }));
      else
        raw.send(
          frame(Buffer.alloc(most / 2), { fin: false }),
          frame(Buffer.alloc(most / 2), { opcode: 0, fin: false }),
        );
    }
    const bound = kind === 'one frame' ? heldBytesPerKey : heldBytes;
    await eventually(() => closed >= 40 - bound / messageBytes, { everyMs: 20 });
    await goesOn();
    await eventually(() => residentMb(worker) - before < bound / mebibyte + 32, { everyMs: 20 });
    t.pass(`${residentMb(worker) - before} MB more`);
    await goesOn();
    for (const { socket } of sockets) socket.destroy();
  });
}

t.end();
