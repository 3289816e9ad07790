import type { Admission } from './admission.js';
import type { Pool } from './kinds.js';

/** What becomes of a call's demands. */
export type Decision = Admission | Denial;

/** The demands cannot be met, and none of them was taken. */
export interface Denial {
  readonly outcome: 'denied';
  /** The pool that has too little. */
  readonly pool: Pool;
  /**
   * `tooLarge`: more was demanded than the pool's limit, which can never be met. `unknown`: there may be more, but the
   * store that says so cannot be reached.
   */
  readonly reason: 'exhausted' | 'tooLarge' | 'unknown';
  /** Milliseconds until another try may succeed, as far as that is known; 0 where none ever will. */
  readonly retryAfterMs: number;
}

/** The demands are not decided yet. */
export interface Pending {
  readonly outcome: 'pending';
  /** Gives up: nothing is taken, nobody is called back. Does nothing once the decision was told. */
  cancel(): void;
}
