import { performance } from 'node:perf_hooks';
import type { Call } from './call.js';

/** Times of fewer microseconds have their texts kept: those of most steps. */
const keptMicros = 2000;

/** Writes the time of one step. */
class Step {
  readonly #name: string;
  readonly #end: string;
  readonly #kept: string[] = Array.from({ length: keptMicros }, () => '');

  /** @param end what follows the time */
  constructor(name: string, end: string) {
    this.#name = name;
    this.#end = end;
  }

  /** @returns `name;dur=` and the milliseconds with three decimals, which no client needs finer */
  text(ms: number): string {
    const micros = Math.max(0, Math.round(ms * 1000));
    const kept = this.#kept[micros];
    if (kept === undefined) return this.#write(micros);
    return kept === '' ? this.#keep(micros) : kept;
  }

  #keep(micros: number): string {
    const text = this.#write(micros);
    this.#kept[micros] = text;
    return text;
  }

  /** Joined, since a string that is put together with `+` is copied from its parts each time it is sent. */
  #write(micros: number): string {
    return [this.#name, ';dur=', (micros / 1000).toFixed(3), this.#end].join('');
  }
}

const auth = new Step('auth', ', ');
const parse = new Step('parse', ', ');
const queue = new Step('queue', ', ');
const upstream = new Step('upstream', ', ');
const own = new Step('own', '');

/**
 * The `server-timing` header as a line with CRLF before it: how long authentication, parsing with validation,
 * the wait for a connection, and the upstream's first byte took, and what the gateway itself has cost so far.
 * Steps that have not happened are left out. Notes the moment as the call's end, for the answers that end with it.
 */
export function timingLine(call: Call): string {
  const now = performance.now();
  call.endedAt = now;
  let line = '\r\nserver-timing: ';
  if (call.authenticatedAt > 0) line += auth.text(call.authenticatedAt - call.startedAt);
  if (call.validatedAt > 0) line += parse.text(call.validatedAt - call.bodyAt);
  if (call.sentAt > 0) {
    line += queue.text(call.sentAt - call.validatedAt);
    if (call.answeredAt > 0) line += upstream.text(call.answeredAt - call.sentAt);
  }
  const waitedForBody = call.bodyAt > 0 ? call.bodyAt - call.authenticatedAt : 0;
  // From validation to the upstream's head, or to now where none came, the gateway waited for others.
  const handedOver =
    call.validatedAt > 0 ? (call.answeredAt > 0 ? call.answeredAt : now) - call.validatedAt : 0;
  return line + own.text(now - call.startedAt - waitedForBody - handedOver);
}
