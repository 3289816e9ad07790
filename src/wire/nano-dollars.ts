/** Nano-dollars per dollar. Money is counted in whole nano-dollars, which add up without rounding. */
export const nanosPerDollar = 1e9;
