import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type GatewayProcesses, startGateway, untilKilled } from '../gateway.js';
import { loadKeyHash } from '../load/request.js';

/** `model-gateway key hash sk-other`: a key of another group than that of the load. */
export const otherKey = 'sk-other';
const otherKeyHash = 'sha256:3dcad332ca200026cb05197382714c13fbe0737dee3d327981a235067882d2d3';

export interface TasksGatewayOptions {
  /** Base URL of the upstream as an SDK takes it, with `/v1`. */
  readonly upstreamUrl: string;
  /** That of the upstream that takes uploads, unless it is the same. */
  readonly earsUrl?: string;
  /** `store` of the config. */
  readonly store: Readonly<Record<string, unknown>>;
  readonly workers?: number;
  /** Merged over the config. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** `warn` unless given: then the log has no line for each request. */
  readonly logLevel?: string;
}

/**
 * A config in which an upstream serves the model `m` in video, `linked` in a video format that gives addresses of
 * its results, `talk` in chat and `ears` in audio.
 */
export function tasksConfig(options: TasksGatewayOptions): Record<string, unknown> {
  const { upstreamUrl, earsUrl, store, config } = options;
  return {
    store,
    upstreams: {
      studio: { kind: 'chat', baseUrl: upstreamUrl, apiKeys: ['upstream-key'] },
      links: { kind: 'generic', baseUrl: upstreamUrl, apiKeys: ['upstream-key'] },
      ears: { kind: 'chat', baseUrl: earsUrl ?? upstreamUrl, apiKeys: ['upstream-key'] },
    },
    models: {
      m: { protocols: ['video'], targets: [{ upstream: 'studio', model: 'sim-video' }] },
      linked: { protocols: ['video'], targets: [{ upstream: 'links', model: 'sim-video' }] },
      talk: { protocols: ['chat'], targets: [{ upstream: 'studio', model: 'sim-text' }] },
      ears: { protocols: ['audio'], targets: [{ upstream: 'ears', model: 'ears' }] },
    },
    groups: { load: { models: ['*'] }, other: { models: ['*'] } },
    keys: [
      { id: 'load', hash: loadKeyHash, groups: ['load'] },
      { id: 'other', hash: otherKeyHash, groups: ['other'] },
    ],
    ...config,
  };
}

const standing = new Set<GatewayProcesses>();

/** Starts a gateway of the command line that makes video tasks; it ends with `endGateways`, and with this process. */
export async function startTasksGateway(options: TasksGatewayOptions): Promise<GatewayProcesses> {
  const gateway = await startGateway(untilKilled, {
    workers: options.workers ?? 1,
    file: tasksConfig(options),
    env: { LOG_LEVEL: options.logLevel ?? 'warn' },
  });
  standing.add(gateway);
  return gateway;
}

/** Ends every process of a gateway at once, as kill -9 does. @returns when they are gone */
export async function killGateway(gateway: GatewayProcesses): Promise<void> {
  const workers = standing.delete(gateway) ? [...gateway.workerPids()] : [];
  // The primary first: it would start others in the place of its workers.
  gateway.kill('SIGKILL');
  for (const pid of workers) killProcess(pid);
  // The output of all of them is one pipe: its end is theirs.
  await gateway.exited;
}

/** Ends what was started and still runs. */
export async function endGateways(): Promise<void> {
  await Promise.all([...standing].map(killGateway));
}

/** A folder for the data of a store, removed by `remove`. */
export function storeFolder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'tasks-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

function killProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended already.
  }
}

/** What workers had to say: the primary tells of a store that is gone, too, and of one that is slow for once. */
export function workerLogs(...gateways: readonly GatewayProcesses[]): string[] {
  return gateways.flatMap(({ logs }) => logs.filter((line) => !line.includes('"role":"primary"')));
}
