import type { OwnSecrets } from '../config/types.js';
import { type Answer, type StreamEvent, wordsOf } from '../conversation/answer.js';
import type {
  AnswerContext,
  AnswerSource,
  StreamDecoder,
  StreamEncoder,
  TextCodec,
} from '../conversation/codec.js';
import {
  answerTokens,
  type BrokenBy,
  estimatedUsage,
  inexactUsage,
  tokensOf,
  withUncounted,
} from '../conversation/estimate-usage.js';
import type { AnswerRestorer } from '../conversation/fit/fitted.js';
import type { Keep } from '../conversation/kept-turns.js';
import type { StreamStart } from '../conversation/stream-rules.js';
import { type ModelTokens, type Usage, UsageCheck } from '../conversation/usage.js';
import { GatewayError } from '../errors.js';
import {
  errorToReport,
  keyError,
  reportableError,
  vendorAccountErrorOf,
} from '../protocols/error-formats/vendor-account.js';
import { parseObject } from '../wire/json.js';
import { plainText, rawBytes } from '../wire/raw-text.js';
import { eventEnd, parseEvent } from '../wire/sse.js';
import { rawTextWeight, textWeight } from '../wire/text-weight.js';
import type { AnswerTransform, StreamFailure, TransformEnd, WaitingEnd } from './answer-transform.js';
import { Sequence } from './sequence.js';
import { TextTemplate } from './text-template.js';

/** Largest whole answer that is translated. */
const wholeBytes = 64 * 1024 * 1024;
/** Largest event that is translated; inline media make them large. */
const eventBytes = 32 * 1024 * 1024;
/** Largest answer that is checked for being an error. */
const longestError = 64 * 1024;
/** Bytes of an event, beside its texts, that do not count: more may be kept in memory by the decoder or encoder. */
const usualEventBytes = 512;
/** Most bytes of one stream that are kept: log probabilities, citations, names and incomplete parts. */
const mostKept = 64 * 1024 * 1024;
/** Output buffer of all streams of the worker. Its content is sent before the next is written. */
const outgoing = Buffer.allocUnsafeSlow(256 * 1024);

/** What the translation of one call's answers needs. */
interface TranslationParts {
  /** The upstream's protocol, and its settings. */
  readonly upstreamCodec: TextCodec;
  readonly source: AnswerSource;
  /** The client's protocol. */
  readonly clientCodec: TextCodec;
  readonly context: AnswerContext;
  /** See `fitRequest`. */
  readonly restorer: AnswerRestorer | null;
  /** Estimated input tokens of the request, for an upstream that reports none. */
  readonly inputEstimate: number;
  readonly tokens: ModelTokens;
  /** What is stored of the answer; null for nothing. */
  readonly keep: Keep | null;
  /** Of the gateway at the upstream: no answer may tell its keys, and no error any of them. */
  readonly secrets: OwnSecrets;
}

/**
 * Translates an answer from one protocol into another, event by event. What has to wait for later events is bounded, by
 * `mostKept` and in `Sequence`.
 */
export class TranslatedTransform implements AnswerTransform {
  readonly wholeBytes = wholeBytes;
  readonly divisible = false;
  readonly eventBytes = eventBytes;
  readonly exactErrors = false;
  readonly streamsUnasked = false;
  readonly endsItself = true;
  /** The encoder numbers its last event. */
  readonly nextNumber = 0;
  readonly mediaSeconds = 0;
  readonly #parts: TranslationParts;
  #usageOfWhole: Usage | null = null;
  #stream: StreamTranslation | null = null;
  readonly #check: UsageCheck;

  constructor(parts: TranslationParts) {
    this.#parts = parts;
    this.#check = new UsageCheck(parts.tokens, parts.inputEstimate);
  }

  get failure(): StreamFailure | null {
    const error = this.passedError;
    return error === null ? null : { error, isTold: true };
  }

  get implausible(): Usage | null {
    return this.#check.implausible;
  }

  get usage(): Usage | null {
    return this.#stream === null ? this.#usageOfWhole : this.#stream.usage;
  }

