import type { PostgresLink, Statement } from './postgres-link.js';

/** What one step of a sweep removes at most. */
const mostSwept = 1000;

/**
 * Removes step by step, so that each is done in time however much there is, and others have their turn in between.
 * @param statement removes at most as many rows as its parameter says, and returns one for each
 */
export async function sweepInSteps(link: PostgresLink, statement: Statement): Promise<void> {
  let swept = mostSwept;
  while (swept >= mostSwept) swept = (await link.ask(statement, [mostSwept])).length;
}
