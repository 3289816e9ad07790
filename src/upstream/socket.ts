/**
 * A WebSocket toward an upstream (RFC 6455).
 *
 *   connecting ──► asked ──► open ──► closing ──► over
 *        │           ├──► refused ──────────────────▲
 *        └───────────┴──────────────────────────────┘
 */

import type { Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { type FaultPlace, GatewayError, guard, type UpstreamFailureReason } from '../errors.js';
import { closeCode } from '../wire/close-code.js';
import { type Dialer, type DialListener, dial, lateDetail, type Reading, unconnectedReason } from './dial.js';
import { tlsFailureDetail } from './secure.js';
import { controlFrame, createFrameWriter, type FrameSink } from './socket-frames.js';
import { type Handshake, handshakeOf, UpgradeAnswer } from './socket-handshake.js';
import { closePayload, FrameReader, noRoom } from './socket-reader.js';
import type { SocketFault, SocketListener, SocketRequest, UpstreamSocket } from './socket-types.js';
import { Timed, TimerWheel } from './timers.js';

/** `send` returns false above this: about the amount of data in transit to a distant upstream. */
const maxWaitingBytes = 64 * 1024;
/** Messages of one read that are delivered before the event loop continues: a few milliseconds of work. */
const mostMessages = 1000;
/** How long the other side may take to complete a closing handshake, in milliseconds. */
const closeMs = 1000;
/** How long to wait for the body of a refusal, in milliseconds. */
const refusalMs = 2000;

const wheel = new TimerWheel();
const frames = createFrameWriter();
const nothing = Buffer.alloc(0);
/** TLS connections are read as streams: a buffer for each of thousands of sessions would be idle most of the time. */
const reading: Reading = { sharedBuffer: Buffer.allocUnsafeSlow(128 * 1024), ownBytes: 0 };

/** Opens a WebSocket. Failures are reported to the listener. */
export function openSocket(request: SocketRequest, dialer: Dialer, listener: SocketListener): UpstreamSocket {
  const socket = new SocketConnection(request, dialer, listener);
  socket.start();
  return socket;
}

class SocketConnection extends Timed implements UpstreamSocket, FrameSink, DialListener {
  batched = 0;
  raw!: Socket;
  readonly #request: SocketRequest;
  readonly #dialer: Dialer;
  readonly #listener: SocketListener;
  #state: 'connecting' | 'asked' | 'declined' | 'open' | 'closing' | 'over' = 'connecting';
  /** True once the origin is connected. A failure between this and the request is one of the TLS handshake. */
  #transportUp = false;
  #handshake: Handshake | null = null;
  /** Set from sending the request until the answer has been read. */
  #answer: UpgradeAnswer | null = null;
  #reader!: FrameReader;
  #paused = false;
  /** Unprocessed bytes of the read in which reading was paused. */
  #held: Buffer | null = null;
  /** True while delivery is suspended so that the event loop can continue. */
  #resting = false;
  /** True when the connection has ended while bytes were held. */
  #ended = false;
  /** Reason for the end of the open connection, as far as it is known. */
  #brokenBy = 'closed without a close frame';
  /** True after `send` has returned false. */
  #behind = false;
  /** Payload of the newest unanswered ping (RFC 6455 section 5.5.3: answering the newest is sufficient). */
  #owedPong: Buffer | null = null;
  /** `bytesRead` at the last check for silence, or when the request was sent. */
  #bytesRead = 0;
  #heardAt = 0;
  /** When the ping of the present silence was sent; 0 if none was. */
  #pingedAt = 0;

  constructor(request: SocketRequest, dialer: Dialer, listener: SocketListener) {
    super();
    this.#request = request;
    this.#dialer = dialer;
    this.#listener = listener;
  }

  start(): void {
    const { origin, connectMs } = this.#request;
    try {
      this.#handshake = handshakeOf(this.#request);
      dial(origin, this.#dialer, reading, this);
      wheel.set(this, performance.now() + connectMs);
    } catch (error) {
      // Node throws for a port out of range and for a broken PEM text, `handshakeOf` for a header that cannot be sent.
      const said = error instanceof GatewayError ? error.cause : error;
      const detail = said instanceof Error ? said.message : String(said);
      process.nextTick(this.#guard(() => this.#fail('connect_failed', detail)));
    }
  }

  get waitingBytes(): number {
    return this.#state === 'open' || this.#state === 'closing' ? this.raw.writableLength + this.batched : 0;
  }

  get takesFrames(): boolean {
    return this.#state === 'open' && this.raw.writable;
  }

  send(data: Uint8Array, isBinary: boolean): boolean {
    if (this.#state === 'connecting' || this.#state === 'asked')
      throw new Error('the socket is not open yet');
    if (!this.takesFrames) return false;
    frames.write(this, data, isBinary);
    // The batch is not included: no 'drain' would follow it.
    if (this.raw.writableLength <= maxWaitingBytes) return true;
    this.#behind = true;
    return false;
  }

  pause(): void {
    if (this.#paused || this.#state === 'closing' || this.#state === 'over') return;
    this.#paused = true;
    if (this.#state === 'open') this.raw.pause();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    if (!this.#resting) this.#readOn();
  }

  /** Suspends delivery until the next turn of the event loop. Called after very many messages in one read. */
  #rest(): void {
    this.#resting = true;
    setImmediate(
      this.#guard(() => {
        this.#resting = false;
        if (!this.#paused) this.#readOn();
      }),
    );
  }

  close(code: number, reason: string | Buffer): void {
    if (this.#state === 'closing' || this.#state === 'over') return;
    if (this.#state !== 'open') {
      this.terminate();
      return;
    }
    frames.flush();
    this.#state = 'closing';
    this.#reader.discard();
    this.#writeControl('close', closePayload(code, reason));
    wheel.set(this, performance.now() + closeMs);
    // Reading must continue, or the answer to the close frame would not be read. Deferred, since the listener expects
    // no call before this returns.
    this.#paused = false;
    this.#resting = false;
    process.nextTick(this.#guard(() => this.#readOn()));
  }

  terminate(): void {
    this.#release();
    this.raw?.destroy();
  }

  /** Called at a deadline, and for each check for silence. */
  expire(now: number): void {
    switch (this.#state) {
      case 'connecting':
        this.#fail('connect_timeout', lateDetail(this.#request.origin, this.#transportUp));
        break;
      case 'asked':
        this.#fail('first_byte_timeout', 'no answer in time');
        break;
      case 'declined':
        this.#refuse();
        break;
      case 'open':
        this.#watch(now);
        break;
      case 'closing':
        this.#break('idle_timeout', 'no answer to the close frame');
        break;
      case 'over':
        this.raw.destroy();
    }
  }

  override onFault(where: FaultPlace, fault: unknown): void {
    this.terminate();
    this.#listener.onFault(where, fault);
  }

  #guard<Arguments extends unknown[]>(callback: (...args: Arguments) => void): (...args: Arguments) => void {
    return guard('upstream', this, callback);
  }

  onSocket(socket: Socket): void {
    this.raw = socket;
    socket.on(
      'drain',
      this.#guard(() => this.#onDrain()),
    );
  }

  onTransport(): void {
    this.#transportUp = true;
  }

  onNoTunnel(reason: UpstreamFailureReason, detail: string): void {
    if (this.#isOver) wheel.clear(this);
    else this.#fail(reason, detail);
  }

  onReady(): void {
    const handshake = this.#handshake;
    if (this.#state !== 'connecting' || handshake === null) return;
    this.#state = 'asked';
    // Earlier bytes are the proxy's.
    this.#bytesRead = this.raw.bytesRead;
    this.#handshake = null;
    this.#answer = new UpgradeAnswer(handshake);
    wheel.set(this, performance.now() + this.#request.firstByteMs);
    this.raw.write(handshake.text, 'latin1');
  }

  onRead(bytes: Buffer, length: number): boolean {
    switch (this.#state) {
      case 'asked':
      case 'declined':
        this.#readAnswer(bytes, length);
        break;
      case 'open':
      case 'closing':
        this.#take(bytes, 0, length);
        break;
    }
    return !this.#isStopped || this.#state !== 'open';
  }

  #readAnswer(bytes: Buffer, length: number): void {
    const answer = this.#answer;
    if (answer === null) return;
    switch (answer.read(bytes, length)) {
      case 'malformed':
        this.#fail('malformed_answer', answer.problem);
        break;
      case 'open':
        this.#open();
        // Bytes that arrived together with the answer.
        if (this.#state === 'open') this.#take(bytes, answer.next, length);
        break;
      case 'declined':
        if (this.#state === 'declined') return;
        this.#state = 'declined';
        wheel.set(this, performance.now() + refusalMs);
        break;
      case 'over':
        this.#refuse();
    }
  }

  #open(): void {
    this.#state = 'open';
    this.#answer = null;
    this.#reader = new FrameReader(this.#request.maxMessageBytes, (bytes) => this.#listener.hold(bytes));
    this.#watch(performance.now());
    this.#listener.onOpen();
  }

  /** Reports a refusal, with the part of the body that has arrived: the status is sufficient. */
  #refuse(): void {
    const answer = this.#answer;
    if (answer === null || answer.head === null) return;
    this.terminate();
    this.#listener.onDeclined(answer.head, answer.body());
  }

  /** Reads frames. If the listener throws, the connection is terminated, so that it is not left half read. */
  #take(bytes: Buffer, start: number, end: number): void {
    try {
      this.#takeFrames(bytes, start, end);
    } catch (error) {
      this.terminate();
      throw error;
    }
  }

  #takeFrames(bytes: Buffer, start: number, end: number): void {
    const reader = this.#reader;
    const listener = this.#listener;
    reader.begin(bytes, start, end);
    let messages = 0;
    let hasDelivered = false;
    for (;;) {
      if (this.#isStopped) {
        if (reader.at < end && !this.#hold(bytes.subarray(reader.at, end))) {
          this.#stop(hasDelivered, noRoom.code, nothing, noRoom);
          return;
        }
        break;
      }
      const found = reader.next();
      if (found === 'more') break;
      if (found === 'message') {
        if (this.#state !== 'open') continue;
        hasDelivered = true;
        if (++messages === mostMessages) this.#rest();
        listener.onMessage(reader.payload, reader.isBinary);
        // The listener may have ended the socket.
        if (this.#isOver) return;
      } else if (found === 'ping') {
        this.#owedPong = Buffer.from(reader.payload);
      } else if (found !== 'pong') {
        this.#stop(hasDelivered, reader.code, found === 'close' ? reader.payload : nothing, reader.fault);
        return;
      }
    }
    if (this.#owedPong !== null) this.#answerPing();
    if (hasDelivered && this.#state === 'open') listener.onReadEnd();
  }

  /** Ends the socket with a close frame. @param hasDelivered whether messages of this read have been delivered */
  #stop(hasDelivered: boolean, code: number, reason: Buffer, fault: SocketFault | null): void {
    if (hasDelivered && this.#state === 'open') this.#listener.onReadEnd();
    if (!this.#isOver) this.#endWith(code, reason, fault);
  }

  /** True while nothing of what was read may be delivered. */
  get #isStopped(): boolean {
    return this.#paused || this.#resting;
  }

  get #isOver(): boolean {
    return this.#state === 'over';
  }

  /** Holds the rest of a read until reading resumes. @returns false when there is no room for it */
  #hold(rest: Buffer): boolean {
    if (!this.#listener.hold(this.#reader.keptBytes + rest.length)) return false;
    this.#held = Buffer.from(rest);
    return true;
  }

  /** Continues after a pause, or before the end. */
  #readOn(): void {
    if (this.#state !== 'open' && this.#state !== 'closing') return;
    const held = this.#held;
    if (held !== null) {
      this.#held = null;
      this.#listener.hold(this.#reader.keptBytes);
      this.#take(held, 0, held.length);
      if (this.#isStopped || this.#isOver) return;
    }
    if (this.#ended) this.#break('reset', this.#brokenBy);
    else this.raw.resume();
  }

  #answerPing(): void {
    if (this.#owedPong === null || !this.takesFrames || this.raw.writableLength > maxWaitingBytes) return;
    this.#writeControl('pong', this.#owedPong);
    this.#owedPong = null;
  }

  #writeControl(kind: 'close' | 'ping' | 'pong', payload: Buffer): void {
    if (this.raw.writable) this.raw.write(controlFrame(kind, payload));
  }

  #onDrain(): void {
    this.#answerPing();
    if (!this.#behind || this.#state !== 'open') return;
    this.#behind = false;
    this.#listener.onDrained();
  }

  /** Called when the upstream has ended its side, or the connection has closed. */
  onPeerEnd(): void {
    switch (this.#state) {
      case 'connecting':
        this.#fail(this.#transportUp ? 'tls_failed' : 'connect_failed', 'closed');
        break;
      case 'asked':
        this.#fail('reset', this.raw.bytesRead === this.#bytesRead ? beforeAnswer : withinAnswer);
        break;
      case 'declined':
        this.#refuse();
        break;
      case 'open':
      case 'closing':
        if (this.#held === null) this.#break('reset', this.#brokenBy);
        else this.#ended = true;
    }
  }

  onSocketClose(): void {
    if (this.#isOver) wheel.clear(this);
    else this.onPeerEnd();
  }

  onSocketError(error: NodeJS.ErrnoException): void {
    const words = error.code ?? error.message;
    if (this.#state === 'asked') this.#fail('reset', words);
    else if (this.#state !== 'connecting') this.#brokenBy = words;
    else if (this.#transportUp) this.#fail('tls_failed', tlsFailureDetail(error));
    else this.#fail(unconnectedReason(error), words);
  }

  #fail(reason: UpstreamFailureReason, detail: string): void {
    if (this.#state === 'over') return;
    const bytesSent = this.#state !== 'connecting';
    const { origin } = this.#request;
    if (!bytesSent) this.#dialer.names.forget((origin.proxy ?? origin).host);
    this.terminate();
    this.#listener.onFailed({ reason, detail, bytesSent, headSeen: false, sentMs: 0 });
  }

  /**
   * Answers the upstream's close frame, or reports an error in what it sent. The upstream then has to end the
   * connection.
   */
  #endWith(code: number, reason: Buffer, fault: SocketFault | null): void {
    if (this.#state === 'open') {
      frames.flush();
      this.#writeControl('close', closePayload(code, reason));
    }
    this.#release();
    this.raw.end();
    wheel.set(this, performance.now() + closeMs);
    this.#listener.onClosed(code, reason, fault);
  }

  /** Ends the open connection without a close frame. */
  #break(reason: UpstreamFailureReason, detail: string): void {
    this.terminate();
    this.#listener.onClosed(closeCode.broken, nothing, { reason, detail });
  }

  /**
   * Checks for silence. Bytes count, not messages: a large message takes long on a slow line, and a pong cannot
   * overtake it.
   */
  #watch(now: number): void {
    const { pingMs } = this.#request;
    const { raw } = this;
    if (this.#heardAt === 0 || this.#paused || raw.bytesRead !== this.#bytesRead) {
      this.#bytesRead = raw.bytesRead;
      this.#heardAt = now;
      this.#pingedAt = 0;
    }
    // Counted from the ping: a process that did not run has asked nothing meanwhile, however long the silence was.
    if (this.#pingedAt > 0 && now - this.#pingedAt >= pingMs) {
      this.#break('idle_timeout', 'no answer to a ping');
      return;
    }
    if (this.#pingedAt === 0 && now - this.#heardAt >= pingMs) {
      this.#pingedAt = now;
      this.#writeControl('ping', nothing);
    }
    wheel.set(this, now + pingMs / 4);
  }

  #release(): void {
    if (this.#state === 'open' || this.#state === 'closing') this.#listener.hold(0);
    this.#state = 'over';
    this.#held = null;
    this.#owedPong = null;
    wheel.clear(this);
  }
}

const beforeAnswer = 'closed before any byte of the answer';
const withinAnswer = 'closed within the head of the answer';
