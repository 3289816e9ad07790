import type { FinishReason, StreamEvent, UrlCitation } from '../../../conversation/answer.js';
import type { AnswerContext, StreamEncoder } from '../../../conversation/codec.js';
import { faultOfSummary } from '../../../conversation/compaction.js';
import { isRedacted, noSignature } from '../../../conversation/signature.js';
import type { Usage } from '../../../conversation/usage.js';
import type { SearchPart } from '../../../conversation/web-search.js';
import { GatewayError } from '../../../errors.js';
import { GrowingText } from '../../../wire/growing-text.js';
import { framed, type RawTextFrame } from '../../../wire/raw-text.js';
import { anthropic } from '../../error-formats/formats.js';
import { messageHead, redactedBlock } from '../answer/encode.js';
import { encodeFinish } from '../answer/finish.js';
import { encodeUsage } from '../answer/usage.js';
import { toolUseId } from '../call-ids.js';
import { compactionBlock } from '../compaction-block.js';
import { callBlock, citationText, queryText, resultBlock, searchId } from '../search-blocks.js';

type Block = 'text' | 'thinking' | 'redacted' | 'call' | 'search';
type Finish = Extract<StreamEvent, { kind: 'finish' }>;

const emptyBlocks = {
  text: '{"type":"text","text":""}',
  thinking: '{"type":"thinking","thinking":"","signature":""}',
} as const;

/** See `TextCodec.createEncoder`. */
export function createEncoder(context: AnswerContext): StreamEncoder {
  return context.compaction === null ? new MessagesEncoder(context) : new CompactionEncoder(context);
}

/**
 * Writes a messages stream; see `StreamEncoder`. One block is open at a time. The stop reason is sent with the usage,
 * when all of it is known. Of several choices the first is written.
 */
class MessagesEncoder implements StreamEncoder {
  error: GatewayError | null = null;
  readonly #context: AnswerContext;
  #isStarted = false;
  #usage: Usage | null = null;
  #finish: Finish | null = null;
  #calls = 0;
  #searches = 0;
  #open: Block | null = null;
  /** A signature that arrived after text. It gets a block of its own only if more than the answer's end follows. */
  #late: string | null = null;
  /** Index of the open block or, if none is open, of the next one. */
  #index = 0;
  /** Frame of raw texts in the open block. */
  #frame: RawTextFrame | null = null;

  constructor(context: AnswerContext) {
    this.#context = context;
  }

  takesRawText(): boolean {
    return this.#open === 'text' && this.#late === null;
  }

  encodeRawText(raw: string): string | null {
    if (this.#open !== 'text' || this.#late !== null) return null;
    this.#frame ??= framed(
      `event: content_block_delta\ndata: {"type":"content_block_delta","index":${this.#index},"delta":{"type":"text_delta","text":"`,
      '"}}\n\n',
    );
    return this.#frame.before + raw + this.#frame.after;
  }

  rawTextFrame(): RawTextFrame | null {
    return this.#frame;
  }

  encode(event: StreamEvent): string {
    if ('choice' in event && event.choice !== 0) return '';
    switch (event.kind) {
      case 'start':
        this.#usage = event.usage;
        return this.start();
      case 'text':
        if (event.logprobs !== undefined) this.#context.lost.add('logprobs');
        return this.#text(event.text);
      case 'refusal':
        return this.#text(event.text);
      case 'reasoning':
        if (!this.#context.showReasoning || event.text === '') return '';
        return this.#sign() + this.#need('thinking') + this.#delta('thinking_delta', 'thinking', event.text);
      case 'signature': {
        const before = this.#sign();
        this.#late = event.signature;
        return this.#open === 'text' ? before : before + this.#sign();
      }
      case 'callStart':
        return this.#sign() + this.#callStart(event.id, event.name);
      case 'callArguments':
        return this.#open === 'call' && event.text !== ''
          ? this.#delta('input_json_delta', 'partial_json', event.text)
          : '';
      case 'callEnd':
        return this.#open === 'call' ? this.#closeBlock() : '';
      case 'finish':
        this.#finish = event;
        return this.#closeBlock();
      case 'usage':
        this.#usage = event.usage;
        return '';
      case 'citation':
        return this.#cite(event.citation);
      case 'search':
        return this.#sign() + this.#search(event);
      case 'error':
        return anthropic.errorEvent(event.error, this.#context.requestId, 0);
      case 'end':
        return this.#end();
    }
  }

  #text(text: string): string {
    return text === '' ? '' : this.#sign() + this.#need('text') + this.#delta('text_delta', 'text', text);
  }

  protected start(): string {
    if (this.#isStarted) return '';
    this.#isStarted = true;
    const message = `{${messageHead(this.#context)},"content":[],"stop_reason":null,"stop_sequence":null,"usage":${encodeUsage(this.#usage)}}`;
    return `event: message_start\ndata: {"type":"message_start","message":${message}}\n\n${anthropic.keepAlive}`;
  }

  /**
   * Ends the open block. A thinking block is signed before it ends, as the vendor's are: some clients treat an unsigned
   * one as text.
   */
  #closeBlock(): string {
    if (this.#open === null) return '';
    const signed = this.#open === 'thinking' ? this.#signature(noSignature) : '';
    return signed + this.#endBlock();
  }

  #endBlock(): string {
    this.#open = null;
    this.#frame = null;
    return `event: content_block_stop\ndata: {"type":"content_block_stop","index":${this.#index++}}\n\n`;
  }

  #openBlock(block: Block, content: string): string {
    const before = this.start() + this.#closeBlock();
    this.#open = block;
    return `${before}event: content_block_start\ndata: {"type":"content_block_start","index":${this.#index},"content_block":${content}}\n\n`;
  }

