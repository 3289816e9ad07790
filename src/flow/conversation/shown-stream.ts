import { performance } from 'node:perf_hooks';
import { failureError } from '../../attempts/reported-error.js';
import type { Upstream } from '../../config/types.js';
import { tokensOf } from '../../conversation/estimate-usage.js';
import { unknownTokens } from '../../conversation/usage.js';
import type { FaultPlace, GatewayError } from '../../errors.js';
import type { ExchangeListener } from '../../http/exchange.js';
import { SweepMember } from '../../http/sweep.js';
import { responses } from '../../protocols/responses/index.js';
import { endedResponse } from '../../protocols/responses/stream/rules.js';
import { ObservedTransform } from '../../stream/observe.js';
import { streamedWeight } from '../../stream/streamed-text.js';
import type { UpstreamExchange, UpstreamFailure } from '../../upstream/types.js';
import { EventRuns } from '../../wire/sse.js';
import { streamLines } from '../answer/lines.js';
import { lastEvent } from '../answer/phase.js';
import { noteShown, settleShown } from '../background/settle.js';
import type { AuthenticatedCall } from '../call.js';
import { takeAnswerMemory } from '../memory-budget.js';
import { account } from '../record/account.js';
import { endFailedStream, keepAliveBytes, outcomeOf, refuse, refuseStream } from '../refuse.js';
import type { Services } from '../services.js';
import type { EventTaker } from '../upstream/collect.js';
import type { WaitingClient } from '../upstream/waiting-client.js';

interface ShownResponse {
  readonly id: string;
  readonly upstream: Upstream;
  /** Called with an error before it is sent to the client. */
  readonly onError: (error: GatewayError) => void;
  /** Called with the events. Of very large ones, only ids and numbers are to be read. */
  readonly onRun: (run: Buffer) => void;
}

/** What a stream has shown is recorded each time that it has grown by this factor, and when the stream ends. */
const growth = 1.25;
/** Less than this is recorded at the end only. */
const leastNoted = 400;

/**
 * Relays the events with which an upstream shows a background response. The response's usage does not belong to this
 * call: it is settled once for the call that started it, by the first process that sees its end. What was shown is
 * recorded for that, since a response that is cancelled may report neither usage nor output.
 */
export class ShownStream extends SweepMember implements EventTaker, ExchangeListener {
  readonly #services: Services;
  readonly #call: AuthenticatedCall;
  readonly #waiting: WaitingClient;
  readonly #shown: ShownResponse;
  readonly #transform: ObservedTransform;
  readonly #runs: EventRuns;
  #upstream: UpstreamExchange | null = null;
  /** Whether bytes were sent to the client. */
  #hasBegun = false;
  #isFlowing = true;
  #heardAt = 0;
  /** Weight of the text that was shown, and of that which was recorded. */
  #weight = 0;
  #noted = 0;

