import { connect } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import type { SlowReadersPlan, SlowReadersResult } from './slow-readers.js';

/**
 * Runs as a separate process with a plan as JSON: reads one piece of each answer a second. The rest stays in the
 * kernel.
 */
const plan = JSON.parse(process.argv[2] ?? '{}') as SlowReadersPlan;
const request = `GET ${plan.path} HTTP/1.1\r\nhost: 127.0.0.1:${plan.port}\r\nauthorization: Bearer ${plan.key}\r\n\r\n`;
let bytes = 0;
let ended = 0;

function read(): void {
  const socket = connect({
    port: plan.port,
    host: '127.0.0.1',
    onread: {
      buffer: Buffer.alloc(plan.bytesPerSecond),
      callback: (count) => {
        bytes += count;
        setTimeout(() => socket.resume(), 1000);
        return false;
      },
    },
  });
  socket.on('error', () => socket.destroy());
  socket.once('close', () => {
    ended += 1;
  });
  socket.write(request);
}

for (let index = 0; index < plan.readers; index += 1) read();
await wait(plan.seconds * 1000);
const result: SlowReadersResult = { bytes, ended };
process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit());
