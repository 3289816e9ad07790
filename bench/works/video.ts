import { setTimeout as wait } from 'node:timers/promises';
import type { Bench, Work } from '../bench.js';
import { callerAt } from '../callers.js';
import type { Contender, Running } from '../contenders/contender.js';
import { readSlowly } from '../load/slow-readers.js';
import { startTransfer } from '../load/transfer.js';
import { residentMb, workerOf } from '../proc.js';
import { transferReport } from '../transfer-report.js';
import { mediaContenders, runTransfers, startMedia } from '../transfers.js';
import { startUpstream } from '../upstream-process.js';

const readers = 64;
const bytesPerSecond = 16 * 1024;
const slowSeconds = 10;

/** Measures the content of a completed video task of 256 MiB, and the memory of slow readers of it. */
export const videoWork: Work = {
  name: 'video',
  byDefault: false,
  async run(bench) {
    const contenders = mediaContenders(bench, ['off', 'on', 'on, 64 KB']);
    const all = await runTransfers(bench, { direction: 'down', connections: [1, 8], contenders, pathOf });
    const more: string[] = [];
    for (const contender of contenders) {
      if (contender.name === 'direct') continue;
      bench.progress(`video, slow readers: ${contender.name}`);
      try {
        more.push(await holdSlowReaders(bench, contender));
      } catch (error) {
        more.push(
          `${contender.name}: SLOW READERS FAILED: ${error instanceof Error ? error.message : String(error)}`,
        );
      }
    }
    return transferReport(
      bench,
      { work: 'video', title: 'content of a video task, 256 MiB, one after the other', more },
      all,
    );
  },
};

/** Creates a task, which the bench's upstream completes at once. */
async function pathOf({ port, prefix }: Running): Promise<string> {
  const { key, model } = callerAt(0);
  const answer = await fetch(`http://127.0.0.1:${port}${prefix}/v1/videos`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, prompt: 'A lighthouse' }),
  });
  const text = await answer.text();
  if (answer.status !== 200)
    throw new Error(`the task was refused with ${answer.status}: ${text.slice(0, 300)}`);
  return `${prefix}/v1/videos/${(JSON.parse(text) as { id: string }).id}/content`;
}

async function holdSlowReaders(bench: Bench, contender: Contender): Promise<string> {
  const { cores } = bench;
  const upstream = await startUpstream({ engine: 'uws', core: cores.upstream });
  const running = await startMedia(bench, contender, upstream);
  try {
    const plan = { port: running.port, path: await pathOf(running), ...callerAt(0) };
    const timing = { connections: 8, warmUpSeconds: 1, seconds: 1 };
    const warmUp = await startTransfer({ ...plan, ...timing, direction: 'down' }, cores.load);
    await warmUp.process.exited;
    await wait(500);
    const worker = running.process ? workerOf(running.process.pid) : 0;
    const beforeMb = residentMb(worker);
    let highestMb = beforeMb;
    const watch = setInterval(() => {
      highestMb = Math.max(highestMb, residentMb(worker));
    }, 100);
    const result = await readSlowly({ ...plan, readers, bytesPerSecond, seconds: slowSeconds }, cores.load);
    clearInterval(watch);
    const ended = result.ended > 0 ? `, ${result.ended} CONNECTIONS ENDED BY THEMSELVES` : '';
    return (
      `${contender.name}: ${readers} readers of ${bytesPerSecond / 1024} KB/s for ${slowSeconds} s: RSS ` +
      `${Math.round(beforeMb)} MB, at most ${Math.round(highestMb)} MB (+${Math.round(highestMb - beforeMb)})${ended}.`
    );
  } finally {
    await running.process?.stop();
    await upstream.process.stop();
  }
}
