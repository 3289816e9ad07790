import type { BodyPool } from './body-pool.js';
import type { TendList } from './upkeep.js';

/** What the exchanges of one server share. */
export interface ExchangeHost {
  /** Exchanges whose client has not sent all of its body, or does not read at the moment. */
  readonly tended: TendList;
  /** Answers carry `connection: close`. */
  draining: boolean;
  /** Exchanges that have not ended. */
  open: number;
  /** Exchanges since the start. */
  served: number;
  onIdle: (() => void) | null;
  readonly bodies: BodyPool;
}
