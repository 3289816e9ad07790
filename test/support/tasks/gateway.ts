import type { GatewayProcesses, ProcessOptions } from '../gateway.js';
import { sharedSecret } from '../gateway-config.js';
import { loadKeyHash } from '../load/request.js';

/** Output of `model-gateway key hash sk-other`: a key of another group than the load's. */
export const otherKey = 'sk-other';
const otherKeyHash = 'sha256:3dcad332ca200026cb05197382714c13fbe0737dee3d327981a235067882d2d3';

interface TasksGatewayOptions {
  /** Base URL of the upstream for an SDK, with `/v1`. */
  readonly upstreamUrl: string;
  /** That of the upstream for uploads. Default: the same. */
  readonly earsUrl?: string;
  /** `store` of the config. */
  readonly store: Readonly<Record<string, unknown>>;
  readonly workers?: number;
  /** Merged into the config. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** Default: `warn`, so that the log has no line for each request. */
  readonly logLevel?: string;
}

/**
 * Makes a config in which an upstream serves the model `m` in video, `linked` in a video format whose results are
 * URLs, `talk` in chat and `ears` in audio.
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

/** Starts a gateway by its command line, for video tasks. */
export function tasksGateway(options: TasksGatewayOptions): ProcessOptions {
  return {
    workers: options.workers ?? 1,
    file: tasksConfig(options),
    env: { LOG_LEVEL: options.logLevel ?? 'warn' },
  };
}

/** Returns the warnings of workers. The primary also warns of a store that is gone, or slow once. */
export function workerLogs(...gateways: readonly GatewayProcesses[]): string[] {
  return gateways.flatMap(({ logs }) => logs.filter((line) => !line.includes('"role":"primary"')));
}
