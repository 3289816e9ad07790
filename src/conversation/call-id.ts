import type { AnswerContext } from './codec.js';

/** What the servers of the responses and of the messages protocol take for the id of a call. */
const legal = /^[A-Za-z0-9_-]{1,64}$/;

/** True for an id that every text protocol takes as it is. */
export function isLegalCallId(id: string): boolean {
  return legal.test(id);
}

/**
 * The id of a call in an answer to a client whose protocol takes any: the upstream's own or, where it gave none, one
 * that is made from the answer's.
 * @param id the upstream's own, empty where it gave none
 * @param call number of the call in the choice
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
