import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { type Test, test } from 'tap';
import { eventually } from '../support/eventually.js';
import { Call, get, makeClient, plainOrigin } from '../upstream/raw.js';

/**
 * A server on a thread of its own, which answers each request with the length of its body, and on demand sends an answer
 * that nobody has asked for. Counts connections, and such answers once they have left.
 */
const generous = `
  const { createServer } = require('node:net');
  const { parentPort, workerData } = require('node:worker_threads');
  const counts = new Int32Array(workerData);
  const answer = (text) => 'HTTP/1.1 200 OK\\r\\ncontent-length: ' + text.length + '\\r\\n\\r\\n' + text;
  let newest;
  const server = createServer({ noDelay: true }, (socket) => {
    Atomics.add(counts, 0, 1);
    newest = socket;
    socket.on('error', () => {});
    let received = '';
    socket.on('data', (data) => {
      received += data.toString('latin1');
      const end = received.indexOf('\\r\\n\\r\\n');
      const length = Number((/content-length: (\\d+)/.exec(received) || [0, 0])[1]);
      if (end === -1 || received.length < end + 4 + length) return;
      received = '';
      socket.write(answer(String(length)));
    });
  });
  parentPort.on('message', () => newest.write(answer('of another'), () => {
    Atomics.add(counts, 1, 1);
    Atomics.notify(counts, 1);
  }));
  server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
`;

async function generousServer(t: Test) {
  const counts = new Int32Array(new SharedArrayBuffer(8));
  const worker = new Worker(generous, { eval: true, workerData: counts.buffer });
  t.teardown(() => worker.terminate());
  const [port] = (await once(worker, 'message')) as [number];
  return {
    origin: plainOrigin(port),
    connections: () => Atomics.load(counts, 0),
    /** Returns once one more answer than was asked for waits to be read, in the same turn of the event loop. */
    giveMore: () => {
      const before = Atomics.load(counts, 1);
      worker.postMessage(null);
      Atomics.wait(counts, 1, before, 10_000);
    },
  };
}

test('an answer that nobody asked for is given to no request which was not sent before it, whatever its size', async (t) => {
  const client = makeClient(t);
  const server = await generousServer(t);
  for (const size of [100, 16_000, 17_000, 100_000, 1_000_000]) {
    await new Call(client, server.origin).over;
    await eventually(() => client.stats().idle === 1);
    const before = server.connections();
    // From here on the event loop looks at its sockets again before the turn ends.
    await new Promise((resolve) => setImmediate(resolve));
    server.giveMore();
    const call = new Call(client, server.origin, { ...get('/', 'POST'), body: [Buffer.alloc(size, 'x')] });
    await call.over;
    t.equal(call.body, String(size), `${size} bytes get their own answer`);
    t.equal(server.connections(), before + 1, 'on a fresh connection');
  }
});
