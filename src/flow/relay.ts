import { GatewayError } from '../errors.js';
import type { ExchangeListener } from '../http/exchange.js';
import type { TextProtocol } from '../protocols/protocol.js';
import { Tail } from '../stream/tail.js';
import type { ResponseHead, UpstreamExchange, UpstreamFailure, UpstreamHandler } from '../upstream/client.js';
import { EventRuns, parseEvent } from '../wire/sse.js';
import { account } from './account.js';
import { answerLines, streamLines } from './answer.js';
import type { Call, Outcome } from './call.js';
import { failureError, statusError } from './failure.js';
import { refuseStream } from './refuse.js';
import type { Services, Watched } from './services.js';

/** Answers up to this size leave in one piece, so that an upstream that dies in their middle is still an error status. */
const wholeBytes = 256 * 1024;
/** An event that is larger is passed on in parts. */
const eventBytes = 1024 * 1024;
/** Comments before the first event that are kept back; more of them commit the stream. */
const earlyBytes = 16 * 1024;
const keepAliveComment = Buffer.from(': keep-alive\n\n');
const blankLine = Buffer.from('\n\n');
const nothing: Buffer = Buffer.alloc(0);

/** Who decides what follows an attempt that failed before anything was relayed. */
export interface AttemptOwner {
  onAttemptFailed(error: GatewayError, failure: UpstreamFailure | null): void;
}

/**
 * Hands an upstream's answer to the client as it comes, with the usage read beside it. One for each call, used for
 * all of its attempts; it is the handler of the upstream's answer and the listener of the client's side at once.
 *
 * `waiting` for a head -> `whole` (collected, leaves at once), `bytes` (passed on as it comes) or `events`
 * (passed on in whole events) -> `over`.
 */
export class Relay implements UpstreamHandler, ExchangeListener, Watched {
  upstream: UpstreamExchange | null = null;
  readonly #services: Services;
  readonly #call: Call;
  readonly #protocol: TextProtocol;
  readonly #owner: AttemptOwner;
  readonly #streamed: boolean;
  #hideUsage = false;
  #mode: 'waiting' | 'whole' | 'bytes' | 'events' | 'over' = 'waiting';
  #head: ResponseHead | null = null;
  /** The answer's head has left, or will with the next write. */
  #committed = false;
  #collected: Buffer = nothing;
  #collectedBytes = 0;
  #runs: EventRuns | null = null;
  #tail: Tail | null = null;
  /** An event of the protocol has come. */
  #judged = false;
  #flowing = true;
  #heardAt: number;

