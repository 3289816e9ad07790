import { readFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { type FaultPlace, GatewayError } from '../../errors.js';
import type { BodyStreamReceiver } from '../../http/body-stream.js';
import type { ExchangeListener } from '../../http/exchange.js';
import { SweepMember } from '../../http/sweep.js';
import { readValidated } from '../../schema/accept.js';
import { checkForm, checkFormStart, type FormSchema } from '../../schema/form.js';
import { LeastRate } from '../../upstream/least-rate.js';
import type { RequestBodySink, RequestBodySource } from '../../upstream/types.js';
import { ByteBlocks } from '../../wire/byte-blocks.js';
import { leadingField } from '../../wire/form-data.js';
import { MultipartDecoder, type PartHead, type PartReceiver } from '../../wire/multipart.js';
import { boundaryOf } from '../../wire/multipart-type.js';
import { nameWithoutBrackets, PartNames } from '../../wire/part-names.js';
import { Recording } from '../../wire/recording.js';
import type { AuthenticatedCall, OpenedForm, UploadBody } from '../call.js';
import { type AdmissionListener, admit } from '../limits/admit.js';
import { keepMemory, setHeldBytes, takeMemory } from '../memory-budget.js';
import { account } from '../record/account.js';
import { refuse } from '../refuse.js';
import { targetsAllowing } from '../resolve.js';
import type { Services } from '../services.js';
import { isCoded, lateBody, rateBound } from './intake.js';
import { formLimits } from './whole-form.js';

/** What arrives of one upload after a stop may take at most this fraction of the worker's memory budget. */
const waitingShare = 8;
/** The bound is at least this multiple of the system's receive buffer: while that is read, about as much follows. */
const kernelTimes = 2;
/** The largest receive buffer of a connection if the system does not report it: the default of Linux, tcp(7). */
const usualBuffer = 6 * 1024 * 1024;

/**
 * Returns how many bytes of one upload may arrive after it was stopped. uWS continues to read a socket, stopped or not,
 * as long as each read returns full 512 KiB. All that the system holds of the connection therefore arrives, and all
 * that a client as fast as this process sends meanwhile. The client is not at fault for that, so the bound follows the
 * system's buffer.
 * @param bufferedBytes bytes that a worker may hold in total
 * @param kernelBytes see `largestReceiveBuffer`
 */
export function mostAfterStop(bufferedBytes: number, kernelBytes: number): number {
  return Math.max(kernelTimes * kernelBytes, Math.floor(bufferedBytes / waitingShare));
}

/**
 * Returns the most bytes that the system buffers of what a connection has received.
 * @param setting `net.ipv4.tcp_rmem` (tcp(7)): the minimum, default and maximum size of that buffer
 */
export function largestReceiveBuffer(setting: string | null = readSetting()): number {
  const largest = Number(setting?.trim().split(/\s+/)[2] ?? Number.NaN);
  return Number.isSafeInteger(largest) && largest > 0 ? largest : usualBuffer;
}

function readSetting(): string | null {
  try {
    return readFileSync('/proc/sys/net/ipv4/tcp_rmem', 'latin1');
  } catch {
    return null;
  }
}

/** Forms up to this size are read whole: they are checked before an upstream is involved, and can be sent again. */
const wholeBytes = 1024 * 1024;
/**
 * Bounds in bytes of the step in which memory for arriving bytes is taken: as many as have arrived, within these
 * bounds.
 */
const leastStep = 16 * 1024;
const mostStep = 1024 * 1024;
const receiveBuffer = largestReceiveBuffer();
/** Most bytes of all fields together, since they are held until the form ends. */
const mostFieldBytes = 1024 * 1024;
/** Estimated memory of a byte of text, and of a part beside its texts, in bytes. */
const characterBytes = 2;
const partBytes = 512;

interface UploadOptions {
  readonly form: FormSchema;
  /** Resolves the model, which `call.validated` names by then, and sends the call to an upstream. */
  readonly next: (services: Services, call: AuthenticatedCall) => void;
}

/** The field that names the model, and the position of its value in the form. `end` is 0 if only the path names it. */
interface ModelField {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

/**
 * Receives a form that is passed on as it arrives. A small form is collected whole. A larger one is collected up to the
 * model's name, which decides its target. From then on its bytes are sent to the upstream as they arrive, with the
 * backpressure of both sides.
 *
 * `collecting` -> `passing` (the call was sent to an upstream, and the rest of the form follows) -> `over`
 */
export class Upload
  extends SweepMember
  implements
    BodyStreamReceiver,
    ExchangeListener,
    PartReceiver,
    UploadBody,
    RequestBodySource,
    AdmissionListener
{
  readonly contentType: string;
  readonly #services: Services;
  readonly #call: AuthenticatedCall;
  readonly #options: UploadOptions;
  readonly #boundary: string;
  readonly #decoder: MultipartDecoder;
  readonly #names: PartNames;
  readonly #fields: { readonly name: string; readonly value: string }[] = [];
  readonly #files: PartHead[] = [];
  #mode: 'collecting' | 'passing' | 'over' = 'collecting';
  /** Bytes that have arrived and were not released: all of them until an upstream takes the form. */
  readonly #held = new ByteBlocks();
  /** Bytes of `#held` that the request in flight begins with; the rest arrived before its connection was open. */
  #given = 0;
  /** The first bytes of the request in flight. */
  #pieces: Buffer[] = [];
  #arrived = 0;
  /** The part that is being read, if it is a field. */
  #field: { readonly name: string; readonly text: ByteBlocks; readonly start: number } | null = null;
  #fieldBytes = 0;
  /** Estimated bytes of the parts' heads and fields, held until the form ends, and the memory taken for them. */
  #partBytes = 0;
  #partRoom = 0;
  /** Position of the model's name in the form. */
  #model: ModelField | null = null;
  #complete = false;
  #isChecked = false;
  #sink: RequestBodySink | null = null;
  /** Part of the form was released, so it cannot be sent again. */
  #isSpent = false;
  /** Bytes of memory taken for what arrives after a stop. */
  #waiting = 0;
  #paused = false;
  /** The call waits for its limits. */
  #waits = false;
  #lastByteAt: number;
  readonly #rate: LeastRate;
  /** The recording in the form, if its seconds may have a price. */
  #recording: Recording | null = null;
  /** The part that is being read is the recording. */
  #isRecorded = false;
  /** Bytes by which replacing the model's name lengthens the form. */
  #growth = 0;

  /**
   * Takes the call's slot among those of its key, whatever its form turns out to be.
   * @throws {GatewayError} if the call is refused before its form, or its body is not a form or has a content coding
   */
  constructor(services: Services, call: AuthenticatedCall, options: UploadOptions) {
    super();
    this.#services = services;
    this.#call = call;
    this.#options = options;
    this.#names = new PartNames(options.form.names);
    this.#lastByteAt = call.startedAt;
    this.#rate = new LeastRate(call.startedAt);
    this.#waits = !admit(services, call, this);
    const { head } = call.exchange;
    const boundary = boundaryOf(head.contentType);
    if (isCoded(head.contentEncoding))
      throw new GatewayError('unsupported_media_type', 'Forms with a content-encoding are not supported.');
    this.contentType = `multipart/form-data; boundary="${boundary}"`;
    this.#boundary = boundary;
    this.#decoder = new MultipartDecoder(boundary, formLimits(call.running.snapshot), this);
  }

  get canReplay(): boolean {
    return !this.#isSpent;
  }

  /** Total bytes of the form as the upstream receives it, or -1 if unknown. */
  get length(): number {
    const { contentLength } = this.#call.exchange.head;
    return contentLength === -1 ? -1 : contentLength + this.#growth;
  }

  /** Starts reading. Must be called before the handler of the request returns. */
  start(): void {
    const { exchange, running } = this.#call;
    exchange.listener = this;
    this.#services.sweepList.add(this);
    exchange.streamBody(running.snapshot.limits.uploadBytes, this, this.#waits);
  }

  onAdmitted(): void {
    this.#waits = false;
    this.#call.exchange.resumeBody();
  }

  onNotAdmitted(fault: unknown): void {
    this.#end(fault);
  }

  onChunk(chunk: Buffer): boolean {
    if (this.#isOver()) return true;
    this.#lastByteAt = performance.now();
    try {
      return this.#take(chunk);
    } catch (fault) {
      this.#end(fault);
      return true;
    }
  }

  onMore(): void {
    this.#sink?.flush();
  }

  onEnd(): void {
    if (this.#isOver()) return;
    try {
      this.#check();
      this.#complete = true;
      this.#services.sweepList.remove(this);
      if (this.#mode === 'collecting') {
        keepMemory(this.#services, this.#call, this.#held.length + this.#partRoom + this.#waiting);
        this.#send();
      } else this.#sink?.end();
      this.#noteSeconds();
    } catch (fault) {
      this.#end(fault);
    }
  }

  /** Replaces the expected seconds, which were estimated from the announced length. */
  #noteSeconds(): void {
    const call = this.#call;
    if (call.mediaSeconds > 0 && this.#recording !== null)
      call.mediaSeconds = this.#recording.seconds(call.exchange.bytesIn);
  }

  onBodyRefused(error: GatewayError): void {
    this.#end(error);
  }

  onDiscarded(): void {
    this.#finish();
  }

  holdWaiting(bytes: number): boolean {
    if (this.#isOver()) return false;
    const call = this.#call;
    const held = call.heldBytes - this.#waiting + bytes;
    const { bufferedBytes } = call.running.snapshot.limits;
    try {
      if (bytes > mostAfterStop(bufferedBytes, receiveBuffer)) throw tooFast();
      setHeldBytes(this.#services, call, held);
    } catch (fault) {
      this.#end(fault);
      return false;
    }
    this.#waiting = bytes;
    return true;
  }

  onClientGone(): void {
    this.#finish();
    account(this.#services, this.#call, 'client_gone');
  }

  /** No-op: nothing is written to the client before the upstream answers. */
  onDrained(): void {}

  onSweep(now: number): void {
    if (this.#isOver()) {
      // Bytes that wait or arrive are discarded.
      this.#resume();
      return;
    }
    if (this.#paused || this.#waits) {
      this.#lastByteAt = now;
      return;
    }
    const { exchange, running, startedAt } = this.#call;
    const { bodyMs, totalMs } = running.snapshot.timeouts;
    const isSlow = this.#rate.isTooSlow(now, exchange.bytesIn, rateBound(running.snapshot));
    const isLate =
      now - this.#lastByteAt >= bodyMs || (this.#mode !== 'passing' && now - startedAt >= totalMs);
    if (!isSlow && !isLate) return;
    exchange.closing = true;
    this.#end(lateBody(isSlow, running.snapshot));
  }

  override onFault(where: FaultPlace, fault: unknown): void {
    this.#call.onFault(where, fault);
  }

  onPart(head: PartHead, start: number): void {
    // Checked immediately: if the form is already being sent, the upstream would have this part before the form ends.
    const steering = this.#names.add(head.name);
    if (steering !== null) {
      const call = this.#call;
      call.steering = [...call.steering, steering];
      if (call.target !== null) targetsAllowing(call, [call.target]);
    }
    this.#partBytes += characterBytes * (head.name.length + (head.filename ?? '').length) + partBytes;
    if (head.filename === null) {
      this.#field = { name: head.name, text: new ByteBlocks(), start };
      return;
    }
    this.#files.push(head);
    const isMetered = this.#call.route.endpoint?.metering.seconds != null;
    this.#isRecorded = isMetered && this.#options.form.files.includes(nameWithoutBrackets(head.name));
    if (this.#isRecorded) this.#recording ??= new Recording();
  }

  onPartData(bytes: Buffer): void {
    if (this.#field === null) {
      if (this.#isRecorded) this.#recording?.add(bytes);
      return;
    }
    this.#fieldBytes += bytes.length;
    if (this.#fieldBytes > mostFieldBytes) throw fieldsTooLarge();
    this.#partBytes += characterBytes * bytes.length;
    this.#field.text.add(bytes);
  }

  onPartEnd(end: number): void {
    const field = this.#field;
    if (field === null) return;
    this.#field = null;
    const text = Buffer.concat(field.text.pieces()).toString('utf8');
    const isModel = field.name === 'model';
    if (isModel) this.#model ??= { text, start: field.start, end };
    // The path's model counts, whatever the form names.
    const value = isModel ? (this.#call.params.model ?? text) : text;
    this.#fields.push({ name: field.name, value });
  }

  open(model: string | null): OpenedForm {
    this.#given = this.#held.length;
    this.#growth = 0;
    this.#pieces =
      model === null || this.#model === null ? this.#held.pieces() : this.#spliced(this.#model, model);
    return { body: this.#pieces, source: this.#complete ? null : this };
  }

  onOpen(sink: RequestBodySink): void {
    this.#isSpent = true;
    if (this.#isOver()) return;
    this.#sink = sink;
    const late = Buffer.concat(this.#held.pieces(this.#given));
    this.#held.clear();
    // They have been written, and the request would hold them until its end.
    this.#pieces.length = 0;
    keepMemory(this.#services, this.#call, this.#partRoom + this.#waiting);
    const flowing = late.length === 0 || sink.write(late);
    if (this.#complete) sink.end();
    else if (flowing) this.#resume();
  }

  onDrain(): void {
    this.#resume();
  }

  #take(chunk: Buffer): boolean {
    this.#decoder.push(chunk);
    this.#holdParts();
    this.#arrived += chunk.length;
    // Checked before the last bytes are sent, since an upstream must not start on a form that is refused. Bytes after
    // the last boundary may never arrive.
    if (this.#decoder.isClosed || this.#arrived === this.#call.exchange.head.contentLength) this.#check();
    if (this.#sink !== null) return this.#pauseUnless(this.#sink.write(chunk));
    this.#hold(chunk);
    if (this.#mode === 'passing') return this.#pauseUnless(false);
    if (this.#model === null || !this.#isLarge()) return true;
    // The parts so far are checked before they are sent to an upstream; files may still follow.
    this.#note(checkFormStart(this.#options.form, this.#fields, this.#files));
    this.#pauseUnless(false);
    this.#send();
    return false;
  }

  #check(): void {
    if (this.#isChecked) return;
    this.#isChecked = true;
    this.#decoder.end();
    const { model } = this.#call.params;
    if (model !== undefined && this.#model === null) {
      this.#model = { text: '', start: 0, end: 0 };
      this.#fields.push({ name: 'model', value: model });
    }
    this.#note(checkForm(this.#options.form, this.#fields, this.#files));
    this.#dropParts();
  }

  /** Takes memory for the fields and heads of parts that have arrived. */
  #holdParts(): void {
    if (this.#partBytes <= this.#partRoom) return;
    const room = this.#partBytes + leastStep;
    takeMemory(this.#services, this.#call, room - this.#partRoom);
    this.#partRoom = room;
  }

  /** Releases the parts, which are no longer needed. */
  #dropParts(): void {
    this.#fields.length = 0;
    this.#files.length = 0;
    keepMemory(this.#services, this.#call, this.#call.heldBytes - this.#partRoom);
    this.#partBytes = 0;
    this.#partRoom = 0;
  }

  #isLarge(): boolean {
    const { contentLength } = this.#call.exchange.head;
    return contentLength === -1 ? this.#held.length > wholeBytes : contentLength > wholeBytes;
  }

  #hold(chunk: Buffer): void {
    const call = this.#call;
    const { bodyBytes } = call.running.snapshot.limits;
    const needed = this.#held.length + chunk.length;
    if ((this.#model?.start ?? needed) > bodyBytes) throw modelTooLate(bodyBytes);
    const held = call.heldBytes - this.#partRoom - this.#waiting;
    if (needed > held) {
      const { contentLength } = call.exchange.head;
      const most = contentLength === -1 ? bodyBytes : Math.min(bodyBytes, contentLength);
      const step = Math.min(mostStep, Math.max(leastStep, needed));
      takeMemory(this.#services, call, Math.max(needed, Math.min(most, needed + step)) - held);
    }
    this.#held.add(chunk);
  }

  #note(values: Readonly<Record<string, unknown>>): void {
    this.#call.validated ??= readValidated(this.#model?.text ?? '', values.stream === true);
  }

  #send(): void {
    const call = this.#call;
    this.#mode = 'passing';
    call.bodyAt = performance.now();
    call.upload = this;
    this.#options.next(this.#services, call);
  }

  /** @returns the held pieces, with the model's name replaced */
  #spliced({ start, end }: ModelField, name: string): Buffer[] {
    const value = end > 0 ? Buffer.from(name) : this.#leadingModel(name);
    this.#growth = value.length - (end - start);
    const before: Buffer[] = [];
    const after: Buffer[] = [];
    let at = 0;
    for (const piece of this.#held.pieces()) {
      if (at < start) before.push(piece.subarray(0, start - at));
      if (at + piece.length > end) after.push(piece.subarray(Math.max(0, end - at)));
      at += piece.length;
    }
    return [...before, value, ...after];
  }

  #leadingModel(value: string): Buffer {
    const firstByte = this.#held.pieces()[0]?.[0];
    return leadingField(this.#boundary, { name: 'model', value, firstByte });
  }

  #pauseUnless(flowing: boolean): boolean {
    if (!flowing && !this.#paused) this.#rate.stop(performance.now());
    this.#paused = !flowing;
    return flowing;
  }

  #resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#lastByteAt = performance.now();
    this.#rate.go(this.#lastByteAt);
    this.#call.exchange.resumeBody();
  }

  /** Also true if the call has ended on its own, while its client still has to read the rest of the answer. */
  #isOver(): boolean {
    if (this.#mode !== 'over' && this.#call.accounted) this.#finish();
    return this.#mode === 'over';
  }

  #finish(): void {
    this.#mode = 'over';
    this.#isSpent = true;
    this.#services.sweepList.remove(this);
    this.#held.clear();
    this.#fields.length = 0;
    this.#files.length = 0;
    this.#field = null;
    this.#pieces = [];
    this.#sink = null;
  }

  #end(fault: unknown): void {
    if (this.#isOver()) return;
    const { forwarding } = this.#call;
    this.#finish();
    if (!(fault instanceof GatewayError)) this.#call.onFault('request', fault);
    else if (forwarding !== null) forwarding.fail(fault);
    else refuse(this.#services, this.#call, fault);
  }
}

function fieldsTooLarge(): GatewayError {
  return new GatewayError(
    'invalid_request',
    `The fields of the form are larger than ${mostFieldBytes} bytes together: shorten them.`,
  );
}

function modelTooLate(bytes: number): GatewayError {
  return new GatewayError(
    'request_too_large',
    `In a form of more than ${bytes} bytes the field 'model' must come before the file, since it decides where the ` +
      'file goes.',
    { param: 'model' },
  );
}

function tooFast(): GatewayError {
  return new GatewayError(
    'overloaded',
    'The upload arrives faster than its upstream takes it, and the gateway cannot hold the rest; try again.',
    { retryAfter: 1 },
  );
}
