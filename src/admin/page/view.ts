import type { HistoryView, LiveState } from '../live-state.js';

/** One part of the page, made when it is first shown. */
export interface View {
  readonly element: HTMLElement;
  /** It is in sight from now on; until `hide`, live updates are for it. */
  show?(): void;
  hide?(): void;
  onState?(state: LiveState): void;
  /** The points of the last hour, the oldest first, whenever there is a new one. */
  onHistory?(points: readonly HistoryView[]): void;
}

/** How a part is found and made. */
export interface ViewEntry {
  /** After `#` in the address. */
  readonly name: string;
  readonly title: string;
  create(): View;
}
