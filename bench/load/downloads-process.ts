import type { Socket } from 'node:net';
import { videoBytes } from '../upstream/media.js';
import { openConnection } from './raw-connection.js';
import type { TransferPlan } from './transfer.js';
import { reportTransfer, type TransferCounts } from './transfer-clock.js';

/**
 * Runs as a separate process with a plan as JSON: requests a video repeatedly, counts its bytes and discards them.
 */
const plan = JSON.parse(process.argv[2] ?? '{}') as TransferPlan;
const request = `GET ${plan.path} HTTP/1.1\r\nhost: 127.0.0.1:${plan.port}\r\nauthorization: Bearer ${plan.key}\r\n\r\n`;
/** Large reads leave more of the core to the upstream. */
const readBytes = 1024 * 1024;
const counts: TransferCounts = { bytes: 0, complete: 0, broken: 0, wrong: 0 };

async function open(): Promise<void> {
  const socket: Socket = await openConnection(
    plan.port,
    {
      onBytes: (count) => {
        counts.bytes += count;
      },
      onAnswer: (status, length) => {
        if (status === 200 && length === videoBytes) counts.complete += 1;
        else counts.wrong += 1;
        socket.write(request);
      },
      onBreak: () => {
        counts.broken += 1;
      },
    },
    readBytes,
  );
  socket.write(request);
}

for (let index = 0; index < plan.connections; index += 1) await open();
await reportTransfer(plan, counts);