  get keep(): Keep | null {
    return this.#parts.keep;
  }

  get waitingEnd(): WaitingEnd | null {
    return this.#stream?.waitingEnd ?? null;
  }

  get lost(): readonly string[] {
    return this.#parts.context.lost.names;
  }

  get isCut(): boolean {
    return this.#stream?.isCut ?? false;
  }

  get isComplete(): boolean {
    return this.passedError === null && this.#stream !== null && this.#stream.isOver;
  }

  get gatheredBytes(): number {
    const stream = this.#stream;
    const bytes = stream === null ? 0 : stream.gatheredBytes + (stream.encoder.kept ?? 0);
    return bytes + (this.#parts.keep?.gathered?.() ?? 0);
  }

  judge(run: Buffer): StreamStart {
    return this.#streaming().judge(run);
  }

  pass(run: Buffer): Buffer {
    return this.#streaming().pass(run);
  }

  end(): TransformEnd {
    // The error event is part of what remains to be sent.
    return { last: this.#streaming().end(), error: null };
  }

  get passedError(): GatewayError | null {
    return this.#stream?.error ?? null;
  }

  usageAtEnd(brokenBy: BrokenBy): Usage | null {
    const stream = this.#stream;
    const reported = this.usage;
    const isWhole = stream === null || stream.isUsageWhole;
    if (reported !== null && (brokenBy === null || isWhole)) return reported;
    return inexactUsage({
      brokenBy,
      hasPassed: stream?.hasPassed ?? false,
      estimates: 'conversation',
      reported,
      input: this.#parts.inputEstimate,
      output: tokensOf(stream?.weight ?? 0),
    });
  }

  lastWords(error: GatewayError): string {
    return this.#streaming().encoder.encode({ kind: 'error', error });
  }

  note(): void {
    // Nothing is passed on untranslated.
  }

  whole(body: Buffer): Buffer {
    const { clientCodec, context, restorer, secrets } = this.#parts;
    const ofKey = keyError(body, secrets);
    if (ofKey !== null) throw ofKey;
    const answer = this.#decodeAnswer(body.toString('utf8'));
    const reported = this.#check.checked(answer.usage);
    const usage = usageOfAnswer({ ...answer, usage: reported }, this.#parts.inputEstimate);
    this.#usageOfWhole = usage;
    const restored = restorer === null ? answer : restorer.answer(answer);
    return writeOut(rawBytes(clientCodec.encodeAnswer({ choices: restored.choices, usage }, context)));
  }

  /** @throws {GatewayError} if it is not an answer; the message reveals nothing of the gateway's account */
  #decodeAnswer(text: string): Answer {
    const { upstreamCodec, source, secrets } = this.#parts;
    const parsed = parseObject(text);
    try {
      if (parsed === null)
        throw new GatewayError('upstream_error', "The upstream's answer is not a JSON object.");
      const answer = upstreamCodec.decodeAnswer(parsed, source);
      // An answer without content may be an error in another form.
      const failure = saysNothing(answer) ? vendorAccountErrorOf(text, 'own', secrets) : null;
      if (failure !== null) throw failure;
      return answer;
    } catch (fault) {
      if (!(fault instanceof GatewayError)) throw fault;
      // The vendor also bills the usage of an answer that failed.
      if (parsed !== null) this.#usageOfWhole = this.#check.checked(upstreamCodec.usageOf(parsed));
      throw errorToReport(fault, text, secrets);
    }
  }

  #streaming(): StreamTranslation {
    this.#stream ??= new StreamTranslation(this.#parts, this.#check);
    return this.#stream;
  }
}

function saysNothing({ choices }: Answer): boolean {
  return choices.every(({ parts }) => parts.every((part) => part.kind !== 'search' && wordsOf(part) === ''));
}

/** @param text one byte a character */
function writeOut(text: string): Buffer {
  if (text.length > outgoing.length) return Buffer.from(text, 'latin1');
  return outgoing.subarray(0, outgoing.write(text, 0, 'latin1'));
}

/** The translation of a stream: decodes events, puts them in order and encodes them. */
class StreamTranslation {
  readonly encoder: StreamEncoder;
  error: GatewayError | null = null;
  usage: Usage | null = null;
  readonly #decoder: StreamDecoder;
  readonly #sequence = new Sequence();
  readonly #template: TextTemplate;
  readonly #decoded: StreamEvent[] = [];
  /** Steps in order that are not encoded yet. */
  readonly #steps: StreamEvent[] = [];
  /** Offset up to which the run was decoded when it was judged. */
  #judgedTo = 0;
  readonly #texts: string[] = [];
  #passedTo = 0;
  /** The end of the protocol has arrived, or an error. */
  isOver = false;
  /** The gateway has ended the answer. */
  isCut = false;
  waitingEnd: WaitingEnd | null = null;
  /** The encoder's last output for an answer of which something may be stored. */
  #end: string | null = null;
  readonly #keep: Keep | null;

