import { textProtocols } from '../../src/conversation/request.js';
import { type GatewayProcesses, startGateway, untilKilled } from '../support/gateway.js';
import { loadKeyHash } from '../support/load/request.js';
import { type LoadUpstream, startLoadUpstream } from '../support/load/upstream.js';

/** The gateway by its command line and its upstream, each in separate processes. */
export interface Stage {
  readonly gateway: GatewayProcesses;
  readonly upstream: LoadUpstream;
  /** The worker of a stage with one. */
  readonly worker: number;
}

interface StageOptions {
  readonly workers?: number;
  /** Default: `warn`, so that the log has no line for each request. */
  readonly logLevel?: string;
  /** Makes parts of the config from the upstream's base URL. They are merged into it. */
  readonly config?: (upstreamUrl: string) => Readonly<Record<string, unknown>>;
}

const standing = new Set<Stage>();

/** Makes a config in which the load upstream, which speaks chat, serves these models in every text protocol. */
export function stageConfig(upstreamUrl: string, models: readonly string[] = ['m']) {
  const model = {
    protocols: textProtocols,
    targets: [{ upstream: 'load', model: 'm' }],
  };
  return {
    upstreams: {
      load: { kind: 'chat', baseUrl: upstreamUrl, apiKeys: ['upstream-key'], maxConnections: 8192 },
    },
    models: Object.fromEntries(models.map((name) => [name, model])),
    groups: { default: { models: ['*'] } },
    keys: [{ id: 'load', hash: loadKeyHash, groups: ['default'] }],
  };
}

/** Starts a gateway and an upstream for `play`, and ends both afterwards, whatever happens. */
export async function onStage<T>(options: StageOptions, play: (stage: Stage) => Promise<T>): Promise<T> {
  const upstream = await startLoadUpstream();
  let stage: Stage | null = null;
  try {
    const gateway = await startGateway(untilKilled, {
      workers: options.workers ?? 1,
      file: { ...stageConfig(upstream.url), ...options.config?.(upstream.url) },
      env: { LOG_LEVEL: options.logLevel ?? 'warn' },
    });
    stage = { gateway, upstream, worker: gateway.workerPids()[0] ?? 0 };
    standing.add(stage);
    return await play(stage);
  } finally {
    if (stage !== null) await strike(stage);
    upstream.stop();
  }
}

/** Ends what abandoned plays have left. */
export async function strikeAll(): Promise<void> {
  await Promise.all([...standing].map(strike));
}

async function strike(stage: Stage): Promise<void> {
  standing.delete(stage);
  stage.upstream.stop();
  await stage.gateway.end();
}
