import type { OwnSecrets } from '../config/types.js';
import type { StreamRules, StreamStart } from '../conversation/stream-rules.js';
import { GatewayError } from '../errors.js';
import { keyError, reportableError } from '../protocols/error-formats/vendor-account.js';
import type { WithheldEvents } from './withheld.js';

/** Bytes of comments before the first event that are held back. */
const earlyBytes = 16 * 1024;
/** The same bound for events that only open an answer, which may repeat instructions and tools. */
const openingBytes = 64 * 1024;

/** What else a call can get its answer from. */
export interface Alternatives {
  /** Whether there is another answer, or may be one. */
  readonly mayMoveOn: boolean;
}

interface OpeningParts {
  readonly rules: StreamRules;
  readonly withheld: WithheldEvents;
  readonly secrets: OwnSecrets;
  /** Events that only open the answer are held back until its content while it may be given up for these; null for none. */
  readonly alternatives: Alternatives | null;
}

/** The beginning of a stream that is passed on untouched: it is held back until it is known to be an answer. */
export class StreamOpening {
  readonly #parts: OpeningParts;
  /** What has arrived before the answer: comments, signs of life, and events that only open it. */
  #held: Buffer[] | null = null;
  /** Length of what is held back. */
  heldBytes = 0;
  /** An event of the answer has arrived. */
  #hasOpened = false;

  constructor(parts: OpeningParts) {
    this.#parts = parts;
  }

  /** See `AnswerTransform.judge`. Events that are held back are not judged again. */
  judge(run: Buffer): StreamStart {
    const { rules, withheld, secrets } = this.#parts;
    const ofKey = keyError(run, secrets);
    if (ofKey !== null) return ofKey;
    const judged = this.#judgeEvents(run, rules);
    const most = this.#hasOpened ? openingBytes : earlyBytes;
    if (judged === 'silence' && this.heldBytes + run.length < most) {
      this.#held ??= [];
      this.#held.push(Buffer.from(run));
      this.heldBytes += run.length;
      return judged;
    }
    const failure = withheld.atStart(this.#behindHeld(run));
    if (failure !== null) return failure;
    if (judged instanceof GatewayError) return reportableError(judged, secrets);
    return 'meaningful';
  }

  #judgeEvents(run: Buffer, rules: StreamRules): StreamStart {
    const { judgeContent } = rules;
    const atStart = rules.judgeStart(run);
    this.#hasOpened ||= atStart === 'meaningful';
    const awaitsContent = judgeContent !== undefined && this.#parts.alternatives?.mayMoveOn === true;
    const judged = awaitsContent ? judgeContent(run) : atStart;
    if (!this.#hasOpened) return judged;
    if (judged === 'silence') return awaitsContent ? judged : 'meaningful';
    // An answer without content that has reached its end is whole.
    return judged instanceof GatewayError && judged.unbegun ? 'meaningful' : judged;
  }

  /** What is held back; null for nothing. */
  get held(): Buffer | null {
    return this.#held === null ? null : Buffer.concat(this.#held);
  }

  /** Returns a run with what was held back before it, which is no longer held. */
  take(run: Buffer): Buffer {
    const all = this.#behindHeld(run);
    this.#held = null;
    this.heldBytes = 0;
    return all;
  }

  #behindHeld(run: Buffer): Buffer {
    return this.#held === null ? run : Buffer.concat([...this.#held, run]);
  }
}