  /** Decoded steps, in order; only if the answer is to be restored. */
  readonly #ordered: StreamEvent[] = [];
  readonly #restorer: AnswerRestorer | null;
  readonly #inputEstimate: number;
  readonly #secrets: OwnSecrets;
  readonly #check: UsageCheck;
  /** Weight of texts and arguments that were passed on, in quarters of a token. */
  weight = 0;
  /** Bytes of events, beside their texts, that may still be in memory. */
  gatheredBytes = 0;
  /** The events that were judged to be an answer have been passed on. */
  hasPassed = false;
  /** The usage is complete. */
  isUsageWhole = false;

  constructor(
    { upstreamCodec, source, clientCodec, context, restorer, inputEstimate, keep, secrets }: TranslationParts,
    check: UsageCheck,
  ) {
    this.#check = check;
    this.#restorer = restorer;
    this.#secrets = secrets;
    this.#keep = keep;
    this.encoder = clientCodec.createEncoder(context);
    this.#decoder = upstreamCodec.createDecoder(source);
    this.#template = new TextTemplate(this.#decoder.textMember);
    this.#inputEstimate = inputEstimate;
  }

  judge(run: Buffer): StreamStart {
    const ofKey = keyError(run, this.#secrets);
    if (ofKey !== null) return ofKey;
    for (let at = 0; at < run.length && !this.isOver; ) {
      at = this.#decode(run, at);
      for (const step of this.#steps) {
        if (step.kind === 'error') return step.error;
        // These have no content: the next event may still be an error with a status.
        if (step.kind === 'start' || step.kind === 'usage') continue;
        this.#judgedTo = at;
        return 'meaningful';
      }
      this.#keepLastUsage();
    }
    return 'silence';
  }

  /** Drops a waiting usage that a later one replaces: an upstream may report any number before it answers. */
  #keepLastUsage(): void {
    const steps = this.#steps;
    if (steps.at(-1)?.kind === 'usage' && steps.at(-2)?.kind === 'usage') steps.splice(-2, 1);
  }

