import type { TokenLogprob, UrlCitation } from '../../conversation/answer.js';
import { GrowingText } from '../../wire/growing-text.js';
import { plainText } from '../../wire/raw-text.js';
import type { EventWriter } from './event-writer.js';
import {
  annotation,
  type CalledTool,
  callItem,
  type ItemStatus,
  logprobList,
  messageItem,
  reasoningItem,
  refusalPart,
  summaryPart,
  textPart,
} from './output.js';

/*
 * The item of a stream that is being written. Each method returns the text of its events. The content is kept, because
 * the events that end an item repeat it.
 */

const rawDelta = `event: response.output_text.delta\ndata: {"type":"response.output_text.delta","sequence_number":`;
const rawDeltaEnd = '","logprobs":[]}\n\n';
/** Raw text beyond this many characters is decoded. Until then, the buffer that it was cut from stays in memory. */
const mostRawText = 2048;

/** Where a message begins. */
interface MessagePlace {
  readonly id: string;
  /** Length of the answer's texts before the message. */
  readonly textBefore: number;
}

/** A message: parts of text and refusals, one open at a time. */
export class OpenMessage {
  readonly #writer: EventWriter;
  readonly #id: string;
  /** Length of the answer's texts before the open part. */
  #textBefore: number;
  #done = '';
  #contentIndex = 0;
  #part: 'text' | 'refusal' | null = null;
  #text = new GrowingText();
  /** Raw text that follows `#text`. */
  #rawText = '';
  /** Members that locate the open part in the events of raw texts. */
  #rawPlace = '';
  #logprobs = '';
  #annotations = '';
  #annotationCount = 0;

  constructor(writer: EventWriter, { id, textBefore }: MessagePlace) {
    this.#writer = writer;
    this.#id = id;
    this.#textBefore = textBefore;
  }

  /** Length of the answer's texts up to the end of the message, once it is closed. */
  get textLength(): number {
    return this.#textBefore;
  }

  open(): string {
    return this.#writer.added(messageItem(this.#id, 'in_progress', ''));
  }

  addText(text: string, logprobs: readonly TokenLogprob[] | undefined): string {
    const opened = this.#openPart('text');
    const list = logprobList(logprobs);
    if (list !== '') this.#logprobs += this.#logprobs === '' ? list : `,${list}`;
    this.#decodeRawText();
    this.#text.add(text);
    return opened + this.#event('output_text.delta', `,"delta":${JSON.stringify(text)},"logprobs":[${list}]`);
  }

  get takesRawText(): boolean {
    return this.#part === 'text';
  }

