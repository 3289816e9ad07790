/** What is wanted of a budget. Amounts are whole numbers. */
export interface Reservation {
  /** What the budget is in all. */
  readonly limit: number;
  /** Less than this helps nobody. */
  readonly least: number;
  readonly want: number;
  /** Used already: it is taken even beyond the limit. Below zero: it was taken for use before, and is given back. */
  readonly owed: number;
  /** A name of what is owed that nothing else has: told again, it is not taken again. Null for what is told once. */
  readonly debt: string | null;
  /** How long the account is kept from now on, in milliseconds. */
  readonly ttlMs: number;
}

/**
 * Names of what was owed that an account remembers, the last ones: as many as others may tell of until somebody tells
 * anew what a process was killed over.
 */
export const mostDebts = 128;

/**
 * The accounts of budgets in a store: of each, how much its hosts have reserved. What is reserved may be spent without
 * asking again, so it counts as spent until it is given back: a host that ends without a word has spent it.
 */
export interface BudgetAccounts {
  /**
   * Reserves as much of what is wanted as there is, and nothing where that is too little, beside what is owed.
   * @returns how much was reserved, without what was owed, once that is durable
   * @throws {GatewayError} of the store, and then nobody knows whether it was done; at worst nobody will spend it
   */
  reserve(account: string, reservation: Reservation): Promise<number>;
  /** Gives back what was reserved and not spent. @throws {GatewayError} as `reserve` does */
  giveBack(account: string, amount: number, ttlMs: number): Promise<void>;
  /**
   * How much of a budget its hosts have reserved, and so may have spent.
   * @throws {GatewayError} of the store, and for an account that cannot be read
   */
  reservedOf(account: string): Promise<number>;
}
