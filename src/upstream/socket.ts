/**
 * A WebSocket toward an upstream: `ws` reads it and speaks its control frames; the connection, its deadlines and the
 * data frames that go out are our own.
 *
 *   connecting ──► asked ──► open ──► closing ──► over
 *        │           └──► refused ──────────────────▲
 *        └──────────────────────────────────────────┘
 */
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { type ClientOptions, WebSocket } from 'ws';
import { type SecureProfiles, tlsFailureDetail } from './secure.js';
import { closingOf, faultCode } from './socket-close.js';
import { createFrameWriter, type FrameSink } from './socket-frames.js';
import {
  connectStream,
  handshakeHeaders,
  RefusalBody,
  RefusalHead,
  takeProtocol,
} from './socket-handshake.js';
import type { SocketListener, SocketRequest, UpstreamSocket } from './socket-types.js';
import { Timed, TimerWheel } from './timers.js';
import type { UpstreamFailureReason } from './types.js';

export type { SocketListener, SocketRequest, UpstreamSocket } from './socket-types.js';

/** With more than this waiting `send` says false: about what a connection has on its way to a far upstream. */
const maxWaitingBytes = 64 * 1024;
/** How long the other side may take to end its part of a closing. */
const closeMs = 1000;
/** How long the body of a refusal is waited for. */
const refusalMs = 2000;
/**
 * Pongs that may wait to be written; with more the connection is destroyed. Pings that came while reading was paused
 * are read all at once.
 */
const maxPendingPongs = 1024;
/** `ws` takes a 32-bit number, and a larger one for no limit. */
const mostMessageBytes = 0x7fffffff;
/** `ws` wants an address, of which nothing is used: connection, `host` and path are given. */
const placeholder = 'ws://upstream';

/** Options that the types do not know yet. */
interface Options extends Omit<ClientOptions, 'headers'> {
  readonly headers: Record<string, string | string[]>;
  readonly closeTimeout: number;
  readonly maxPendingAutoPongs: number;
}

interface Message {
  readonly data: Buffer;
  readonly isBinary: boolean;
}

interface Ending {
  readonly code: number;
  readonly reason: Buffer;
}

const wheel = new TimerWheel();
const frames = createFrameWriter();

/** Opens a WebSocket. What goes wrong comes through the listener. */
export function openSocket(
  request: SocketRequest,
  profiles: SecureProfiles,
  listener: SocketListener,
): UpstreamSocket {
  const socket = new SocketConnection(request, listener);
  socket.start(profiles);
  return socket;
}

class SocketConnection extends Timed implements UpstreamSocket, FrameSink {
  batched = 0;
  raw!: Socket;
  readonly #request: SocketRequest;
  readonly #listener: SocketListener;
  #websocket!: WebSocket;
  #handshake: ClientRequest | null = null;
  #state: 'connecting' | 'asked' | 'refused' | 'open' | 'closing' | 'over' = 'connecting';
  /** TCP is connected: what fails before the request is sent is the TLS handshake. */
  #transportUp = false;
  #protocol = '';
  #refusal: { readonly head: RefusalHead; readonly body: RefusalBody } | null = null;
  #paused = false;
  /** Messages that came together with the one at which reading was paused. */
  #held: Message[] = [];
  /** How it ended, while messages are held. */
  #ending: Ending | null = null;
  /** `send` has said false. */
  #behind = false;
  /** The code that what the upstream sent was refused with, or 0. */
  #fault = 0;
  /** The other side has ended the connection, perhaps without reading what is still to be written. */
  #peerEnded = false;
  /** Bytes read when silence was last looked for. */
  #bytesRead = 0;
  #heardAt = 0;
  #pinged = false;

  constructor(request: SocketRequest, listener: SocketListener) {
    super();
    this.#request = request;
    this.#listener = listener;
  }

