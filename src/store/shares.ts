/**
 * How several hosts divide the units of limits among them. Each host has a share of each pool that it uses, and all
 * shares of a pool together are never more than its limit, unless hosts do not agree on that.
 */

/** What a host says of one pool. Amounts are whole numbers, 0 or more. */
export interface PoolStatement {
  readonly pool: string;
  /** What all hosts may use together. */
  readonly limit: number;
  /** The host's share as it knows it: this is its share from now on, whatever was remembered. */
  readonly held: number;
  /** Units that it lacks at this moment, and the least of them that would help anybody. */
  readonly need: number;
  readonly least: number;
  /** Units that it would soon use: `need` or more. It gets the rest only where there is plenty. */
  readonly want: number;
  /** Milliseconds for which its share stays its own after its deadline: others must not use what it may have used. */
  readonly blockMs: number;
}

/** What a host says at a time. Its deadline begins anew with it. */
export interface HostStatement {
  /** Unique among all hosts at all times; no spaces. */
  readonly host: string;
  /** Above that of the host's statement before; one that arrives after a later one is passed over. */
  readonly number: number;
  /** Milliseconds from now on in which it must be heard of again. */
  readonly leaseMs: number;
  /** Each pool once. */
  readonly pools: readonly PoolStatement[];
}

/** What becomes of one pool of a statement. */
export interface ShareAnswer {
  /** Units that the host's share has grown by. */
  readonly granted: number;
  /** Units that are in no share now; below zero where the shares are more than the limit. */
  readonly left: number;
}

export interface HostAnswer {
  /** Number of the host's last statement that is remembered; less than that where something was forgotten. */
  readonly seen: number;
  /** In the order of the statement. */
  readonly pools: readonly ShareAnswer[];
  /** Pools of which other hosts lacked units within the last second, or found that all have too many. */
  readonly wanted: readonly string[];
}

/** Where hosts divide limits among them. */
export interface ShareStore {
  /**
   * Takes a host's statement in one step.
   * @throws {GatewayError} of kind `store_unavailable` when nobody knows whether it was taken
   */
  exchange(statement: HostStatement): Promise<HostAnswer>;
  /** Ends what is under way. */
  close(): Promise<void>;
}
