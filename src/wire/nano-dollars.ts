/** What a dollar is in the units in which money is counted: whole nano-dollars, which add up without rounding. */
export const nanosPerDollar = 1e9;
