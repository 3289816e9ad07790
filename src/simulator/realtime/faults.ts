import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type Directive,
  directiveError,
  directiveOption,
  directiveValue,
  findDirective,
} from '../faults/directives.js';
import { type Pace, pacing } from '../http/pace.js';
import type { SocketLine } from '../sockets/line.js';
import { failure, inProgress, responseObject, type Turn, turnEvents } from './turn.js';

/*
 * Directives of a realtime turn, at the start of the last user text: `[[fault:NAME=VALUE option=…]] text`. They act when the
 * turn is requested. `after=N` counts the server's events of the turn, of which `response.created` is the first. Without it
 * they act immediately, and `flood` and `big` after the fourth event, where deltas may begin. In a turn with fewer events they
 * act at its end. `times=N` is as in `faults/faults.ts`.
 *
 * | directive                                      | what the client gets                                                 |
 * |------------------------------------------------|----------------------------------------------------------------------|
 * | `latency=MS`                                   | the turn after MS milliseconds instead of the usual delay            |
 * | `rate=N`                                       | N tokens a second; 0 for no pacing                                   |
 * | `close=CODE reason=WORD after=N`               | a close frame with this code (1000) and reason (none)                |
 * | `reset after=N`                                | RST                                                                  |
 * | `truncate after=N`                             | FIN inside a frame                                                   |
 * | `hang after=N`                                 | silence, whatever the client sends; pings are answered               |
 * | `silent=SECONDS after=N`                       | a pause (1), then the rest                                           |
 * | `error-event after=N`                          | an `error` event and the turn's end without `response.done`;         |
 * |                                                | `error-event=failed`: `response.done` of a failed response           |
 * | `flood=MEGABYTES event-bytes=B binary after=N` | MEGABYTES (1) of text deltas, or binary messages, of B bytes (65536) |
 * |                                                | each, unpaced, then the rest                                         |
 * | `big=BYTES binary after=N`                     | one text delta, or binary message, of BYTES (1048576) bytes in total |
 * | `echo after=N`                                 | the turn, and then every message of the client unchanged             |
 * | `long`, `args-at-once`, `zero-args`, `refuse`  | as in `faults/faults.ts`                                             |
 *
 * Before the upgrade, the header `x-simulator-fault` has the directives of `faults/faults.ts`: `status=429 retry-after=1`,
 * `reset`, `hang`, `bad-head` and so on refuse it; `latency` and `rate` do not. Gateways do not pass that header on, so model
 * names in the query stand for some of them: `refuse-STATUS`, `hang`, `reset`, and `echo` for a session that only echoes.
 */

/** The interface of a turn for its directives. */
export interface Stage {
  readonly turn: Turn;
  readonly line: SocketLine;
  emit(type: string, members: object): void;
  /** The text of an event with the next id. */
  worded(type: string, members: object): string;
  /** Ignores the client's messages from now on. */
  mute(): void;
  echo(): void;
}

/** An action within a turn, which returns whether the turn continues. */
interface Act {
  readonly after: number;
  run(stage: Stage): boolean | Promise<boolean>;
}

const eventsBeforeContent = 4;
const messagesInARow = 16;
const maxBytes = 64 * 1024 * 1024;
const wordsOfAnswers = ['latency', 'rate', 'long', 'args-at-once', 'zero-args', 'refuse'];

const acts: Readonly<Record<string, (asked: Directive) => Act['run']>> = {
  close: (asked) => {
    const code = directiveValue(asked, 'code', 1000);
    if (
      !((code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code)) || (code >= 3000 && code < 5000))
    ) {
      throw directiveError(`"${asked.source}" asks for a code that a close frame cannot have.`);
    }
    return ({ line }) => {
      line.close(code, asked.options.get('reason') ?? '');
      return false;
    };
  },
  reset: () => (stage) => {
    stage.mute();
    stage.line.reset();
    return false;
  },
  truncate: () => (stage) => {
    stage.mute();
    stage.line.cut();
    return false;
  },
  hang: () => async (stage) => {
    stage.mute();
    await stage.line.wait('end');
    return false;
  },
  silent: (asked) => {
    const ms = directiveValue(asked, 'seconds', 1) * 1000;
    return async ({ line }) => {
      await line.wait(ms);
      return true;
    };
  },
  'error-event': (asked) => (stage) => {
    if (asked.value === 'failed') {
      const details = { type: 'failed', error: failure };
      const response = responseObject(stage.turn, { ...inProgress, status: 'failed', details });
      stage.emit('response.done', { response });
    } else {
      stage.emit('error', { error: { ...failure, param: null, event_id: null } });
    }
    return false;
  },
  flood,
  big: (asked) => {
    const bytes = bounded(asked, directiveValue(asked, 'bytes', 1024 * 1024));
    const binary = asked.options.has('binary');
    return (stage) => {
      stage.line.send(binary ? Buffer.alloc(bytes, 'x') : delta(stage, bytes), binary);
      return true;
    };
  },
  echo: () => (stage) => {
    stage.echo();
    return true;
  },
};

