import { textFormatType } from '../metrics/exposition.js';
import { json } from './answer.js';
import { type ConfigDesk, configRoutes } from './config.js';
import { consoleRoutes, liveRoutes } from './console-live.js';
import { type KeyDesk, keyRoutes } from './keys.js';
import { type LimitInUse, limitRoutes } from './limits.js';
import type { LiveStream } from './live-stream.js';
import { type PlaygroundSources, playgroundRoutes } from './playground.js';
import { type AdminRoute, route } from './routes.js';
import { type TaskStore, taskRoutes } from './tasks.js';
import { type UsageLedger, usageRoutes } from './usage.js';

/** What a reload has done. */
export interface ReloadOutcome {
  /** `partly reloaded`: the new config is in force, but not all workers could take it over. */
  readonly status: 'reloaded' | 'partly reloaded' | 'refused';
  /** Of a refused config with their paths in the file. Empty if all workers have taken it over. */
  readonly problems: readonly string[];
}

/** Data and functions of the operators' listener. */
export interface AdminSources {
  /** @returns null while requests are served, or why they are not */
  notReady(): string | null;
  status(): Promise<object>;
  /** Metrics in the text format of Prometheus. */
  metrics(): Promise<string | AsyncIterable<string>>;
  reload(): Promise<ReloadOutcome>;
  openApi(): Promise<object>;
  readonly config: ConfigDesk;
  readonly keys: KeyDesk;
  limits(): Promise<readonly LimitInUse[]>;
  readonly playground: PlaygroundSources;
  /** Store of usage and video tasks. */
  readonly store: UsageLedger & TaskStore;
  /** Stream of events for the console. */
  readonly live: LiveStream;
}

export function adminRoutes(sources: AdminSources): readonly AdminRoute[] {
  return [
    // For load balancers and process managers, which have no token. These routes reveal nothing else.
    { method: 'GET', path: '/health', access: 'open', handle: () => json({ status: 'ok' }) },
    {
      method: 'GET',
      path: '/ready',
      access: 'open',
      handle: () => {
        const reason = sources.notReady();
        return reason === null ? json({ status: 'ready' }) : json({ status: 'not ready', reason }, 503);
      },
    },
    {
      method: 'GET',
      path: '/metrics',
      access: 'metrics',
      handle: async () => ({ status: 200, contentType: textFormatType, body: await sources.metrics() }),
    },
    route('GET', '/status', async () => json(await sources.status())),
    route('GET', '/openapi.json', async () => json(await sources.openApi())),
    route('POST', '/reload', async () => {
      const { status, problems } = await sources.reload();
      return status === 'reloaded' ? json({ status }) : json({ status, problems }, 422);
    }),
    ...consoleRoutes(),
    ...configRoutes(sources.config),
    ...keyRoutes(sources.keys),
    ...usageRoutes(sources.store),
    ...taskRoutes(sources.store),
    ...limitRoutes(() => sources.limits()),
    ...liveRoutes(sources.live),
    ...playgroundRoutes(sources.playground),
  ];
}