  pass(run: Buffer): Buffer {
    const ofKey = keyError(run, this.#secrets);
    if (ofKey !== null) return this.#failWith(ofKey);
    this.hasPassed = true;
    let at = this.#judgedTo;
    this.#judgedTo = 0;
    let out = this.#encode();
    const bytes = run.toString('latin1');
    while (at < bytes.length && !this.isOver) {
      const texts = this.#sequence.isIdle ? this.#passTexts(bytes, at) : null;
      if (texts !== null) {
        out += texts;
        at = this.#passedTo;
        continue;
      }
      const start = at;
      at = this.#decode(run, at);
      this.#learn(run, start, at);
      out += this.#encode();
    }
    return this.#emit(out);
  }

  #failWith(error: GatewayError): Buffer {
    this.isOver = true;
    this.#steps.length = 0;
    this.#steps.push({ kind: 'error', error });
    return writeOut(this.#encode());
  }

  /**
   * Passes on the texts of consecutive events that need not be decoded.
   * @returns what to send for them, or null if the event at `at` has to be decoded; `#passedTo` is their end
   */
  #passTexts(bytes: string, at: number): string | null {
    if (
      this.#restorer?.changesText === true ||
      this.#decoder.needsTexts === true ||
      !this.encoder.takesRawText()
    )
      return null;
    const texts = this.#texts;
    this.#passedTo = this.#template.collect(bytes, at, texts);
    if (this.#passedTo === -1) return null;
    for (const text of texts) this.weight += rawTextWeight(text);
    let out = this.#encodeText(texts[0] as string);
    const frame = this.encoder.rawTextFrame();
    if (frame === null) {
      for (let i = 1; i < texts.length; i++) out += this.#encodeText(texts[i] as string);
    } else if (texts.length > 1) {
      out += frame.before + texts[1];
      for (let i = 2; i < texts.length; i++) out += frame.between + texts[i];
      out += frame.after;
    }
    // They refer to the whole run, which would stay in memory until the stream's next one.
    texts.length = 0;
    return out;
  }

  /** Encodes a raw text. An encoder that has reached its own limit returns null, and reports that when it encodes the step. */
  #encodeText(raw: string): string {
    const text = this.encoder.encodeRawText(raw);
    if (text !== null) return text;
    const said = this.encoder.encode({ kind: 'text', choice: 0, text: plainText(raw) });
    this.#noteFailure();
    return rawBytes(said);
  }

  end(): Buffer {
    if (!this.isOver) {
      this.#decoder.finish(this.#decoded);
      this.#order();
    }
    return this.#emit(this.#encode());
  }

  /** Decodes one event. @returns the offset of the next one */
  #decode(run: Buffer, start: number): number {
    const end = eventEnd(run, start);
    const { event, data } = parseEvent(run.toString('utf8', start, end));
    if (data !== null) {
      this.#decoder.decode(event, data, this.#decoded);
      this.#hideVendorAccount(event, data);
      this.#countKept(data.length);
    }
    this.#order();
    return end;
  }

  /** Replaces an error event, or one of an unknown kind, that reveals something of the gateway's account. */
  #hideVendorAccount(event: string | null, data: string): void {
    const decoded = this.#decoded;
    const found = decoded.at(-1);
    const isError = found?.kind === 'error';
    if (!isError && ((found !== undefined && found.kind !== 'start') || data.length > longestError)) return;
    const error = vendorAccountErrorOf(data, event === 'error' ? 'error' : 'strange', this.#secrets);
    if (isError) decoded.pop();
    const told = error ?? (isError ? reportableError(found.error, this.#secrets) : null);
    if (told !== null) decoded.push({ kind: 'error', error: told });
  }

  /** @param characters length of a decoded event */
  #countKept(characters: number): void {
    let more = characters - usualEventBytes;
    for (const event of this.#decoded) if ('text' in event) more -= event.text.length;
    if (more <= 0) return;
    this.gatheredBytes += more;
    if (this.gatheredBytes <= mostKept) return;
    this.#decoded.length = 0;
    this.#decoded.push({
      kind: 'error',
      error: new GatewayError('upstream_error', 'The answer is too long to be translated.', {
        answerTooLarge: true,
      }),
    });
  }

  /** Puts decoded steps into the order in which they are encoded. Steps after an end are ignored. */
  #order(): void {
    for (const event of this.#decoded) {
      if (event.kind === 'end' && (this.usage === null || (this.usage.output === 0 && this.weight > 0)))
        this.#estimate();
      if ('text' in event) {
        this.weight += textWeight(event.text);
        // Some upstreams report their usage so far with every event.
        this.isUsageWhole = false;
      }
      if (event.kind === 'usage') {
        const reported = this.#check.checked(event.usage);
        if (reported === null) {
          // What was reported before is not the end of it either.
          this.usage = null;
          continue;
        }
        this.usage = withUncounted(reported, this.#inputEstimate, tokensOf(this.weight));
        this.isUsageWhole = true;
        this.#push({ kind: 'usage', usage: this.usage });
        continue;
      }
      if (event.kind === 'start' && event.usage !== null) {
        const reported = this.#check.checked(event.usage);
        this.#push(reported === null ? { kind: 'start', usage: null } : event);
        this.usage ??= reported;
        continue;
      }
      this.#push(event);
    }
    this.#decoded.length = 0;
    const last = this.#steps.at(-1);
    if (last?.kind === 'end' || last?.kind === 'error') this.isOver = true;
  }

