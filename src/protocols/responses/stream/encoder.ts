import type { FinishReason, StreamEvent, UrlCitation } from '../../../conversation/answer.js';
import type { AnswerContext, StreamEncoder } from '../../../conversation/codec.js';
import { faultOfSummary } from '../../../conversation/compaction.js';
import type { LeftOut } from '../../../conversation/left-out.js';
import type { Usage } from '../../../conversation/usage.js';
import { charactersOf as charactersOfSearch, type SearchPart } from '../../../conversation/web-search.js';
import { GatewayError } from '../../../errors.js';
import { GrowingText } from '../../../wire/growing-text.js';
import { encodeFinish } from '../answer/finish.js';
import { sealSummary } from '../compact.js';
import { EventWriter } from '../event-writer.js';
import { ownItemId } from '../made-id.js';
import { OpenCall, OpenMessage, OpenReasoning } from '../open-items.js';
import { type CallNaming, calledTool, compactionItem, messageId, reasoningItem } from '../output.js';
import { writeSearch } from '../search-item.js';

/** Most characters of an answer: its last event repeats them all. */
const mostCharacters = 16 * 1024 * 1024;

/**
 * Charged for each item, or part of one, besides its texts, since many may be empty. A new one begins when the kind of
 * event changes.
 */
const itemCharacters = 256;
/** An event of one of these kinds continues the item of an event of the same kind before it. */
const growing: ReadonlySet<StreamEvent['kind']> = new Set(['text', 'refusal', 'reasoning', 'callArguments']);

type Step<Kind extends StreamEvent['kind']> = Extract<StreamEvent, { readonly kind: Kind }>;

/** Returns the characters of an event that are held until the stream's last event, which repeats them. */
function charactersOf(event: StreamEvent): number {
  switch (event.kind) {
    case 'text':
      return event.text.length + (event.logprobs === undefined ? 0 : JSON.stringify(event.logprobs).length);
    case 'citation':
      return JSON.stringify(event.citation).length;
    case 'search':
      return charactersOfSearch(event);
    case 'signature':
      return event.signature.length;
    case 'callStart':
      return event.id.length + event.name.length;
    default:
      return 'text' in event ? event.text.length : 0;
  }
}

/** Writes a stream of the protocol; see `TextCodec.createEncoder`. */
export function createEncoder(context: AnswerContext): StreamEncoder {
  return context.compaction === null ? new ResponseEncoder(context) : new CompactionEncoder(context);
}

/** Writes an answer, one item after another. */
class ResponseEncoder implements StreamEncoder {
  protected readonly writer: EventWriter;
  protected finish: FinishReason = 'stop';
  protected usage: Usage | null = null;
  error: GatewayError | null = null;
  /** Starts below zero so that the first item costs nothing: the text of a single item is its only bound. */
  #characters = -itemCharacters;
  #lastKind: StreamEvent['kind'] = 'start';
  #isOver = false;
  readonly #id: string;
  readonly #showReasoning: boolean;
  readonly #lost: LeftOut;
  readonly #naming: CallNaming;
  #hasMessage = false;
  /** Length of the texts of all closed messages. */
  #textLength = 0;
  #message: OpenMessage | null = null;
  #reasoning: OpenReasoning | null = null;
  #call: OpenCall | null = null;
  /** The open call has all of its arguments. Whether they were cut is known at the next step. */
  #isCallOver = false;

  constructor(context: AnswerContext) {
    this.writer = new EventWriter(context);
    this.#id = context.id;
    this.#showReasoning = context.showReasoning;
    this.#lost = context.lost;
    this.#naming = { id: context.id, tools: context.clientTools };
  }

  get kept(): number {
    return this.#characters + itemCharacters;
  }

  takesRawText(): boolean {
    return this.#message?.takesRawText ?? false;
  }

  encodeRawText(raw: string): string | null {
    if (this.#isOver || this.#characters + raw.length > mostCharacters) return null;
    const text = this.#message?.addRawText(raw) ?? null;
    if (text !== null) this.#count('text', raw.length);
    return text;
  }

  /** Null, since each event has another number. */
  rawTextFrame(): null {
    return null;
  }

  encode(event: StreamEvent): string {
    if (this.#isOver || ('choice' in event && event.choice !== 0)) return '';
    if (event.kind === 'error') return this.#fail(event.error);
    this.#count(event.kind, charactersOf(event));
    if (this.#characters > mostCharacters) {
      return this.#fail(
        new GatewayError('upstream_error', 'The answer is too long to be kept.', { answerTooLarge: true }),
      );
    }
    const started = this.writer.start();
    if (event.kind === 'start' || event.kind === 'usage') {
      this.usage = event.usage ?? this.usage;
      return started;
    }
    if (event.kind !== 'end') return started + this.step(event);
    const last = this.last();
    this.#isOver = true;
    return started + (last instanceof GatewayError ? this.#fail(last) : last);
  }

  #count(kind: StreamEvent['kind'], characters: number): void {
    const goesOn = kind === this.#lastKind && growing.has(kind);
    this.#lastKind = kind;
    this.#characters += goesOn ? characters : characters + itemCharacters;
  }

  #fail(error: GatewayError): string {
    this.error = error;
    this.#isOver = true;
    return this.writer.fail(error, this.usage);
  }

