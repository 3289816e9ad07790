import { type ReadonlySignal, signal } from '@preact/signals';
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { HistoryView, LiveState } from '../metrics/live-state.js';
import { followLive } from './live.js';
import { addState, type StateWindow } from './rates.js';

/** The state of the page from sign-in to sign-out. */
export interface Session {
  /** Null until the first report of the gateway. */
  readonly state: ReadonlySignal<LiveState | null>;
  /** The states of the last seconds. */
  readonly window: ReadonlySignal<StateWindow>;
  /** The points of the last hour, oldest first. */
  readonly points: ReadonlySignal<readonly HistoryView[]>;
  /** Null while the page is live, else the reason; undefined before the end of the first try. */
  readonly trouble: ReadonlySignal<string | null | undefined>;
  /** State that views keep while they are not shown, by name. */
  readonly kept: Map<string, unknown>;
  /** Stops following the gateway. */
  end(): void;
}

/** Starts to follow the gateway. */
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

/** The session of the component. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error('outside of a session');
  return session;
}

/**
 * State of a view, such as its filters, that is kept until sign-out even while the view is not shown.
 * @param make creates it, once per session
 */
export function useKept<Value>(name: string, make: () => Value): Value {
  const { kept } = useSession();
  if (!kept.has(name)) kept.set(name, make());
  return kept.get(name) as Value;
}