/**
 * Converts the directives of a turn to actions within it.
 * @throws RequestError for an unknown directive or an invalid value
 */
export function readActs(directives: readonly Directive[]): readonly Act[] {
  return directives.flatMap((asked) => {
    const { name } = asked;
    if (wordsOfAnswers.includes(name)) {
      return [];
    }
    const act = Object.hasOwn(acts, name) ? acts[name] : undefined;
    if (act === undefined) {
      const known = [...Object.keys(acts), ...wordsOfAnswers].join(', ');
      throw directiveError(`The simulator knows no directive "${name}" here. Known are: ${known}.`);
    }
    const usual = name === 'flood' || name === 'big' ? eventsBeforeContent : 0;
    return [{ after: directiveOption(asked, 'after', usual), run: act(asked) }];
  });
}

/** The number of the directive with this name, or the fallback. */
export function wishedNumber(directives: readonly Directive[], name: string, fallback: number): number {
  const asked = findDirective(directives, name);
  return asked === undefined ? fallback : directiveValue(asked, name, fallback);
}

function flood(asked: Directive): Act['run'] {
  const total = Math.round(directiveValue(asked, 'megabytes', 1) * 1_000_000);
  const size = bounded(asked, Math.max(1, directiveOption(asked, 'event-bytes', 64 * 1024)));
  const binary = asked.options.has('binary');
  return async (stage) => {
    const { line, turn } = stage;
    const whole = Buffer.alloc(size, 'x');
    let sent = 0;
    for (let left = total; left > 0 && !line.closed && !turn.cancelled; left -= size) {
      if (binary) {
        line.send(left < size ? whole.subarray(0, left) : whole, true);
      } else {
        line.send(delta(stage, size));
      }
      sent += 1;
      if (line.isFull) {
        await line.wait('drain');
      } else if (sent % messagesInARow === 0) {
        // With a fast reader, this loop would otherwise never read the client's messages.
        await nextTurn();
      }
    }
    return true;
  };
}

/** A text delta of this many bytes in total, or the fewest possible. */
function delta({ turn, worded }: Stage, bytes: number): string {
  const empty = worded(`${turn.dialect.textEvent}.delta`, {
    response_id: turn.id,
    item_id: 'item_flood',
    output_index: 0,
    content_index: 0,
    delta: '',
  });
  return `${empty.slice(0, -2)}${'x'.repeat(Math.max(0, bytes - empty.length))}"}`;
}

function bounded(asked: Directive, bytes: number): number {
  if (!Number.isInteger(bytes) || bytes > maxBytes) {
    throw directiveError(`"${asked.source}" asks for a message of more than ${maxBytes} bytes.`);
  }
  return bytes;
}

/** Sends a turn event by event, at its pace and that of its reader, with the actions of its directives. */
export async function play(stage: Stage, acts: readonly Act[], pace: Pace): Promise<void> {
  const { turn, line } = stage;
  if (pace.latencyMs > 0) {
    await line.wait(pace.latencyMs);
  }
  const untilDue = pacing(pace.tokensPerSecond);
  let index = 0;
  for (const event of turnEvents(turn)) {
    if (!(await happens(stage, acts, (after) => after === index))) {
      return;
    }
    index += 1;
    const early = turn.cancelled ? 0 : untilDue(event.tokens);
    if (early > 0) await line.wait(early);
    if (line.closed) {
      return;
    }
    stage.emit(event.type, event.members);
    if (line.isFull) {
      await line.wait('drain');
    }
  }
  await happens(stage, acts, (after) => after >= index);
}

/** @returns whether the turn continues */
async function happens(
  stage: Stage,
  acts: readonly Act[],
  isNow: (after: number) => boolean,
): Promise<boolean> {
  for (const act of acts) {
    if (isNow(act.after) && !(await act.run(stage))) {
      return false;
    }
  }
  return true;
}
