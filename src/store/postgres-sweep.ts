import type { PostgresLink, Statement } from './postgres-link.js';

/** Most rows that one step of a sweep removes. */
const mostSwept = 1000;

/**
 * Removes rows in steps, so that each step is done in time and other calls run in between.
 * @param statement removes at most as many rows as its parameter says, and returns one row for each
 */
export async function sweepInSteps(link: PostgresLink, statement: Statement): Promise<void> {
  let swept = mostSwept;
  while (swept >= mostSwept) swept = (await link.ask(statement, [mostSwept])).length;
}
