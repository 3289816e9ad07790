import type { Call } from './call.js';

const thousandths: string[] = [];
for (let i = 0; i < 1000; i++) thousandths.push(`.${String(i).padStart(3, '0')}`);

/** Milliseconds with three decimals; `toFixed` would cost as much as the rest of the header. */
function milliseconds(ms: number): string {
  const micros = Math.max(0, Math.round(ms * 1000));
  return Math.floor(micros / 1000) + (thousandths[micros % 1000] as string);
}

/**
 * The `server-timing` header as a line with CRLF before it: how long authentication, parsing with validation,
 * the wait for a connection, and the upstream's first byte took, and what the gateway itself has cost so far.
 * Steps that have not happened are left out. Notes the moment as the call's end, for the answers that end with it.
 */
export function timingLine(call: Call): string {
  const now = performance.now();
  call.endedAt = now;
  let line = '\r\nserver-timing: ';
  if (call.authenticatedAt > 0) line += `auth;dur=${milliseconds(call.authenticatedAt - call.startedAt)}, `;
  if (call.validatedAt > 0) line += `parse;dur=${milliseconds(call.validatedAt - call.bodyAt)}, `;
  if (call.sentAt > 0) {
    line += `queue;dur=${milliseconds(call.sentAt - call.validatedAt)}, `;
    if (call.answeredAt > 0) line += `upstream;dur=${milliseconds(call.answeredAt - call.sentAt)}, `;
  }
  const waitedForBody = call.bodyAt > 0 ? call.bodyAt - call.authenticatedAt : 0;
  // From validation to the upstream's head, or to now where none came, the gateway waited for others.
  const handedOver =
    call.validatedAt > 0 ? (call.answeredAt > 0 ? call.answeredAt : now) - call.validatedAt : 0;
  return `${line}own;dur=${milliseconds(now - call.startedAt - waitedForBody - handedOver)}`;
}
