import { inSlices, type Steps, sortSteps, textInSlices } from '../wire/steps.js';
import { jsonType } from './answer.js';
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
      const limits = await inSlices(firstByName(all));
      const body = textInSlices(texts(limits, all.length <= mostLimits));
      return { status: 200, contentType: jsonType, body };
    }),
  ];
}

function* texts(limits: readonly LimitInUse[], complete: boolean): Generator<string, void, undefined> {
  let before = '{"limits":[';
  for (const limit of limits) {
    yield before + JSON.stringify(limitViewOf(limit));
    before = ',';
  }
  yield `${limits.length === 0 ? before : ''}],"complete":${complete}}\n`;
}

const byName = (a: LimitInUse, b: LimitInUse): number => (a.name < b.name ? -1 : 1);

/** @returns those whose names come first, in order: to sort a hundred thousand for them takes half a second */
function* firstByName(all: readonly LimitInUse[]): Steps<readonly LimitInUse[]> {
  let first: LimitInUse[] = [];
  let last: string | null = null;
  for (const limit of all) {
    yield;
    if (last !== null && limit.name > last) continue;
    first.push(limit);
    if (first.length < 2 * mostLimits) continue;
    first = (yield* sortSteps(first, byName)).slice(0, mostLimits);
    last = first.at(-1)?.name ?? null;
  }
  return (yield* sortSteps(first, byName)).slice(0, mostLimits);
}

function limitViewOf({ name, kind, limit, share, free, inWindow, used, leased }: LimitInUse): object {
  const atWorkers = [...leased.values()].reduce((sum, amount) => sum + amount, 0);
  return { name, kind, limit, share, used, free, atWorkers, cooling: inWindow };
}
