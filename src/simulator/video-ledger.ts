const mostNames = 10_000;

/** What one simulator counts and remembers of tasks; the tasks themselves are in their ids. */
export interface VideoLedger {
  /** How tasks go that do not ask for something else. */
  readonly queuedMs: number;
  readonly runningMs: number;
  /** Tasks that were really made. */
  made: number;
  /** Questions how a task is. */
  polls: number;
  /** Ids of tasks by the key that the client sent along so that a repeated request makes no second one. */
  readonly byKey: Map<string, KeyedTask>;
  /** Ids of tasks by the client's own names for them. */
  readonly byExternalId: Map<string, string>;
}

interface KeyedTask {
  readonly id: string;
  counted: boolean;
}

/** A ledger in which nothing happened yet. */
export function newLedger(pace: { readonly queuedMs: number; readonly runningMs: number }): VideoLedger {
  return { ...pace, made: 0, polls: 0, byKey: new Map(), byExternalId: new Map() };
}

/** The task of a key; the first request with the key makes it. */
export function taskOfKey(ledger: VideoLedger, key: string, make: () => string): KeyedTask {
  const known = ledger.byKey.get(key);
  if (known !== undefined) {
    return known;
  }
  const made = { id: make(), counted: false };
  remember(ledger.byKey, key, made);
  return made;
}

/** Keeps what a task is called by its maker. */
export function rememberExternalId(ledger: VideoLedger, externalId: string, id: string): void {
  remember(ledger.byExternalId, externalId, id);
}

function remember<Value>(map: Map<string, Value>, name: string, value: Value): void {
  map.set(name, value);
  if (map.size > mostNames) {
    // A map gives its names in the order in which they came.
    map.delete(map.keys().next().value ?? '');
  }
}
