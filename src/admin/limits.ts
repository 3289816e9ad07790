import { inSlices, type Steps, sortSteps, textInSlices } from '../wire/steps.js';
import { jsonType } from './answer.js';
import { type AdminRoute, route } from './routes.js';

/** A limit in use, as the primary knows it. Units are requests, tokens, concurrent calls or nano-dollars. */
export interface LimitInUse {
  /** Such as `key:team-a:requests`. */
  readonly name: string;
  readonly kind: string;
  readonly limit: number;
  /** Part of the limit that this host may use. */
  readonly share: number;
  /** Part of the share that no worker holds. */
  readonly free: number;
  /** Units that workers which have ended may have used, and that will be free again. */
  readonly inWindow: number;
  /** Units that workers use, or have used within the last minute. 0 for a budget. */
  readonly used: number;
  /** Units that workers hold, used or idle, by worker. */
  readonly leased: ReadonlyMap<number, number>;
}

const mostLimits = 1000;

/** Routes `GET /limits`, the limits in use. */
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

/** Selects the first limits by name, in order. Sorting all of 100,000 would take half a second. */
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
