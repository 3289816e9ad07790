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
      const all = await inUse();
      return json({ limits: firstByName(all).map(limitViewOf), complete: all.length <= mostLimits });
    }),
  ];
}

/** @returns those whose names come first, in order: to sort a hundred thousand for them takes half a second */
function firstByName(all: readonly LimitInUse[]): readonly LimitInUse[] {
  let first: LimitInUse[] = [];
  let last: string | null = null;
  const cut = (): void => {
    first = first.sort((a, b) => (a.name < b.name ? -1 : 1)).slice(0, mostLimits);
  };
  for (const limit of all) {
    if (last !== null && limit.name > last) continue;
    first.push(limit);
    if (first.length < 2 * mostLimits) continue;
    cut();
    last = first.at(-1)?.name ?? null;
  }
  cut();
  return first;
}

function limitViewOf({ name, kind, limit, share, free, inWindow, used, leased }: LimitInUse): object {
  const atWorkers = [...leased.values()].reduce((sum, amount) => sum + amount, 0);
  return { name, kind, limit, share, used, free, atWorkers, cooling: inWindow };
}
