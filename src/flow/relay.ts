import { GatewayError } from '../errors.js';
import type { ExchangeListener } from '../http/exchange.js';
import type { TextProtocol } from '../protocols/protocol.js';
import { Gather } from '../stream/gather.js';
import { Tail } from '../stream/tail.js';
import type { ResponseHead, UpstreamExchange, UpstreamFailure, UpstreamHandler } from '../upstream/client.js';
import { EventRuns } from '../wire/sse.js';
import { account } from './account.js';
import { shrinkReservation } from './admit.js';
import { answerLines, streamLines } from './answer.js';
import { isEventStream, isWholeEvent } from './answer-kind.js';
import type { Call, Outcome } from './call.js';
import { failureError, statusError } from './failure.js';
import { refuseStream } from './refuse.js';
import type { Services } from './services.js';
import { Watched } from './watch.js';

/** Answers up to this size leave in one piece, so that an upstream that dies in their middle is still an error status. */
const wholeBytes = 256 * 1024;
/** An event that is larger is passed on in parts. */
const eventBytes = 1024 * 1024;
/** Comments before the first event that are kept back; more of them commit the stream. */
const earlyBytes = 16 * 1024;
const keepAliveComment = Buffer.from(': keep-alive\n\n');
const blankLine = Buffer.from('\n\n');

/** Who decides what follows an attempt that failed before anything was relayed. */
export interface AttemptOwner {
  onAttemptFailed(error: GatewayError, failure: UpstreamFailure | null): void;
}

/**
 * Hands an upstream's answer to the client as it comes, with the usage read beside it. One for each call, used for
 * all of its attempts; it is the handler of the upstream's answer and the listener of the client's side at once.
 *
 * `waiting` for a head -> `whole` (collected, leaves at once), `bytes` (passed on as it comes) or `events`
 * (passed on in whole events) -> `sent` (whole, and the client has not taken all of it) -> `over`.
 */
export class Relay extends Watched implements UpstreamHandler, ExchangeListener {
  upstream: UpstreamExchange | null = null;
  readonly #services: Services;
  readonly #call: Call;
  readonly #protocol: TextProtocol;
  readonly #owner: AttemptOwner;
  readonly #streamed: boolean;
  #hideUsage = false;
  #mode: 'waiting' | 'whole' | 'bytes' | 'events' | 'sent' | 'over' = 'waiting';
  #head: ResponseHead | null = null;
  /** The answer's head has left, or will with the next write. */
  #committed = false;
  /** An answer that leaves whole, or comments before the first event. */
  readonly #gathered = new Gather(wholeBytes);
  #runs: EventRuns | null = null;
  #tail: Tail | null = null;
  /** An event of the protocol has come. */
  #judged = false;
  #flowing = true;
  #heardAt: number;

