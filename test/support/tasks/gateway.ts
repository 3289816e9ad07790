import type { GatewayProcesses, ProcessOptions } from '../gateway.js';
import { sharedSecret } from '../gateway-config.js';
import { loadKeyHash } from '../load/request.js';

/** `model-gateway key hash sk-other`: a key of another group than that of the load. */
export const otherKey = 'sk-other';
const otherKeyHash = 'sha256:3dcad332ca200026cb05197382714c13fbe0737dee3d327981a235067882d2d3';

interface TasksGatewayOptions {
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
function tasksConfig(options: TasksGatewayOptions): Record<string, unknown> {
  const { upstreamUrl, earsUrl, store, config } = options;
  return {
    store,
    secret: sharedSecret,
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

/** A gateway of the command line that makes video tasks. */
export function tasksGateway(options: TasksGatewayOptions): ProcessOptions {
  return {
    workers: options.workers ?? 1,
    file: tasksConfig(options),
    env: { LOG_LEVEL: options.logLevel ?? 'warn' },
  };
}

/** What workers had to say: the primary tells of a store that is gone, too, and of one that is slow for once. */
export function workerLogs(...gateways: readonly GatewayProcesses[]): string[] {
  return gateways.flatMap(({ logs }) => logs.filter((line) => !line.includes('"role":"primary"')));
}