  constructor(services: Services, call: Call, protocol: TextProtocol, owner: AttemptOwner) {
    this.#services = services;
    this.#call = call;
    this.#protocol = protocol;
    this.#owner = owner;
    this.#streamed = call.validated?.stream ?? false;
    this.#heardAt = call.validatedAt;
    call.exchange.listener = this;
    if (this.#streamed) services.watched.add(this);
  }

  get committed(): boolean {
    return this.#committed;
  }

  /**
   * Makes ready for an attempt. Only before anything was relayed.
   * @param hideUsage the usage event was asked for by the gateway alone, and is kept from the client
   */
  reset(hideUsage: boolean): void {
    this.#hideUsage = hideUsage;
    this.#mode = 'waiting';
    this.#head = null;
    this.#collected = nothing;
    this.#collectedBytes = 0;
    this.#runs = null;
    this.#judged = false;
  }

  onHead(head: ResponseHead): void {
    const call = this.#call;
    call.answeredAt = performance.now();
    call.sentAt = this.upstream?.sentAt ?? 0;
    this.#head = head;
    if (head.status >= 400) this.#mode = 'whole';
    else if (head.status >= 300)
      this.#give(new GatewayError('upstream_error', 'The upstream answered with a redirect.'));
    else if (this.#streamed === isEventStream(head)) {
      if (this.#streamed) this.#beginEvents();
      else if (head.contentLength > wholeBytes) this.#beginBytes();
      else this.#mode = 'whole';
    } else {
      this.#give(
        new GatewayError(
          'unsupported_stream_event',
          this.#streamed
            ? 'A stream was asked for, and the upstream answered with something else.'
            : 'The upstream answered with a stream that was not asked for.',
        ),
      );
    }
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
    const { upstream } = this;
    if (this.#mode !== 'over') upstream?.cancel();
    if (this.#tail !== null) this.#call.usage ??= this.#protocol.judgeEnd(this.#tail.bytes()).usage;
    this.#settle('client_gone');
  }

  onDrained(): void {
    this.#flowing = true;
    this.#heardAt = performance.now();
    this.upstream?.resume();
  }

  onTick(now: number): void {
    const { keepAliveMs } = this.#call.running.snapshot.timeouts;
    if (keepAliveMs === 0 || !this.#flowing || now - this.#heardAt < keepAliveMs) return;
    if (this.#mode === 'over' || this.#runs?.overlong) return;
    this.#heardAt = now;
    this.#commitStream();
    // Not under backpressure at this point, and a comment is too short to matter if it starts some.
    this.#call.exchange.write(keepAliveComment);
  }

  /** Ends the call's part in the watch and in the log. */
  #settle(outcome: Outcome): void {
    this.#mode = 'over';
    // An attempt that was given up may still hold the body, so only a call that needed one attempt gives it back.
    if (this.upstream?.bodyReleased && this.#call.retries === 0) this.#call.exchange.recycleBody();
    this.upstream = null;
    if (this.#streamed) this.#services.watched.delete(this);
    account(this.#services, this.#call, outcome);
  }

  /** Gives an answer up that cannot be used, before any of it was relayed. */
  #give(error: GatewayError): void {
    this.#mode = 'over';
    this.upstream?.cancel();
    if (this.#committed) this.#failStream(error);
    else this.#owner.onAttemptFailed(error, null);
  }

  #failStream(error: GatewayError): void {
    if (this.#tail !== null) this.#call.usage = this.#protocol.judgeEnd(this.#tail.bytes()).usage;
    refuseStream(this.#services, this.#call, error, this.#runs?.overlong ?? false);
    this.#settle('upstream_error');
  }

  /** Drops the watch of a stream that was refused before it began. */
  release(): void {
    if (this.#streamed) this.#services.watched.delete(this);
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
  }

  #onWhole(chunk: Buffer): boolean {
    const head = this.#head as ResponseHead;
    if (this.#collectedBytes === 0 && chunk.length === head.contentLength && !this.#committed) {
      this.#sendWhole(head, chunk);
      return true;
    }
    const needed = this.#collectedBytes + chunk.length;
    if (needed > wholeBytes) {
      if (this.#committed) return true;
      const collected = this.#collected.subarray(0, this.#collectedBytes);
      this.#beginBytes();
      if (collected.length > 0) this.onData(collected);
      return this.onData(chunk);
    }
    if (needed > this.#collected.length) {
      const size = head.contentLength > 0 ? head.contentLength : Math.max(4096, needed * 2);
      const larger = Buffer.allocUnsafe(Math.max(size, needed));
      this.#collected.copy(larger, 0, 0, this.#collectedBytes);
      this.#collected = larger;
    }
    chunk.copy(this.#collected, this.#collectedBytes);
    this.#collectedBytes = needed;
    return true;
  }

  #sendWhole(head: ResponseHead, body: Buffer): void {
    const call = this.#call;
    if (head.status < 300) call.usage = this.#protocol.usageOf(body);
    call.exchange.respond(head.status, answerLines(call, head), body);
    this.#settle(this.#answerOutcome());
  }

  #endWhole(): void {
    const head = this.#head as ResponseHead;
    const body = this.#collected.subarray(0, this.#collectedBytes);
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
      if (this.#collectedBytes > 0) {
        run = Buffer.concat([this.#collected, run]);
        this.#collectedBytes = 0;
      }
      const start = this.#protocol.judgeStart(run);
      if (start instanceof GatewayError) {
        this.#give(start);
        return true;
      }
      if (start === 'meaningful') this.#judged = true;
      else if (!this.#committed && run.length < earlyBytes) {
        this.#collected = Buffer.from(run);
        this.#collectedBytes = run.length;
        return true;
      }
      this.#commitStream();
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

function isEventStream(head: ResponseHead): boolean {
  const type = head.get('content-type');
  return type?.toLowerCase().startsWith('text/event-stream') ?? false;
}

/** Some upstreams leave out the blank line behind their last event; what was cut short is no event. */
function isWholeEvent(rest: Buffer): boolean {
  const { data } = parseEvent(rest.toString('utf8'));
  if (data === null || data === '[DONE]') return data !== null;
  try {
    JSON.parse(data);
    return true;
  } catch {
    return false;
  }
}