  constructor(services: Services, call: Call, protocol: TextProtocol, owner: AttemptOwner) {
    super();
    this.#services = services;
    this.#call = call;
    this.#protocol = protocol;
    this.#owner = owner;
    this.#streamed = call.validated?.stream ?? false;
    this.#heardAt = call.validatedAt;
    call.exchange.listener = this;
    if (this.#streamed) services.watched.add(this);
  }

  /**
   * Makes ready for an attempt. Only before anything was relayed.
   * @param hideUsage the usage event was asked for by the gateway alone, and is kept from the client
   */
  reset(hideUsage: boolean): void {
    this.#hideUsage = hideUsage;
    this.#mode = 'waiting';
    this.#head = null;
    this.#gathered.take();
    this.#runs = null;
    this.#judged = false;
    this.#call.sentAt = 0;
    this.#call.answeredAt = 0;
  }

  onHead(head: ResponseHead): void {
    const call = this.#call;
    call.answeredAt = performance.now();
    call.sentAt = this.upstream?.sentAt ?? 0;
    this.#head = head;
    const refusal = this.#refusalOf(head);
    if (refusal !== null) this.#give(refusal);
    else if (head.status >= 400) this.#mode = 'whole';
    else if (this.#streamed) this.#beginEvents();
    else if (head.contentLength > wholeBytes) this.#beginBytes();
    else this.#mode = 'whole';
  }

  onData(chunk: Buffer): boolean {
    switch (this.#mode) {
      case 'events':
        return this.#onEvents(chunk);
      case 'whole':
        return this.#onWhole(chunk);
      case 'bytes':
        this.#tail?.add(chunk);
        this.#flowing = this.#call.exchange.write(chunk);
        return this.#flowing;
      default:
        return true;
    }
  }

  onEnd(): void {
    switch (this.#mode) {
      case 'events':
        this.#endEvents();
        break;
      case 'whole':
        this.#endWhole();
        break;
      case 'bytes':
        if (this.#tail !== null) this.#call.usage = this.#protocol.usageOf(this.#tail.bytes());
        this.#call.exchange.end();
        this.#settle(this.#answerOutcome());
        break;
      default:
        break;
    }
  }

  onFailure(failure: UpstreamFailure): void {
    if (this.#mode === 'over') return;
    const error = failureError(failure);
    this.#call.sentAt = this.upstream?.sentAt ?? 0;
    if (!this.#committed) {
      this.#mode = 'over';
      this.#owner.onAttemptFailed(error, failure);
    } else if (this.#mode === 'bytes') {
      // The head promised an answer that cannot be made whole: a cut connection is the only honest end.
      this.#call.error = error;
      this.#call.exchange.abort();
      this.#settle('upstream_error');
    } else {
      this.#failStream(error);
    }
  }

  onClientGone(): void {
    if (this.#mode !== 'over' && this.#mode !== 'sent') this.upstream?.cancel();
    if (this.#tail !== null) this.#call.usage ??= this.#protocol.judgeEnd(this.#tail.bytes()).usage;
    this.#settle('client_gone');
  }

  onDrained(): void {
    if (this.#mode === 'sent') {
      this.#settle(this.#answerOutcome());
      return;
    }
    this.#flowing = true;
    this.#heardAt = performance.now();
    this.upstream?.resume();
  }

  onTick(now: number): void {
    const { keepAliveMs } = this.#call.running.snapshot.timeouts;
    if (keepAliveMs === 0 || !this.#flowing || now - this.#heardAt < keepAliveMs) return;
    // Comments belong between the events of a stream alone.
    if ((this.#mode !== 'waiting' && this.#mode !== 'events') || this.#runs?.overlong) return;
    this.#heardAt = now;
    this.#commitStream();
    // Not under backpressure at this point, and a comment is too short to matter if it starts some.
    this.#call.exchange.write(keepAliveComment);
  }

  /** Ends the call's part in the watch and in the log. */
  #settle(outcome: Outcome): void {
    this.#mode = 'over';
    this.leave();
    this.#releaseRequest();
    this.upstream = null;
    account(this.#services, this.#call, outcome);
  }

  /** Leaves the watch: time has nothing to do with this call any more. */
  leave(): void {
    this.#services.watched.remove(this);
  }

  /**
   * Lets go of the request body once it cannot be needed again. An attempt that was given up may still hold it, so
   * its buffer goes back to the pool only after a call that needed one attempt.
   */
  #releaseRequest(): void {
    const call = this.#call;
    if (call.body === null) return;
    if (this.upstream?.bodyReleased && call.retries === 0) call.exchange.recycleBody();
    call.body = null;
    call.validated = null;
    shrinkReservation(this.#services, call, 0);
  }

  /** Why an answer is of no use for this call, or null. */
  #refusalOf(head: ResponseHead): GatewayError | null {
    if (head.status >= 300 && head.status < 400)
      return new GatewayError('upstream_error', 'The upstream answered with a redirect.');
    // What the client could decode was decoded there, and its header is gone.
    const coding = head.get('content-encoding');
    if (coding !== null && coding.toLowerCase() !== 'identity')
      return new GatewayError('upstream_error', 'The upstream compressed its answer in an unknown way.');
    if (head.status >= 400 || this.#streamed === isEventStream(head)) return null;
    return new GatewayError(
      'unsupported_stream_event',
      this.#streamed
        ? 'A stream was asked for, and the upstream answered with something else.'
        : 'The upstream answered with a stream that was not asked for.',
    );
  }

  /** Gives an answer up that cannot be used, before any of it was relayed. */
  #give(error: GatewayError): void {
    this.#mode = 'over';
    this.upstream?.cancel();
    if (this.#committed) this.#failStream(error);
    else this.#owner.onAttemptFailed(error, null);
  }

  #failStream(error: GatewayError, outcome: Outcome = 'upstream_error'): void {
    if (this.#tail !== null) this.#call.usage = this.#protocol.judgeEnd(this.#tail.bytes()).usage;
    refuseStream(this.#call, error, this.#runs?.overlong ?? false);
    this.#settle(outcome);
  }

  #answerOutcome(): Outcome {
    return (this.#head?.status ?? 0) >= 400 ? 'upstream_error' : 'complete';
  }

  #beginBytes(): void {
    const head = this.#head as ResponseHead;
    this.#mode = 'bytes';
    this.#committed = true;
    if (head.status < 300) this.#tail = new Tail();
    this.#call.exchange.begin(head.status, answerLines(this.#call, head));
    this.#call.endedAt = 0;
    this.#releaseRequest();
  }

  #onWhole(chunk: Buffer): boolean {
    const head = this.#head as ResponseHead;
    if (this.#gathered.length === 0 && chunk.length === head.contentLength && !this.#committed) {
      this.#sendWhole(head, chunk);
      return true;
    }
    if (this.#gathered.add(chunk, head.contentLength) || this.#committed) return true;
    const gathered = this.#gathered.take();
    this.#beginBytes();
    if (gathered.length > 0) this.onData(gathered);
    return this.onData(chunk);
  }

  #sendWhole(head: ResponseHead, body: Buffer): void {
    const call = this.#call;
    if (head.status < 300) call.usage = this.#protocol.usageOf(body);
    if (call.exchange.respond(head.status, answerLines(call, head), body))
      this.#settle(this.#answerOutcome());
    else {
      call.endedAt = 0;
      this.#mode = 'sent';
    }
  }

  #endWhole(): void {
    const head = this.#head as ResponseHead;
    const body = this.#gathered.take();
    if (this.#committed) this.#failStream(statusError(head.status, body));
    else this.#sendWhole(head, body);
  }

  #beginEvents(): void {
    this.#mode = 'events';
    this.#runs = new EventRuns(eventBytes);
  }

  #commitStream(): void {
    if (this.#committed) return;
    this.#committed = true;
    this.#tail = new Tail();
    this.#call.exchange.begin(200, streamLines(this.#call, this.#head));
    this.#call.endedAt = 0;
  }

  #onEvents(chunk: Buffer): boolean {
    let run = (this.#runs as EventRuns).push(chunk);
    if (run === null) return true;
    if (!this.#judged) {
      if (this.#gathered.length > 0) run = Buffer.concat([this.#gathered.take(), run]);
      // Part of an event cannot be judged; one so large is taken for what was asked for.
      const start = this.#runs?.overlong ? 'meaningful' : this.#protocol.judgeStart(run);
      if (start instanceof GatewayError) {
        this.#give(start);
        return true;
      }
      if (start === 'meaningful') this.#judged = true;
      else if (!this.#committed && run.length < earlyBytes) {
        this.#gathered.add(run, 0);
        return true;
      }
      this.#commitStream();
      this.#releaseRequest();
    }
    return this.#writeRun(run);
  }

  #writeRun(run: Buffer): boolean {
    const { exchange } = this.#call;
    this.#heardAt = performance.now();
    (this.#tail as Tail).add(run);
    const hidden = this.#hideUsage ? this.#protocol.findUsageEvent(run) : null;
    if (hidden === null) {
      this.#flowing = exchange.write(run);
    } else {
      const before = exchange.write(run.subarray(0, hidden.start));
      this.#flowing = exchange.write(run.subarray(hidden.end)) && before;
    }
    return this.#flowing;
  }

  #endEvents(): void {
    const rest = (this.#runs as EventRuns).rest();
    if (rest !== null && isWholeEvent(rest)) this.#onEvents(Buffer.concat([rest, blankLine]));
    // Judging what was left may have ended the call.
    if (this.#mode !== 'events') return;
    if (!this.#committed || this.#tail === null) {
      this.#give(new GatewayError('upstream_error', "The upstream's stream ended before its first event."));
      return;
    }
    const call = this.#call;
    const ending = this.#protocol.judgeEnd(this.#tail.bytes());
    call.usage = ending.usage;
    if (ending.state === 'incomplete') {
      this.#failStream(
        new GatewayError('upstream_error', "The upstream's stream ended before it was complete."),
      );
      return;
    }
    call.exchange.end();
    this.#settle(ending.state === 'complete' ? 'complete' : 'upstream_error');
  }
}
