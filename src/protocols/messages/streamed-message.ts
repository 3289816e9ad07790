import { isObject, isObjectText, type JsonObject, parseObject, textOrNull } from '../../wire/json.js';
import { eventEnd, parseEvent } from '../../wire/sse.js';

/** A block of a message as it grows. */
interface GrowingBlock {
  readonly start: JsonObject;
  text: string;
  thinking: string;
  signature: string;
  /** JSON text of a call's arguments. */
  input: string;
  /** Of a text. */
  readonly citations: JsonObject[];
}

/**
 * The message that a stream brings, put together from its events as the SDK does it.
 * https://platform.claude.com/docs/en/build-with-claude/streaming
 */
export class StreamedMessage {
  id: string | null = null;
  stopReason: string | null = null;
  /** Its last event has come. */
  isWhole = false;
  readonly #most: number;
  readonly #blocks: GrowingBlock[] = [];
  #held = 0;
  #isTooLong = false;

  /** @param most characters that are kept of it: a longer one is dropped at once, and has no content */
  constructor(most: number) {
    this.#most = most;
  }

  /** @param run whole events */
  see(run: Buffer): void {
    for (let at = 0; at < run.length; ) {
      const end = eventEnd(run, at);
      const { data } = parseEvent(run.toString('utf8', at, end));
      const event = data === null ? null : parseObject(data);
      if (event !== null) this.#take(event);
      at = end;
    }
  }

  /** Characters that are in memory for its blocks. */
  get held(): number {
    return this.#held;
  }

  /** JSON text of its blocks; null where it is too long, or has not come to its end. */
  get content(): string | null {
    if (!this.isWhole || this.#isTooLong) return null;
    const blocks = this.#blocks.map(written).filter((block) => block !== null);
    return `[${blocks.join(',')}]`;
  }

  #take(event: JsonObject): void {
    switch (event.type) {
      case 'message_start':
        this.id = isObject(event.message) ? textOrNull(event.message.id) : null;
        return;
      case 'content_block_start':
        if (isObject(event.content_block)) this.#start(event.content_block);
        return;
      case 'content_block_delta':
        if (isObject(event.delta)) this.#grow(event.delta);
        return;
      case 'message_delta':
        if (isObject(event.delta)) this.stopReason = textOrNull(event.delta.stop_reason) ?? this.stopReason;
        return;
      case 'message_stop':
        this.isWhole = true;
    }
  }

  #start(block: JsonObject): void {
    if (this.#isTooLong) return;
    const [text, thinking] = [textOrNull(block.text) ?? '', textOrNull(block.thinking) ?? ''];
    const signature = textOrNull(block.signature) ?? '';
    this.#blocks.push({ start: block, text, thinking, signature, input: '', citations: [] });
    this.#hold(blockWeight + JSON.stringify(block).length);
  }

  #grow(delta: JsonObject): void {
    const block = this.#blocks.at(-1);
    if (block === undefined || this.#isTooLong) return;
    if (isObject(delta.citation)) {
      block.citations.push(delta.citation);
      this.#hold(JSON.stringify(delta.citation).length);
    }
    for (const [member, value] of [
      ['text', delta.text],
      ['thinking', delta.thinking],
      ['signature', delta.signature],
      ['input', delta.partial_json],
    ] as const) {
      if (typeof value !== 'string') continue;
      block[member] += value;
      this.#hold(value.length);
    }
  }

  #hold(characters: number): void {
    if (this.#isTooLong) return;
    this.#held += characters;
    if (this.#held <= this.#most) return;
    this.#isTooLong = true;
    this.#blocks.length = 0;
    this.#held = 0;
  }
}

/** What a block counts for besides its texts. */
const blockWeight = 64;

/** @returns null for a call whose arguments were cut, which no request can have */
function written({ start, text, thinking, signature, input, citations }: GrowingBlock): string | null {
  switch (start.type) {
    case 'text':
      return JSON.stringify({ type: 'text', text, ...(citations.length > 0 ? { citations } : {}) });
    case 'thinking':
      return JSON.stringify({ type: 'thinking', thinking, signature });
    default: {
      if (input === '') return JSON.stringify(start);
      // As the model wrote it: numbers may be larger than a parser keeps them.
      const { input: _, ...rest } = start;
      return isObjectText(input) ? `${JSON.stringify(rest).slice(0, -1)},"input":${input}}` : null;
    }
  }
}