  protected step(event: StreamEvent): string {
    const closed = this.#isCallOver && event.kind !== 'finish' ? this.#close('completed') : '';
    return closed + this.#write(event);
  }

  #write(event: StreamEvent): string {
    switch (event.kind) {
      case 'text': {
        if (event.text === '' && event.logprobs === undefined) return '';
        const opened = this.#openMessage();
        return opened + (this.#message?.addText(event.text, event.logprobs) ?? '');
      }
      case 'refusal': {
        if (event.text === '') return '';
        const opened = this.#openMessage();
        return opened + (this.#message?.addRefusal(event.text) ?? '');
      }
      case 'citation':
        return this.#cite(event.citation);
      case 'search':
        return this.#search(event);
      case 'reasoning':
        return event.text === '' || !this.#showReasoning ? '' : this.#reason(event.text);
      case 'signature':
        return this.#sign(event.signature);
      case 'callStart':
        return this.#startCall(event);
      case 'callArguments':
        return this.#call?.add(event.text) ?? '';
      case 'callEnd':
        this.#isCallOver = this.#call !== null;
        return '';
      case 'finish':
        this.finish = event.reason;
        if (event.reason === 'stopSequence' && event.stopSequence !== null) this.#lost.add('stop_sequence');
        return this.#close(encodeFinish(event.reason).status);
      default:
        return '';
    }
  }

  /** Returns the last events, or the reason why there are none. */
  protected last(): string | GatewayError {
    return this.#close('completed') + this.writer.end(this.finish, this.usage);
  }

  #openMessage(): string {
    if (this.#message !== null) return '';
    const closed = this.#close('completed');
    const id = messageId(this.#id, this.writer.index, !this.#hasMessage);
    this.#message = new OpenMessage(this.writer, { id, textBefore: this.#textLength });
    this.#hasMessage = true;
    return closed + this.#message.open();
  }

  #reason(text: string): string {
    let opened = '';
    if (this.#reasoning === null) {
      opened = this.#close('completed');
      this.#reasoning = new OpenReasoning(this.writer, this.#reasoningId());
      opened += this.#reasoning.open();
    }
    return opened + this.#reasoning.add(text);
  }

  #sign(token: string): string {
    if (this.#reasoning === null) {
      const closed = this.#close('completed');
      const id = this.#reasoningId();
      return (
        closed +
        this.writer.added(reasoningItem(id, '', null)) +
        this.writer.done(reasoningItem(id, '', token))
      );
    }
    const closed = this.#reasoning.close(token);
    this.#reasoning = null;
    return closed;
  }

  #reasoningId(): string {
    return ownItemId('rs', this.#id, this.writer.index);
  }

  /** Adds a citation to the open message. Without an open message, the citation is lost. */
  #cite(citation: UrlCitation): string {
    const written = this.#message?.addCitation(citation) ?? '';
    if (written === '') this.#lost.add('citations');
    return written;
  }

  #search(search: SearchPart): string {
    const closed = this.#close('completed');
    const id = ownItemId('ws', this.#id, this.writer.index);
    return closed + writeSearch(this.writer, id, search);
  }

  #startCall(event: Step<'callStart'>): string {
    const closed = this.#close('completed');
    this.#call = new OpenCall(this.writer, calledTool(event, this.writer.index, this.#naming));
    return closed + this.#call.open();
  }

  /** Ends the open item. */
  #close(status: 'completed' | 'incomplete'): string {
    const closed =
      this.#message?.close(status) ?? this.#reasoning?.close(null) ?? this.#call?.close(status) ?? '';
    this.#textLength = this.#message?.textLength ?? this.#textLength;
    this.#isCallOver = false;
    this.#message = null;
    this.#reasoning = null;
    this.#call = null;
    return closed;
  }
}

/** Writes a compaction: one item, once the whole summary has arrived. */
class CompactionEncoder extends ResponseEncoder {
  readonly #context: AnswerContext;
  readonly #summary = new GrowingText();

  constructor(context: AnswerContext) {
    super(context);
    this.#context = context;
  }

  protected override step(event: StreamEvent): string {
    if (event.kind === 'text') this.#summary.add(event.text);
    else if (event.kind === 'finish') this.finish = event.reason;
    return '';
  }

  protected override last(): string | GatewayError {
    const summary = this.#summary.toString();
    const fault = faultOfSummary(summary, this.finish);
    if (fault !== null) return fault;
    const { id, sealer } = this.#context;
    const item = compactionItem(id, sealSummary(summary, sealer));
    return this.writer.added(item) + this.writer.done(item) + this.writer.end('stop', this.usage);
  }
}
