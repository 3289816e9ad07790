import type { StreamEvent } from '../conversation/answer.js';
import { charactersOf } from '../conversation/web-search.js';
import { GatewayError } from '../errors.js';

type CallStart = Extract<StreamEvent, { readonly kind: 'callStart' }>;
type CallArguments = Extract<StreamEvent, { readonly kind: 'callArguments' }>;

/** Most characters of events that wait for an open call. */
const mostHeld = 8 * 1024 * 1024;
/** Characters that an event counts for in addition to its texts. */
const leastHeld = 64;

/** A call that waits, with what has arrived of it. */
interface WaitingCall {
  readonly start: CallStart;
  readonly pieces: CallArguments[];
  hasEnded: boolean;
}

/**
 * Serialises the steps of an answer. Some upstreams interleave several calls, or text between the pieces of a call, while most
 * protocols have one open block at a time. Everything beside an open call waits until it ends. A call without arguments gets an
 * empty object. Each event is handled once on arrival and once on output, however many calls are open.
 */
export class Sequence {
  #open: CallStart | null = null;
  #isEmpty = true;
  /** In order of arrival. The pieces and the end of a call are stored with its start. */
  #waiting: (WaitingCall | StreamEvent)[] = [];
  /** Index of the first step that was not passed on. */
  #next = 0;
  readonly #waitingCalls = new Map<string, WaitingCall>();
  #waitingLength = 0;

  /** Nothing waits, so steps are passed on immediately. */
  get isIdle(): boolean {
    return this.#open === null;
  }

  /** @param out receives the steps that are in order now */
  push(event: StreamEvent, out: StreamEvent[]): void {
    const open = this.#open;
    if (open === null) {
      if (event.kind === 'callArguments' || event.kind === 'callEnd') return;
      if (event.kind === 'callStart') this.#begin(event);
      out.push(event);
      return;
    }
    if ('call' in event && event.call === open.call && event.choice === open.choice) {
      if (event.kind === 'callArguments') this.#pass(event, out);
      else if (event.kind === 'callEnd') {
        this.#close(open, out);
        this.#release(out);
      }
      return;
    }
    switch (event.kind) {
      case 'usage':
        out.push(event);
        return;
      case 'error':
        this.#forget();
        out.push(event);
        return;
      case 'end':
        for (let each: CallStart | null = open; each !== null; each = this.#open) {
          this.#close(each, out);
          this.#release(out);
        }
        out.push(event);
        return;
      default:
        this.#hold(event, out);
    }
  }

  #begin(call: CallStart): void {
    this.#open = call;
    this.#isEmpty = true;
  }

  #pass(event: CallArguments, out: StreamEvent[]): void {
    if (event.text === '') return;
    this.#isEmpty = false;
    out.push(event);
  }

  #close({ choice, call, custom }: CallStart, out: StreamEvent[]): void {
    if (this.#isEmpty) out.push({ kind: 'callArguments', choice, call, text: custom ? '' : '{}' });
    out.push({ kind: 'callEnd', choice, call });
    this.#open = null;
  }

  /** Passes on what waits, up to a call that has not ended. */
  #release(out: StreamEvent[]): void {
    let next = this.#next;
    for (; this.#open === null && next < this.#waiting.length; next++) {
      const each = this.#waiting[next] as WaitingCall | StreamEvent;
      if (!('start' in each)) {
        this.#waitingLength -= lengthOf(each);
        out.push(each);
        continue;
      }
      const { start, pieces, hasEnded } = each;
      this.#waitingLength -= lengthOf(start);
      this.#waitingCalls.delete(nameOf(start));
      this.#begin(start);
      out.push(start);
      for (const piece of pieces) {
        this.#waitingLength -= lengthOf(piece);
        this.#pass(piece, out);
      }
      if (hasEnded) this.#close(start, out);
    }
    // Only sometimes, since the rest is copied.
    const isMostlyGone = next * 2 >= this.#waiting.length;
    if (isMostlyGone) this.#waiting = this.#waiting.slice(next);
    this.#next = isMostlyGone ? 0 : next;
  }

  #hold(event: StreamEvent, out: StreamEvent[]): void {
    if (event.kind === 'callArguments' || event.kind === 'callEnd') {
      const call = this.#waitingCalls.get(nameOf(event));
      // Belongs to a call that has ended, or has not begun.
      if (call === undefined || call.hasEnded) return;
      if (event.kind === 'callEnd') {
        call.hasEnded = true;
        return;
      }
      call.pieces.push(event);
    } else if (event.kind === 'callStart') {
      const call = { start: event, pieces: [], hasEnded: false };
      this.#waitingCalls.set(nameOf(event), call);
      this.#waiting.push(call);
    } else this.#waiting.push(event);
    this.#waitingLength += lengthOf(event);
    if (this.#waitingLength <= mostHeld) return;
    this.#forget();
    out.push({
      kind: 'error',
      error: new GatewayError(
        'upstream_error',
        'The upstream writes several tool calls at the same time, and they are too large to keep.',
        { answerTooLarge: true },
      ),
    });
  }

  #forget(): void {
    this.#waiting = [];
    this.#next = 0;
    this.#waitingCalls.clear();
    this.#waitingLength = 0;
  }
}

function nameOf({ choice, call }: { readonly choice: number; readonly call: number }): string {
  return `${choice} ${call}`;
}

function lengthOf(event: StreamEvent): number {
  switch (event.kind) {
    case 'text':
      return leastHeld * (1 + logprobsIn(event)) + event.text.length;
    case 'refusal':
    case 'reasoning':
    case 'callArguments':
      return leastHeld + event.text.length;
    case 'signature':
      return leastHeld + event.signature.length;
    case 'citation':
      return leastHeld + event.citation.url.length + event.citation.title.length;
    case 'search':
      return leastHeld + charactersOf(event);
    case 'callStart':
      return leastHeld + event.id.length + event.name.length;
    default:
      return leastHeld;
  }
}

function logprobsIn({ logprobs = [] }: Extract<StreamEvent, { readonly kind: 'text' }>): number {
  return logprobs.reduce((sum, { top_logprobs }) => sum + 1 + top_logprobs.length, 0);
}
