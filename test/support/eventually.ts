import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises';
import { inspect } from 'node:util';

/** How a test waits, where it says so. */
interface Wait<Value> {
  /** What is waited for, for the error; the text of `look` unless given. */
  readonly what?: string;
  /** Whether a value is the one; unless given, any but false, null and undefined. */
  readonly fits?: (value: Value) => boolean;
  /** After so long it never comes: long enough for a machine that others keep busy. */
  readonly withinMs?: number;
  /**
   * Milliseconds from one look to the next. Unless given, the first looks follow at each turn of the event loop, for
   * what this process does itself, and later ones each millisecond, which leaves the processor to others.
   */
  readonly everyMs?: number;
}

const patienceMs = 60_000;
const quickLooks = 50;

/**
 * Looks again and again until there is what is waited for. What `look` throws ends the wait.
 * @returns it
 * @throws Error that says what never came, and what was seen last
 */
export async function eventually<Value>(
  look: () => Value | Promise<Value>,
  wait: Wait<Value> = {},
): Promise<NonNullable<Value>> {
  const { what = `${look}`, fits = isThere, withinMs = patienceMs } = wait;
  const value = await seenWithin(look, { ...wait, fits, withinMs });
  if (fits(value)) return value as NonNullable<Value>;
  throw new Error(`not within ${withinMs} ms: ${what}; seen last: ${inspect(value)}`);
}

/**
 * Waits for a promise that may never resolve.
 * @returns what it resolves to
 * @throws Error that says what never came
 */
export async function soon<Value>(promise: Promise<Value>, what: string): Promise<Value> {
  const stop = new AbortController();
  const late = async (): Promise<never> => {
    await pause(patienceMs, null, { signal: stop.signal });
    throw new Error(`not within ${patienceMs} ms: ${what}`);
  };
  try {
    return await Promise.race([promise, late()]);
  } finally {
    stop.abort();
  }
}

/** Looks until a value fits, for so long. @returns the last value, whether it fits or not: the test says */
export async function seenWithin<Value>(
  look: () => Value | Promise<Value>,
  {
    fits,
    withinMs,
    everyMs,
  }: Wait<Value> & { readonly fits: (value: Value) => boolean; readonly withinMs: number },
): Promise<Value> {
  const deadline = performance.now() + withinMs;
  for (let looks = 1; ; looks++) {
    const value = await look();
    if (fits(value) || performance.now() > deadline) return value;
    await (everyMs === undefined && looks < quickLooks ? turn() : pause(everyMs ?? 1));
  }
}

/**
 * Waits until a number stays what it is for so many looks.
 * @returns it
 */
export async function settled(
  read: () => number,
  { looks, everyMs }: { readonly looks: number; readonly everyMs: number },
): Promise<number> {
  let last = Number.NaN;
  let same = 0;
  const stays = (): boolean => {
    const now = read();
    same = now === last ? same + 1 : 0;
    last = now;
    return same >= looks;
  };
  await eventually(stays, { what: 'a number that stays what it is', everyMs });
  return last;
}

function isThere(value: unknown): boolean {
  return value !== false && value !== null && value !== undefined;
}
