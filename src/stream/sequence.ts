import type { StreamEvent } from '../conversation/events.js';
import { charactersOf } from '../conversation/web-search.js';
import { GatewayError } from '../errors.js';

type CallStart = Extract<StreamEvent, { readonly kind: 'callStart' }>;

/** Characters of events that may wait for an open call. */
const mostHeld = 8 * 1024 * 1024;
/** What an event counts for besides its texts. */
const leastHeld = 64;

/**
 * Puts the steps of an answer in a row: some upstreams write several calls at once, or text between the pieces of a
 * call, while most protocols have one block open at a time. Whatever comes beside an open call waits until it ends,
 * and a call without arguments gets an empty object.
 */
export class Sequence {
  #open: CallStart | null = null;
  #isEmpty = true;
  #held: StreamEvent[] = [];
  #heldLength = 0;

  /** Nothing waits: steps pass as they come. */
  get isIdle(): boolean {
    return this.#open === null;
  }

  /** @param out where the steps go that are in order now */
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
      else if (event.kind === 'callEnd') this.#end(event, open.custom, out);
      return;
    }
    switch (event.kind) {
      case 'usage':
        out.push(event);
        return;
      case 'error':
        this.#held = [];
        out.push(event);
        return;
      case 'end':
        this.#end({ kind: 'callEnd', choice: open.choice, call: open.call }, open.custom, out);
        this.push(event, out);
        return;
      default:
        this.#hold(event, out);
    }
  }

  #begin(call: CallStart): void {
    this.#open = call;
    this.#isEmpty = true;
  }

  #pass(event: Extract<StreamEvent, { readonly kind: 'callArguments' }>, out: StreamEvent[]): void {
    if (event.text === '') return;
    this.#isEmpty = false;
    out.push(event);
  }

  #end(
    event: Extract<StreamEvent, { readonly kind: 'callEnd' }>,
    isCustom: boolean,
    out: StreamEvent[],
  ): void {
    const { choice, call } = event;
    if (this.#isEmpty) out.push({ kind: 'callArguments', choice, call, text: isCustom ? '' : '{}' });
    out.push(event);
    this.#open = null;
    const held = this.#held;
    this.#held = [];
    this.#heldLength = 0;
    for (const each of held) this.push(each, out);
  }

  #hold(event: StreamEvent, out: StreamEvent[]): void {
    this.#heldLength += lengthOf(event);
    if (this.#heldLength > mostHeld) {
      this.#held = [];
      out.push({
        kind: 'error',
        error: new GatewayError(
          'upstream_error',
          'The upstream writes several tool calls at once, and too much of them to keep.',
          { tooLarge: true },
        ),
      });
      return;
    }
    this.#held.push(event);
  }
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