  constructor(services: Services, call: AuthenticatedCall, waiting: WaitingClient, shown: ShownResponse) {
    super();
    this.#services = services;
    this.#call = call;
    this.#waiting = waiting;
    this.#shown = shown;
    this.#transform = new ObservedTransform({
      rules: responses,
      hideUsage: false,
      streamsUnasked: false,
      amend: null,
      keep: null,
      watchAll: (run) => this.#see(run),
      inputEstimate: 0,
      tokens: unknownTokens,
      secrets: shown.upstream.secrets,
    });
    this.#runs = new EventRuns(this.#transform.eventBytes);
  }

  /** Whether the upstream answers with a stream. */
  get isTaken(): boolean {
    return this.#upstream !== null;
  }

  onEvents(upstream: UpstreamExchange): void {
    this.#upstream = upstream;
    this.#heardAt = performance.now();
    this.#call.exchange.listener = this;
    this.#services.sweepList.add(this);
  }

  onData(chunk: Buffer): boolean {
    if (this.#call.accounted) return true;
    const run = this.#runs.push(chunk);
    const refusal = takeAnswerMemory(this.#services, this.#call, this.#runs.held);
    if (refusal !== null) this.#fail(refusal);
    else if (run !== null) this.#pass(run);
    return this.#isFlowing;
  }

  #pass(run: Buffer): void {
    const transform = this.#transform;
    const ended = endedResponse(run, true);
    // The event of a failed response is also what the client requested.
    const isShown = this.#hasBegun || this.#runs.overlong || ended !== null;
    const judged = isShown ? 'meaningful' : transform.judge(run);
    if (judged === 'silence') return;
    if (judged !== 'meaningful') {
      this.#fail(judged);
      return;
    }
    this.#begin();
    this.#write(transform.pass(run, this.#runs.overlong));
    if (!this.#runs.overlong) this.#weight += streamedWeight(run, run.length);
    if (this.#weight >= Math.max(leastNoted, this.#noted * growth)) this.#note();
    if (transform.failure !== null) this.#fail(transform.failure.error);
  }

  /** @param run whole events */
  #see(run: Buffer): void {
    this.#shown.onRun(run);
    const ended = endedResponse(run, true);
    if (ended !== null) void settleShown(this.#services, this.#call.key.id, this.#shown.id, ended);
  }

  #note(): void {
    if (this.#weight === this.#noted) return;
    this.#noted = this.#weight;
    noteShown(this.#services, this.#call.key.id, this.#shown.id, tokensOf(this.#weight));
  }

  #begin(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    this.#call.gatewayPath = 'exact';
    this.#call.exchange.begin(200, streamLines(this.#call, null));
  }

  #write(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#heardAt = performance.now();
    this.#isFlowing = this.#call.exchange.write(bytes);
  }

  /** Called when the upstream's stream has ended. @param failure null if it ended regularly */
  end(failure: UpstreamFailure | null): void {
    if (this.#call.accounted) return;
    const last = lastEvent(this.#runs);
    if (last !== null) this.#pass(last);
    if (this.#call.accounted) return;
    const { isComplete } = this.#transform;
    if (failure !== null && !isComplete) {
      this.#fail(failureError(failure));
      return;
    }
    this.#begin();
    const { last: rest, error } = this.#transform.end();
    if (rest !== null) this.#write(rest);
    // The client may have asked for events after the last one; an empty stream is then no error.
    if (error !== null && (!this.#isEmpty || failure !== null)) this.#fail(error);
    else this.#finish();
  }

  get #isEmpty(): boolean {
    return this.#call.exchange.bytesOut === 0;
  }

  #finish(): void {
    const call = this.#call;
    const { passedError } = this.#transform;
    this.#stop();
    call.error = passedError;
    if (passedError === null) call.exchange.end();
    else endFailedStream(call);
    account(this.#services, call, passedError === null ? 'complete' : 'upstream_error');
  }

  #fail(error: GatewayError): void {
    const call = this.#call;
    const transform = this.#transform;
    this.#stop();
    this.#waiting.cancel();
    this.#shown.onError(error);
    if (!this.#hasBegun) {
      refuse(this.#services, call, error);
      return;
    }
    refuseStream(call, error, {
      number: transform.nextNumber,
      insideEvent: this.#runs.overlong,
      words: (event) => transform.lastWords(error, event),
    });
    account(this.#services, call, outcomeOf(error));
  }

  #stop(): void {
    this.#services.sweepList.remove(this);
    this.#note();
    this.#isFlowing = true;
  }

  override onSweep(now: number): void {
    const { keepAliveMs } = this.#call.running.snapshot.timeouts;
    if (keepAliveMs === 0 || !this.#isFlowing || this.#runs.overlong || now - this.#heardAt < keepAliveMs)
      return;
    this.#begin();
    this.#write(keepAliveBytes(this.#call));
  }

  onClientGone(): void {
    this.#stop();
    this.#waiting.onClientGone();
  }

  onDrained(): void {
    this.#isFlowing = true;
    this.#heardAt = performance.now();
    this.#upstream?.resume();
  }

  onOurFault(error: GatewayError): void {
    if (!this.#call.accounted) this.#fail(error);
  }

  override onFault(where: FaultPlace, fault: unknown): void {
    this.#call.onFault(where, fault);
  }
}
