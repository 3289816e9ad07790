import { type ReadonlySignal, signal } from '@preact/signals';
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { HistoryView, LiveState } from '../admin/live-state.js';
import { followLive } from './live.js';
import { addState, type StateWindow } from './rates.js';

/** What the page knows from a sign-in to the sign-out. */
export interface Session {
  /** Null until the gateway has told it. */
  readonly state: ReadonlySignal<LiveState | null>;
  /** The states of the last seconds. */
  readonly window: ReadonlySignal<StateWindow>;
  /** The points of the last hour, the oldest first. */
  readonly points: ReadonlySignal<readonly HistoryView[]>;
  /** Null while the page is live, or why it is not; undefined before the first try has ended. */
  readonly trouble: ReadonlySignal<string | null | undefined>;
  /** What views keep while they are out of sight, by name. */
  readonly kept: Map<string, unknown>;
  /** Stops following the gateway. */
  end(): void;
}

/** Begins to follow the gateway. */
export function startSession(): Session {
  const state = signal<LiveState | null>(null);
  const window = signal<StateWindow>([]);
  const points = signal<readonly HistoryView[]>([]);
  const trouble = signal<string | null | undefined>(undefined);
  const end = followLive({
    onState(next) {
      window.value = addState(window.value, next);
      state.value = next;
    },
    onHistory(next) {
      points.value = next;
    },
    onConnection(reason) {
      trouble.value = reason;
    },
  });
  return { state, window, points, trouble, kept: new Map(), end };
}

export const SessionContext = createContext<Session | null>(null);

/** The session that a component is shown in. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error('outside of a session');
  return session;
}

/**
 * What a view keeps until the sign-out, whether or not it is in sight: its filters, say.
 * @param make makes it, once a session
 */
export function useKept<Value>(name: string, make: () => Value): Value {
  const { kept } = useSession();
  if (!kept.has(name)) kept.set(name, make());
  return kept.get(name) as Value;
}
