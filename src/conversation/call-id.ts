import type { AnswerContext } from './codec.js';

/** Ids of calls that the servers of the responses and messages protocols accept. */
const legal = /^[A-Za-z0-9_-]{1,64}$/;

/** Returns whether every text protocol accepts an id unchanged. */
export function isLegalCallId(id: string): boolean {
  return legal.test(id);
}

/**
 * Returns the id of a call for a client whose protocol accepts any: the upstream's own or, if it gave none, one derived
 * from the answer's.
 * @param id the upstream's own, or empty
 * @param call index of the call in the choice
 */
export function answerCallId(
  id: string,
  context: Pick<AnswerContext, 'id'>,
  choice: number,
  call: number,
): string {
  if (id !== '') return id;
  return choice === 0 ? `call_${context.id}_${call}` : `call_${context.id}_${choice}_${call}`;
}