  /** @param block the block that is open, or has to be opened */
  #need(block: 'text' | 'thinking'): string {
    return this.#open === block ? '' : this.#openBlock(block, emptyBlocks[block]);
  }

  #delta(type: string, member: string, value: string): string {
    return this.#deltaOf(`"type":"${type}","${member}":${JSON.stringify(value)}`);
  }

  #deltaOf(members: string): string {
    return `event: content_block_delta\ndata: {"type":"content_block_delta","index":${this.#index},"delta":{${members}}}\n\n`;
  }

  /** Adds a citation to the open text. */
  #cite(citation: UrlCitation): string {
    if (this.#open === 'text')
      return this.#deltaOf(`"type":"citations_delta","citation":${citationText(citation)}`);
    this.#context.lost.add('citations');
    return '';
  }

  #search(search: SearchPart): string {
    const id = searchId(this.#context.id, this.#searches++);
    const input = `"type":"input_json_delta","partial_json":${JSON.stringify(queryText(search.query))}`;
    return (
      this.#openBlock('search', callBlock(id, null)) +
      this.#deltaOf(input) +
      this.#openBlock('search', resultBlock(id, search)) +
      this.#closeBlock()
    );
  }

  #sign(): string {
    if (this.#late === null) return '';
    const signature = this.#late;
    this.#late = null;
    if (this.#open !== 'thinking' && isRedacted(signature))
      return this.#openBlock('redacted', redactedBlock(signature)) + this.#closeBlock();
    return this.#need('thinking') + this.#signature(signature) + this.#endBlock();
  }

  #signature(signature: string): string {
    return this.#delta('signature_delta', 'signature', signature);
  }

  #callStart(id: string, name: string): string {
    const ids = `"id":${JSON.stringify(toolUseId(id, this.#context, this.#calls++))},"name":${JSON.stringify(name)}`;
    return this.#openBlock('call', `{"type":"tool_use",${ids},"input":{}}`);
  }

  #end(): string {
    const { reason = 'other', stopSequence = null } = this.#finish ?? {};
    const sequence = reason === 'stopSequence' ? stopSequence : null;
    return this.start() + this.#closeBlock() + this.last(encodeFinish(reason, this.#calls > 0), sequence);
  }

  /**
   * Returns the last events.
   * @param sequence the stop sequence that was met, or null
   */
  protected last(reason: string, sequence: string | null): string {
    const stop = `{"stop_reason":"${reason}","stop_sequence":${JSON.stringify(sequence)}}`;
    return (
      `event: message_delta\ndata: {"type":"message_delta","delta":${stop},"usage":${encodeUsage(this.#usage, this.#searches)}}\n\n` +
      'event: message_stop\ndata: {"type":"message_stop"}\n\n'
    );
  }
}

/** A summary that is longer is refused. */
const mostCharacters = 8 * 1024 * 1024;

/** Writes a compaction, see `compaction-block.ts`: one block, once the whole summary has arrived. */
class CompactionEncoder extends MessagesEncoder {
  readonly #context: AnswerContext;
  readonly #summary = new GrowingText();
  #finish: FinishReason = 'stop';

  constructor(context: AnswerContext) {
    super(context);
    this.#context = context;
  }

  get kept(): number {
    return this.#summary.length;
  }

  override encode(event: StreamEvent): string {
    if (this.error !== null || ('choice' in event && event.choice !== 0)) return '';
    switch (event.kind) {
      case 'start':
      case 'usage':
      case 'error':
        return super.encode(event);
      case 'text':
        if (this.#summary.length + event.text.length > mostCharacters)
          return this.#fail(
            new GatewayError('upstream_error', 'The summary is too long.', { answerTooLarge: true }),
          );
        this.#summary.add(event.text);
        return '';
      case 'finish':
        this.#finish = event.reason;
        return '';
      case 'end':
        return this.start() + this.#end();
      default:
        return '';
    }
  }

  #fail(error: GatewayError): string {
    this.error = error;
    return super.encode({ kind: 'error', error });
  }

  #end(): string {
    const summary = this.#summary.toString();
    const fault = faultOfSummary(summary, this.#finish);
    if (fault !== null) return this.#fail(fault);
    const block = compactionBlock(null, this.#context.echo);
    const delta = `{"type":"compaction_delta","content":${JSON.stringify(summary)},"encrypted_content":null}`;
    return (
      `event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":${block}}\n\n` +
      `event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":${delta}}\n\n` +
      'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n' +
      this.last('compaction', null)
    );
  }
}