  #push(event: StreamEvent): void {
    if (this.#restorer === null) {
      this.#sequence.push(event, this.#steps);
      return;
    }
    this.#sequence.push(event, this.#ordered);
    for (const each of this.#ordered) this.#restorer.event(each, this.#steps);
    this.#ordered.length = 0;
    if (event.kind !== 'end' && this.#steps.at(-1)?.kind === 'end') this.#endEarly();
  }

  /** The gateway has ended the answer, so the upstream is cancelled before it has reported its whole usage. */
  #endEarly(): void {
    this.isCut = true;
    if (this.isUsageWhole) return;
    const end = this.#steps.pop() as StreamEvent;
    this.#estimate();
    this.#steps.push(end);
  }

  /** SDKs require a usage. If the upstream reports none, it is estimated, and marked as such in the ledger. */
  #estimate(): void {
    const estimated = estimatedUsage(this.#inputEstimate, tokensOf(this.weight));
    const input = this.usage?.input || estimated.input;
    this.usage =
      this.usage === null ? estimated : { ...this.usage, input, output: estimated.output, estimated: true };
    this.isUsageWhole = true;
    this.#steps.push({ kind: 'usage', usage: this.usage });
  }

  /** Uses an event with a text and nothing else as the template for the next ones. Any other event ends the use. */
  #learn(run: Buffer, start: number, end: number): void {
    const [step] = this.#steps;
    if (step === undefined) return;
    if (
      this.#steps.length === 1 &&
      step.kind === 'text' &&
      step.choice === 0 &&
      step.logprobs === undefined &&
      step.text !== ''
    )
      // Not a slice of the run's text, all of which it would keep in memory.
      this.#template.learn(run.toString('latin1', start, end), step.text);
    else this.#template.forget();
  }

  /** Ends the stream if the encoder has failed. */
  #noteFailure(): void {
    if (this.encoder.error === null) return;
    this.error = this.encoder.error;
    this.isOver = true;
  }

  /**
   * Returns what to send for a text, without the end of an answer of which something is to be stored.
   * @param text one byte a character
   */
  #emit(text: string): Buffer {
    const bytes = writeOut(text);
    const keep = this.#keep;
    if (keep === null) return bytes;
    keep.see?.(bytes);
    if (this.#end === null) return bytes;
    const end = Buffer.from(this.#end);
    this.#end = null;
    const records = keep.records(end, true);
    if (records.length === 0) return Buffer.concat([bytes, end]);
    this.waitingEnd = { keep, records, end, isStream: true, insideEvent: false };
    return bytes;
  }

  /** @returns the encoded waiting steps, one byte a character */
  #encode(): string {
    let text = '';
    for (const step of this.#steps) {
      const said = this.encoder.encode(step);
      if (step.kind === 'end' && this.#keep !== null && this.encoder.error === null) {
        this.#end = said;
        break;
      }
      text += said;
      if (step.kind === 'error') this.error = step.error;
      else this.#noteFailure();
      if (this.error !== null) break;
    }
    this.#steps.length = 0;
    return rawBytes(text);
  }
}

/** Returns the usage of a whole answer. What the upstream does not count is estimated. */
function usageOfAnswer(answer: Answer, inputEstimate: number): Usage {
  const { usage } = answer;
  if (usage !== null && usage.output > 0 && usage.input > 0) return usage;
  const written = answerTokens(answer);
  return usage === null
    ? estimatedUsage(inputEstimate, written)
    : withUncounted(usage, inputEstimate, written);
}
