/** A reservation of a part of a budget. Amounts are whole numbers. */
export interface Reservation {
  /** The whole budget. */
  readonly limit: number;
  /** The smallest useful amount. */
  readonly least: number;
  readonly want: number;
  /** Already used, so it is taken even beyond the limit. Negative if it was taken for use before, and is returned. */
  readonly owed: number;
  /** A unique name of what is owed. If it is reported again, it is not taken again. Null for what is reported once. */
  readonly debt: string | null;
  /** How long the account is kept from now on, in milliseconds. */
  readonly ttlMs: number;
}

/**
 * Number of names of debts that an account remembers, the last ones. It bounds how many others may be reported between
 * a report that was interrupted by the end of its process, and its repetition.
 */
export const mostDebts = 128;

/**
 * The accounts of budgets in a store. Each holds how much its hosts have reserved. Reserved amounts may be spent
 * without asking again, so they count as spent until they are returned. A host that ends without returning them has
 * spent them.
 */
export interface BudgetAccounts {
  /**
   * Reserves as much of what is wanted as there is, or nothing if that is less than `least`. What is owed is taken in
   * any case.
   * @returns how much was reserved, without what was owed, as soon as it is durable
   * @throws {GatewayError} of the store. It is then unknown whether the amount was reserved; at worst nobody will spend
   * it
   */
  reserve(account: string, reservation: Reservation): Promise<number>;
  /**
   * Returns what was reserved and not spent.
   * @throws {GatewayError} as `reserve` does
   */
  giveBack(account: string, amount: number, ttlMs: number): Promise<void>;
  /**
   * Returns how much of a budget its hosts have reserved, and so may have spent.
   * @throws {GatewayError} of the store, and for an account that cannot be read
   */
  reservedOf(account: string): Promise<number>;
}
