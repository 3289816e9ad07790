/**
 * How several hosts divide the units of limits among them. Each host has a share of each pool that it uses. The shares
 * of a pool never exceed its limit, unless hosts have different limits.
 */

/** A host's statement about one pool. Amounts are whole numbers, 0 or more. */
export interface PoolStatement {
  readonly pool: string;
  /** What all hosts together may use. */
  readonly limit: number;
  /** The host's share as the host knows it. It replaces what the store has. */
  readonly held: number;
  /** Units that the host lacks now, and the smallest useful amount. */
  readonly need: number;
  readonly least: number;
  /** Units that it would soon use: `need` or more. What exceeds `need` is only granted if there is plenty. */
  readonly want: number;
  /**
   * How long the share remains reserved after the host's deadline, in milliseconds. Other hosts must not use what it
   * may have used.
   */
  readonly blockMs: number;
}

/** A statement of a host. It renews the host's deadline. */
export interface HostStatement {
  /** Unique among all hosts at all times. Without spaces. */
  readonly host: string;
  /** Above that of the host's previous statement. A statement that arrives after a later one is ignored. */
  readonly number: number;
  /** Milliseconds from now on within which the host must send the next statement. */
  readonly leaseMs: number;
  /** Each pool once. */
  readonly pools: readonly PoolStatement[];
}

/** The result for one pool of a statement. */
export interface ShareAnswer {
  /** Units that were added to the host's share. */
  readonly granted: number;
  /** Units that are in no share now. Negative if the shares exceed the limit. */
  readonly left: number;
}

export interface HostAnswer {
  /**
   * Number of the host's last statement that the store remembers. It is lower if the store has forgotten statements.
   */
  readonly seen: number;
  /** In the order of the statement. */
  readonly pools: readonly ShareAnswer[];
  /** Pools of which other hosts lacked units within the last second, or for which the shares exceeded the limit. */
  readonly wanted: readonly string[];
}

/** The store by which hosts divide limits. */
export interface ShareStore {
  /**
   * Handles a host's statement atomically.
   * @throws {GatewayError} of kind `store_unavailable` if it is unknown whether it was handled
   */
  exchange(statement: HostStatement): Promise<HostAnswer>;
  /** Ends what is in flight. */
  close(): Promise<void>;
}
