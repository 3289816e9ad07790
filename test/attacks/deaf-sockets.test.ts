import t, { test } from 'tap';
import { hashKey } from '../../src/keys/secret.js';
import { eventually } from '../support/eventually.js';
import { startGateway } from '../support/gateway.js';
import { residentMb } from '../support/process-memory.js';
import { frame, openRaw, type RawSocket } from '../support/raw-socket.js';
import { connect } from '../support/responses-socket.js';

const env = { SIMULATOR_LATENCY_MS: '0', SIMULATOR_TOKENS_PER_SECOND: '0' };
const config = {
  upstreams: { simulator: { kind: 'simulator' } },
  models: {
    m: { protocols: ['responses'], targets: [{ upstream: 'simulator', model: 'sim-text' }] },
    r: { protocols: ['realtime'], targets: [{ upstream: 'simulator', model: 'sim-realtime' }] },
  },
  groups: { default: { models: ['*'] } },
  keys: ['hostile', 'other'].map((id) => ({ id, hash: hashKey(`sk-${id}`), groups: ['default'] })),
};

const gateway = await startGateway(t, { workers: 1, file: config, env });
t.teardown(() => gateway.end());

/** Has a client that does not read send for as long as its socket is open. @returns how the socket was closed */
async function flood(raw: RawSocket, bytes: Buffer): Promise<number> {
  const { socket } = raw;
  let over = false;
  raw.closed.then(() => {
    over = true;
  });
  socket.pause();
  const lookMs = 20;
  // A socket that is not read tells of its end when a write fails.
  while (!over && !socket.destroyed) {
    if (socket.writableLength < 4 * bytes.length) socket.write(bytes);
    await new Promise((resolve) => setTimeout(resolve, lookMs));
    if (socket.bytesWritten > 1_000_000) socket.resume();
  }
  socket.resume();
  return raw.closed;
}

const repeated = (one: Buffer): Buffer =>
  Buffer.concat(Array.from({ length: Math.ceil(65_536 / one.length) }, () => one));
const floods: readonly (readonly [string, string, Buffer])[] = [
  ['pings', '/v1/responses', repeated(frame(Buffer.alloc(125), { opcode: 9 }))],
  ['pings to a realtime session', '/v1/realtime?model=r', repeated(frame(Buffer.alloc(125), { opcode: 9 }))],
  ['empty pings', '/v1/responses', repeated(frame('', { opcode: 9 }))],
  ['messages that are no JSON', '/v1/responses', repeated(frame('{'))],
  ['binary messages', '/v1/responses', repeated(frame('x', { opcode: 2 }))],
  [
    'messages beyond those that may wait',
    '/v1/responses',
    repeated(frame('{"type":"response.create","model":"m","input":"x"}')),
  ],
];

for (const [name, path, bytes] of floods) {
  test(`a client that does not read and sends ${name} is closed, and costs others nothing`, async (t) => {
    const worker = gateway.workerPids()[0] as number;
    const other = await connect(t, gateway.baseUrl, { authorization: 'Bearer sk-other' });
    const goesOn = async (): Promise<void> => {
      other.send({ type: 'response.create', model: 'm', input: 'hi' });
      t.equal((await other.answer()).at(-1)?.type, 'response.completed');
    };
    await goesOn();
    const before = residentMb(worker);
    for (let round = 0; round < 3; round++)
      await flood(await openRaw(gateway.port, { path, key: 'sk-hostile' }), bytes);
    await goesOn();
    t.ok(residentMb(worker) - before < 48, `from ${before} to ${residentMb(worker)} MB`);
    t.equal(gateway.workerPids()[0], worker, 'the worker lives');
  });
}

test('a client that asks on without reading gets no more than one answer ahead', async (t) => {
  const raw = await openRaw(gateway.port, { path: '/v1/responses', key: 'sk-hostile' });
  const worker = gateway.workerPids()[0] as number;
  const before = residentMb(worker);
  raw.socket.pause();
  const input = 'x'.repeat(400_000);
  for (let asked = 0; asked < 8; asked++)
    raw.send(frame(JSON.stringify({ type: 'response.create', model: 'm', input })));
  await new Promise((resolve) => setTimeout(resolve, 1000));
  t.ok(residentMb(worker) - before < 64, `from ${before} to ${residentMb(worker)} MB`);
  raw.socket.resume();
  const ends = () =>
    raw.heard.filter(({ payload }) => /"type":"(response.completed|error)"/.test(payload.toString())).length;
  await eventually(() => ends() >= 8 || raw.socket.destroyed, { everyMs: 20 });
  t.equal(ends(), 8, 'each is answered once the client reads');
  raw.socket.destroy();
});

t.end();