  start(profiles: SecureProfiles): void {
    const request = this.#request;
    try {
      const headers = handshakeHeaders(request);
      const raw = connectStream(request, profiles);
      this.raw = raw;
      // What there is to say of it comes from `ws`, which does not listen at all times.
      raw.on('error', () => {});
      this.#websocket = this.#wrap(raw, headers);
      raw.on('connect', () => this.#onTransport());
      if (request.origin.secure) raw.on('secureConnect', () => this.#ask());
      wheel.set(this, performance.now() + request.connectMs);
    } catch (error) {
      // Node refuses a port out of range, a broken PEM text and what a header may not hold with an exception.
      const detail = error instanceof Error ? error.message : 'not connectable';
      this.raw?.destroy();
      process.nextTick(() => this.#fail('connect_failed', detail));
    }
  }

  get waitingBytes(): number {
    return this.#state === 'open' || this.#state === 'closing' ? this.raw.writableLength + this.batched : 0;
  }

  get takesFrames(): boolean {
    return this.#websocket.readyState === WebSocket.OPEN && this.raw.writable;
  }

  send(data: Uint8Array, isBinary: boolean): boolean {
    if (this.#state === 'connecting' || this.#state === 'asked')
      throw new Error('the socket is not open yet');
    if (this.#state !== 'open' || !this.takesFrames) return false;
    frames.write(this, data, isBinary);
    // Without the batch, which no 'drain' would follow.
    if (this.raw.writableLength <= maxWaitingBytes) return true;
    this.#behind = true;
    return false;
  }

  pause(): void {
    if (this.#paused || this.#state === 'closing' || this.#state === 'over') return;
    this.#paused = true;
    if (this.#state === 'open') this.#websocket.pause();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    while (this.#held.length > 0) {
      const { data, isBinary } = this.#held.shift() as Message;
      this.#deliver(data, isBinary);
      if (this.#paused) return;
    }
    if (this.#state !== 'open') return;
    if (this.#ending !== null) this.#end(this.#ending);
    else this.#websocket.resume();
  }

  close(code: number, reason: string | Buffer): void {
    if (this.#state === 'closing' || this.#state === 'over') return;
    if (this.#state !== 'open') {
      this.terminate();
      return;
    }
    frames.flush();
    this.#state = 'closing';
    this.#held = [];
    const ending = this.#ending;
    if (ending !== null) {
      process.nextTick(() => this.#end(ending));
      return;
    }
    if (this.#paused) {
      // Or the answer to the close frame would not be read.
      this.#paused = false;
      this.#websocket.resume();
    }
    const closing = closingOf(code, reason);
    this.#websocket.close(closing.code, closing.reason);
  }

  terminate(): void {
    if (this.#state === 'over') return;
    this.#leave();
    this.#destroy();
  }

  /** A deadline, or the time to look for silence. */
  expire(now: number): void {
    switch (this.#state) {
      case 'connecting':
        this.#fail('connect_timeout', 'no connection in time');
        break;
      case 'asked':
        this.#fail('first_byte_timeout', 'no answer in time');
        break;
      case 'refused':
        this.#refuse();
        break;
      case 'open':
      case 'closing':
        this.#watch(now);
        break;
    }
  }

  #wrap(raw: Socket, headers: Record<string, string | string[]>): WebSocket {
    const { path, maxMessageBytes } = this.#request;
    const options: Options = {
      headers,
      createConnection: () => raw,
      // The request, and the credentials in it, are sent once the certificate has been checked.
      finishRequest: (handshake) => {
        handshake.path = path;
        this.#handshake = handshake;
      },
      perMessageDeflate: false,
      followRedirects: false,
      skipUTF8Validation: true,
      maxPayload: Math.min(maxMessageBytes, mostMessageBytes),
      maxPendingAutoPongs: maxPendingPongs,
      closeTimeout: closeMs,
    };
    const websocket = new WebSocket(placeholder, options as ClientOptions);
    websocket.on('upgrade', (answer) => this.#onUpgrade(answer));
    websocket.on('unexpected-response', (_request, answer) => this.#onRefusal(answer));
    websocket.on('open', () => this.#onOpen());
    websocket.on('message', (data: Buffer, isBinary) => this.#onMessage(data, isBinary));
    websocket.on('error', (error) => this.#onError(error));
    websocket.on('close', (code, reason) => this.#onClose(code, reason));
    return websocket;
  }

  #onTransport(): void {
    this.#transportUp = true;
    if (!this.#request.origin.secure) this.#ask();
  }

  #ask(): void {
    if (this.#state !== 'connecting') return;
    this.#state = 'asked';
    wheel.set(this, performance.now() + this.#request.firstByteMs);
    this.#handshake?.end();
  }

  #onUpgrade(answer: IncomingMessage): void {
    const protocol = takeProtocol(answer, this.#request.protocols);
    if (protocol === null) this.#fail('malformed_answer', 'a subprotocol that was not offered');
    else this.#protocol = protocol;
  }

  #onRefusal(answer: IncomingMessage): void {
    if (this.#state !== 'asked') return;
    if (answer.statusCode === 101) {
      this.#fail('malformed_answer', 'switch of protocols without its fields');
      return;
    }
    this.#state = 'refused';
    wheel.set(this, performance.now() + refusalMs);
    const body = new RefusalBody(answer, () => this.#refuse());
    this.#refusal = { head: new RefusalHead(answer), body };
  }

  #refuse(): void {
    const refusal = this.#refusal;
    if (this.#state !== 'refused' || refusal === null) return;
    this.terminate();
    this.#listener.onRefused(refusal.head, refusal.body.take());
  }

  #onOpen(): void {
    if (this.#state !== 'asked') return;
    this.#state = 'open';
    this.#handshake = null;
    this.raw.on('drain', () => this.#onDrain());
    this.raw.on('end', () => this.#onPeerEnd());
    if (this.#paused) this.#websocket.pause();
    this.#watch(performance.now());
    this.#listener.onOpen(this.#protocol);
  }

  #onMessage(data: Buffer, isBinary: boolean): void {
    if (this.#state !== 'open') return;
    if (this.#paused) this.#held.push({ data, isBinary });
    else this.#deliver(data, isBinary);
  }

  /** A listener that throws must not leave a half-read connection behind. */
  #deliver(data: Buffer, isBinary: boolean): void {
    try {
      this.#listener.onMessage(data, isBinary);
    } catch (error) {
      this.terminate();
      throw error;
    }
  }

  #onDrain(): void {
    if (!this.#behind || this.#state !== 'open') return;
    this.#behind = false;
    this.#listener.onDrained();
  }

  /** `ws` waits for as long as the other side leaves what was written unread. */
  #onPeerEnd(): void {
    this.#peerEnded = true;
    if (this.#state !== 'over') wheel.set(this, performance.now() + closeMs);
  }

  #onError(error: NodeJS.ErrnoException): void {
    switch (this.#state) {
      case 'connecting':
        if (this.#transportUp) this.#fail('tls_failed', tlsFailureDetail(error));
        else this.#fail('connect_failed', error.code ?? error.message);
        break;
      case 'asked':
        this.#failAsked(error);
        break;
      case 'refused':
        this.#refuse();
        break;
      default:
        this.#fault = faultCode(error);
    }
  }

  /** Errors of `ws` itself have no code: they say what is wrong with the answer. */
  #failAsked(error: NodeJS.ErrnoException): void {
    const { code, message } = error;
    if (code === undefined || code.startsWith('HPE_')) this.#fail('malformed_answer', message);
    else if (message !== 'socket hang up') this.#fail('reset', code);
    else if (this.raw.bytesRead === 0) this.#fail('reset', 'closed before any byte of the answer');
    else this.#fail('reset', 'closed within the head of the answer');
  }

  #fail(reason: UpstreamFailureReason, detail: string): void {
    if (this.#state === 'over') return;
    const bytesSent = this.#state !== 'connecting';
    this.terminate();
    this.#listener.onFailed({ reason, detail, bytesSent, headSeen: false });
  }

  #onClose(code: number, reason: Buffer): void {
    if (this.#state !== 'open' && this.#state !== 'closing') return;
    const ending = { code: code === 1006 && this.#fault !== 0 ? this.#fault : code, reason };
    wheel.clear(this);
    if (this.#held.length > 0) this.#ending = ending;
    else this.#end(ending);
  }

  #end(ending: Ending): void {
    if (this.#state === 'over') return;
    this.#leave();
    this.#listener.onClosed(ending.code, ending.reason);
  }

  /** Counts bytes, not messages: a large one on a slow line takes its time, and a pong cannot overtake it. */
  #watch(now: number): void {
    const { pingMs } = this.#request;
    const { raw } = this;
    if (this.#heardAt === 0 || this.#paused || raw.bytesRead !== this.#bytesRead) {
      this.#bytesRead = raw.bytesRead;
      this.#heardAt = now;
      this.#pinged = false;
    }
    const silence = now - this.#heardAt;
    if (this.#peerEnded || silence >= 2 * pingMs) {
      raw.destroy();
      return;
    }
    if (silence >= pingMs && !this.#pinged) {
      this.#pinged = true;
      this.#websocket.ping();
    }
    wheel.set(this, now + pingMs / 4);
  }

  #leave(): void {
    this.#state = 'over';
    this.#held = [];
    wheel.clear(this);
  }

  #destroy(): void {
    // While it is connecting, this alone keeps it from going on; destroyed by itself, it would complain later.
    this.#websocket?.terminate();
    this.raw?.destroy();
  }
}
