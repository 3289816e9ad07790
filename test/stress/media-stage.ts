import { createHash } from 'node:crypto';
import { type Simulator, startSimulator } from '../../src/simulator/server.js';
import { type GatewayProcesses, startGateway, untilKilled } from '../support/gateway.js';
import { startLoad } from '../support/load/load.js';
import { loadRequest } from '../support/load/request.js';
import { residentMb, watchMemory } from '../support/process-memory.js';
import { askTask, taskClientFormats, untilEnded } from '../support/tasks/client.js';
import { tasksGateway } from '../support/tasks/gateway.js';
import { storeFolder } from './store-folder.js';
import { download, type HashingUpstream, startHashingUpstream, upload } from './tasks-media.js';

/** A gateway with one worker, a video upstream, and one that takes uploads. */
export interface MediaStage {
  readonly gateway: GatewayProcesses;
  readonly worker: number;
  readonly simulator: Simulator;
  readonly ears: HashingUpstream;
}

/** Peak memory of a worker during a period, and its memory before, in MB. */
export interface Growth {
  readonly beforeMb: number;
  readonly highestMb: number;
}

/** Where a task's content is: at the upstream itself, or at a URL that it returns. */
export type Origin = 'path' | 'url';
export const origins: readonly Origin[] = ['path', 'url'];

const gib = 1024 ** 3;

/** Runs `play` on a stage, and ends all of the stage afterwards, whatever happens. */
export async function onMediaStage<T>(play: (stage: MediaStage) => Promise<T>): Promise<T> {
  const folder = storeFolder();
  const simulator = await startSimulator({ videoPace: { queuedMs: 0, runningMs: 0 } });
  const ears = await startHashingUpstream();
  let gateway: GatewayProcesses | null = null;
  try {
    gateway = await startGateway(
      untilKilled,
      tasksGateway({
        upstreamUrl: simulator.url,
        earsUrl: ears.url,
        store: { kind: 'embedded', path: folder.path },
        config: { limits: { uploadBytes: 3 * gib } },
      }),
    );
    return await play({ gateway, worker: gateway.workerPids()[0] ?? 0, simulator, ears });
  } finally {
    if (gateway !== null) await gateway.end();
    await simulator.close();
    ears.stop();
    folder.remove();
  }
}

/** Creates a completed task with a video of this many bytes. @returns its id */
export async function makeVideo({ gateway }: MediaStage, origin: Origin, bytes: number): Promise<string> {
  const clientFormat = origin === 'path' ? taskClientFormats.compat : taskClientFormats.generic;
  const request = clientFormat.create(`[[video:bytes=${bytes}]] a fox`);
  const model = origin === 'path' ? 'm' : 'linked';
  const made = await askTask(gateway.baseUrl, { ...request, body: { ...(request.body as object), model } });
  const id = String(clientFormat.idIn(made.body));
  const ended = await untilEnded(gateway.baseUrl, id);
  if (ended.body.status !== 'completed') throw new Error(`no video was made: ${JSON.stringify(ended.body)}`);
  return id;
}

const warmMb = 24;

/** Ordinary traffic, with files of ordinary size, after which a worker's memory is stable. */
export async function warmUp(stage: MediaStage, seconds: number): Promise<void> {
  const { port } = stage.gateway;
  const load = startLoad({
    port,
    connections: 16,
    requests: [loadRequest({ does: 'complete' }, { model: 'talk' })],
  });
  const until = performance.now() + seconds * 1000;
  const bytes = warmMb * 1024 * 1024;
  const ids = await Promise.all(origins.map((origin) => makeVideo(stage, origin, bytes)));
  do {
    await upload(port, bytes);
    await Promise.all(ids.map((id) => download({ port, id, hash: createHash('sha256') })));
  } while (performance.now() < until);
  await load.stop();
}

/** Runs something, and watches the worker's memory meanwhile. */
export async function watched<T>(
  { worker }: MediaStage,
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly growth: Growth; readonly seconds: number }> {
  const beforeMb = residentMb(worker);
  const memory = watchMemory(worker);
  const begunAt = performance.now();
  try {
    const result = await work();
    const seconds = (performance.now() - begunAt) / 1000;
    return { result, growth: { beforeMb, highestMb: Math.max(...memory.stop()) }, seconds };
  } finally {
    memory.stop();
  }
}
