import { chargedUsage, noCharges } from '../../conversation/stream-rules.js';
import type { Usage } from '../../conversation/usage.js';
import { parseJson } from '../../wire/json.js';
import { withoutMembers } from '../../wire/json-skip.js';
import { usageOfAnswer } from './answer/usage.js';
import { noteCharges } from './charges.js';

/** How a response in the background ends: https://platform.openai.com/docs/api-reference/responses/object */
const ends = ['completed', 'incomplete', 'failed', 'cancelled'] as const;

/** How a response has ended, and what it has used where it says so. */
export interface ResponseEnd {
  readonly status: (typeof ends)[number];
  readonly usage: Usage | null;
}

const ofStatus = new Set(['status']);

/** @param response whole, as JSON text @returns null for one that goes on, and for what is none */
export function endOfResponse(response: Buffer): ResponseEnd | null {
  const text = withoutMembers(response, ofStatus)?.taken.get('status');
  const said = text === undefined ? null : parseJson(text);
  const status = ends.find((each) => each === said);
  if (status === undefined) return null;
  const usage = usageOfAnswer(response);
  if (usage === null) return { status, usage };
  const charges = noCharges();
  noteCharges(response, charges);
  return { status, usage: chargedUsage(usage, charges) };
}
