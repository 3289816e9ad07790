import { json } from './answer.js';
import { type AdminRoute, route } from './routes.js';

/** A limit in use, as the primary process knows it. Units: requests, tokens, calls at once, nano-dollars. */
export interface LimitInUse {
  /** `key:team-a:requests` */
  readonly name: string;
  readonly kind: string;
  readonly limit: number;
  /** What this host may use of it. */
  readonly share: number;
  /** Of that, what no worker has. */
  readonly free: number;
  /** What workers that have ended may have used, and will come back. */
  readonly inWindow: number;
  /** What workers have in use, or have used within the last minute; of a budget, nothing. */
  readonly used: number;
  /** What workers have, used or idle, by worker. */
  readonly leased: ReadonlyMap<number, number>;
}

const mostLimits = 1000;

/** Shows the limits that are in use. */
export function limitRoutes(inUse: () => Promise<readonly LimitInUse[]>): readonly AdminRoute[] {
  return [
    route('GET', '/limits', async () => {
      const all = [...(await inUse())].sort((a, b) => (a.name < b.name ? -1 : 1));
      return json({ limits: all.slice(0, mostLimits).map(limitViewOf), complete: all.length <= mostLimits });
    }),
  ];
}

function limitViewOf({ name, kind, limit, share, free, inWindow, used, leased }: LimitInUse): object {
  const atWorkers = [...leased.values()].reduce((sum, amount) => sum + amount, 0);
  return { name, kind, limit, share, used, free, atWorkers, cooling: inWindow };
}
