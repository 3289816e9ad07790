import type { FinishReason } from '../../conversation/answer.js';
import type { AnswerContext, StreamEncoder } from '../../conversation/codec.js';
import { faultOfSummary } from '../../conversation/compaction.js';
import type { StreamEvent } from '../../conversation/events.js';
import type { Usage } from '../../conversation/usage.js';
import { GatewayError } from '../../errors.js';
import { GrowingText } from '../../wire/growing-text.js';
import { anthropic } from '../error-formats/anthropic.js';
import { messageHead } from './answer/encode.js';
import { encodeUsage } from './answer/usage.js';
import { compactionBlock } from './compaction-block.js';

/** A longer summary is none. */
const mostCharacters = 8 * 1024 * 1024;

/** Writes a compaction, see `compaction-block.ts`: one block, when the whole summary is there. */
export class CompactionEncoder implements StreamEncoder {
  error: GatewayError | null = null;
  readonly #context: AnswerContext;
  #isStarted = false;
  readonly #summary = new GrowingText();
  #usage: Usage | null = null;
  #finish: FinishReason = 'stop';

  constructor(context: AnswerContext) {
    this.#context = context;
  }

  get kept(): number {
    return this.#summary.length;
  }

  takesRawText(): boolean {
    return false;
  }

  encodeRawText(): null {
    return null;
  }

  rawTextFrame(): null {
    return null;
  }

  encode(event: StreamEvent): string {
    if (this.error !== null || ('choice' in event && event.choice !== 0)) return '';
    switch (event.kind) {
      case 'start':
        this.#usage = event.usage;
        return this.#start();
      case 'usage':
        this.#usage = event.usage;
        return '';
      case 'text':
        return this.#add(event.text);
      case 'finish':
        this.#finish = event.reason;
        return '';
      case 'error':
        return anthropic.errorEvent(event.error, this.#context.requestId, 0);
      case 'end':
        return this.#start() + this.#end();
      default:
        return '';
    }
  }

  #start(): string {
    if (this.#isStarted) return '';
    this.#isStarted = true;
    const message = `{${messageHead(this.#context)},"content":[],"stop_reason":null,"stop_sequence":null,"usage":${encodeUsage(this.#usage)}}`;
    return `event: message_start\ndata: {"type":"message_start","message":${message}}\n\n${anthropic.keepAlive}`;
  }

  #add(text: string): string {
    if (this.#summary.length + text.length > mostCharacters)
      return this.#fail(new GatewayError('upstream_error', 'The summary is too long.', { tooLarge: true }));
    this.#summary.add(text);
    return '';
  }

  #fail(error: GatewayError): string {
    this.error = error;
    return anthropic.errorEvent(error, this.#context.requestId, 0);
  }

  #end(): string {
    const summary = this.#summary.toString();
    const fault = faultOfSummary(summary, this.#finish);
    if (fault !== null) return this.#fail(fault);
    const block = compactionBlock(null, this.#context.echo);
    const delta = `{"type":"compaction_delta","content":${JSON.stringify(summary)},"encrypted_content":null}`;
    const stop = '{"stop_reason":"compaction","stop_sequence":null}';
    return (
      `event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":${block}}\n\n` +
      `event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":${delta}}\n\n` +
      'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n' +
      `event: message_delta\ndata: {"type":"message_delta","delta":${stop},"usage":${encodeUsage(this.#usage)}}\n\n` +
      'event: message_stop\ndata: {"type":"message_stop"}\n\n'
    );
  }
}
