import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import { uploadBytes } from '../upstream/media.js';
import { openConnection } from './raw-connection.js';
import type { TransferPlan } from './transfer.js';
import { reportTransfer, type TransferCounts } from './transfer-clock.js';

/** Runs as a separate process with a plan as JSON: sends a form with a large file repeatedly. */
const plan = JSON.parse(process.argv[2] ?? '{}') as TransferPlan;
const boundary = '------------------------bench0123456789ab';
/** Contains line ends by chance, as audio does. */
const block = randomBytes(1024 * 1024);
const before =
  `--${boundary}\r\ncontent-disposition: form-data; name="model"\r\n\r\n${plan.model}\r\n` +
  `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="a.mp3"\r\ncontent-type: audio/mpeg\r\n\r\n`;
const after = `\r\n--${boundary}--\r\n`;
const head =
  `POST ${plan.path} HTTP/1.1\r\nhost: 127.0.0.1:${plan.port}\r\nauthorization: Bearer ${plan.key}\r\n` +
  `content-type: multipart/form-data; boundary=${boundary}\r\n` +
  `content-length: ${before.length + uploadBytes + after.length}\r\n\r\n`;
const counts: TransferCounts = { bytes: 0, complete: 0, broken: 0, wrong: 0 };

/** Writes the next block when the last one was sent, so that only bytes that the kernel has taken are counted. */
function send(socket: Socket): void {
  socket.write(head + before);
  let left = uploadBytes / block.length;
  const next = (): void => {
    socket.write(block, (error) => {
      if (error) return;
      counts.bytes += block.length;
      left -= 1;
      if (left > 0) next();
      else socket.write(after);
    });
  };
  next();
}

async function open(): Promise<void> {
  const socket: Socket = await openConnection(plan.port, {
    onAnswer: (status) => {
      if (status === 200) counts.complete += 1;
      else counts.wrong += 1;
      send(socket);
    },
    onBreak: () => {
      counts.broken += 1;
    },
  });
  socket.on('error', () => socket.destroy());
  send(socket);
}

for (let index = 0; index < plan.connections; index += 1) await open();
await reportTransfer(plan, counts);