  /** @returns null if no text part is open */
  addRawText(raw: string): string | null {
    if (this.#part !== 'text') return null;
    if (this.#rawText === '') this.#rawPlace = `${this.#place()},"delta":"`;
    this.#rawText += raw;
    if (this.#rawText.length > mostRawText) this.#decodeRawText();
    return `${rawDelta}${this.#writer.number()}${this.#rawPlace}${raw}${rawDeltaEnd}`;
  }

  /** Decodes the text that was passed on raw. */
  #decodeRawText(): void {
    if (this.#rawText !== '') this.#text.add(plainText(this.#rawText));
    this.#rawText = '';
  }

  addRefusal(text: string): string {
    const opened = this.#openPart('refusal');
    this.#text.add(text);
    return opened + this.#event('refusal.delta', `,"delta":${JSON.stringify(text)}`);
  }

  /** Adds the source of a text. No-op if no text is open. */
  addCitation(citation: UrlCitation): string {
    if (this.#part !== 'text') return '';
    // The citation's position is relative to the answer's text. It is written relative to the part.
    const start = Math.max(0, citation.start - this.#textBefore);
    const end = Math.max(0, citation.end - this.#textBefore);
    const item = annotation({ ...citation, start, end });
    this.#annotations += this.#annotations === '' ? item : `,${item}`;
    const index = this.#annotationCount++;
    return this.#event('output_text.annotation.added', `,"annotation_index":${index},"annotation":${item}`);
  }

  close(status: ItemStatus): string {
    const closed = this.#closePart();
    return closed + this.#writer.done(messageItem(this.#id, status, this.#done));
  }

  #event(type: string, members: string): string {
    return this.#writer.event(`response.${type}`, this.#place() + members);
  }

  #place(): string {
    return `,"item_id":"${this.#id}","output_index":${this.#writer.index},"content_index":${this.#contentIndex}`;
  }

  #openPart(kind: 'text' | 'refusal'): string {
    if (this.#part === kind) return '';
    const closed = this.#closePart();
    this.#part = kind;
    return closed + this.#event('content_part.added', `,"part":${this.#content()}`);
  }

  #closePart(): string {
    if (this.#part === null) return '';
    this.#decodeRawText();
    const text = JSON.stringify(this.#text.toString());
    const done =
      this.#part === 'text'
        ? this.#event('output_text.done', `,"text":${text},"logprobs":[${this.#logprobs}]`)
        : this.#event('refusal.done', `,"refusal":${text}`);
    if (this.#part === 'text') this.#textBefore += this.#text.length;
    const part = this.#content();
    const closed = this.#event('content_part.done', `,"part":${part}`);
    this.#done += this.#done === '' ? part : `,${part}`;
    this.#contentIndex++;
    this.#part = null;
    this.#text = new GrowingText();
    this.#logprobs = '';
    this.#annotations = '';
    this.#annotationCount = 0;
    return done + closed;
  }

  #content(): string {
    const text = this.#text.toString();
    return this.#part === 'refusal'
      ? refusalPart(text)
      : textPart({ text, annotations: this.#annotations, logprobs: this.#logprobs });
  }
}

/** Reasoning that is shown. */
export class OpenReasoning {
  readonly #writer: EventWriter;
  readonly #id: string;
  readonly #text = new GrowingText();

  constructor(writer: EventWriter, id: string) {
    this.#writer = writer;
    this.#id = id;
  }

  open(): string {
    return this.#writer.added(reasoningItem(this.#id, '', null));
  }

  add(text: string): string {
    const opened =
      this.#text.length === 0
        ? this.#event('reasoning_summary_part.added', `,"part":${summaryPart('')}`)
        : '';
    this.#text.add(text);
    return opened + this.#event('reasoning_summary_text.delta', `,"delta":${JSON.stringify(text)}`);
  }

  /** @param token the encrypted form, or null */
  close(token: string | null): string {
    const text = this.#text.toString();
    let closed = '';
    if (text !== '') {
      closed =
        this.#event('reasoning_summary_text.done', `,"text":${JSON.stringify(text)}`) +
        this.#event('reasoning_summary_part.done', `,"part":${summaryPart(text)}`);
    }
    return closed + this.#writer.done(reasoningItem(this.#id, text, token));
  }

  #event(type: string, members: string): string {
    const place = `,"item_id":"${this.#id}","output_index":${this.#writer.index},"summary_index":0`;
    return this.#writer.event(`response.${type}`, place + members);
  }
}

/** A call of one of the client's tools. */
export class OpenCall {
  readonly #writer: EventWriter;
  readonly #call: CalledTool;
  readonly #input = new GrowingText();

  constructor(writer: EventWriter, call: CalledTool) {
    this.#writer = writer;
    this.#call = call;
  }

  open(): string {
    return this.#writer.added(callItem(this.#call, 'in_progress', ''));
  }

  add(text: string): string {
    this.#input.add(text);
    return text === '' ? '' : this.#event('delta', `,"delta":${JSON.stringify(text)}`);
  }

  close(status: ItemStatus): string {
    const whole = this.#input.toString();
    const input = JSON.stringify(whole);
    const done =
      this.#call.type === 'custom'
        ? this.#event('done', `,"input":${input}`)
        : this.#event('done', `,"name":${JSON.stringify(this.#call.name)},"arguments":${input}`);
    return done + this.#writer.done(callItem(this.#call, status, whole));
  }

  #event(step: 'delta' | 'done', members: string): string {
    const { id, type } = this.#call;
    // Calls of the other types are written as a whole.
    if (type !== 'function' && type !== 'custom') return '';
    const name = type === 'function' ? 'function_call_arguments' : 'custom_tool_call_input';
    const place = `,"item_id":"${id}","output_index":${this.#writer.index}`;
    return this.#writer.event(`response.${name}.${step}`, place + members);
  }
}
