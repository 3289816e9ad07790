import type { Socket } from 'node:net';
import { audioEvent, clientFrame, serverFrame, serverFrameBytes } from './frames.js';
import type { LatencyCounts } from './latency-counts.js';
import { openRawSocket, type RawSocketListener, type SocketTarget } from './raw-socket.js';

/** What the sessions of a client have counted. */
export interface EchoCounts {
  echoes: number;
  broken: number;
  /** Sessions that received something other than what they had sent. */
  wrong: number;
  readonly latencies: LatencyCounts;
}

/**
 * A session on which one message is sent repeatedly. All of its frames are alike, so each received byte is compared
 * by its position, and nothing is parsed.
 */
export class EchoSession implements RawSocketListener {
  /** Called with the number of messages that have come back. */
  onEchoes: ((count: number) => void) | null = null;
  readonly #counts: EchoCounts;
  readonly #frames: Buffer;
  readonly #expected: Buffer;
  readonly #frameBytes: number;
  /** Times at which the messages under way were sent, in a ring. */
  readonly #sentAt: Float64Array;
  #sent = 0;
  #echoed = 0;
  /** Received bytes of the current frame. */
  #partial = 0;
  #socket: Socket | null = null;

  private constructor(counts: EchoCounts, number: number, window: number) {
    const message = audioEvent(number);
    const frame = clientFrame(message);
    this.#counts = counts;
    this.#frameBytes = frame.length;
    this.#frames = Buffer.concat(Array<Buffer>(window).fill(frame));
    this.#expected = Buffer.concat(Array<Buffer>(window).fill(serverFrame(message)));
    this.#sentAt = new Float64Array(window);
  }

  /**
   * @param plan.number number of the session, which its messages contain
   * @param plan.window most messages under way
   */
  static async open(
    target: SocketTarget,
    plan: { readonly number: number; readonly window: number },
    counts: EchoCounts,
  ): Promise<EchoSession> {
    const session = new EchoSession(counts, plan.number, plan.window);
    const socket = await openRawSocket(target, session);
    session.#socket = socket;
    socket.on('error', () => socket.destroy());
    return session;
  }

  get echoed(): number {
    return this.#echoed;
  }

  /** Number of messages that have not come back yet. */
  get underWay(): number {
    return this.#sent - this.#echoed;
  }

  /** Sends this number of messages in one write; at most as many as the window has room for. */
  send(count: number): void {
    const now = performance.now();
    const ring = this.#sentAt;
    for (let index = 0; index < count; index += 1) ring[(this.#sent + index) % ring.length] = now;
    this.#sent += count;
    this.#socket?.write(this.#frames.subarray(0, count * this.#frameBytes));
  }

  close(): void {
    this.#socket?.destroy();
  }

  onBytes(chunk: Buffer): void {
    const end = this.#partial + chunk.length;
    const possible = this.underWay * serverFrameBytes;
    if (end > possible || this.#expected.compare(chunk, 0, chunk.length, this.#partial, end) !== 0) {
      this.#counts.wrong += 1;
      this.close();
      return;
    }
    const count = Math.floor(end / serverFrameBytes);
    this.#partial = end - count * serverFrameBytes;
    if (count === 0) return;
    const now = performance.now();
    const ring = this.#sentAt;
    for (let index = 0; index < count; index += 1)
      this.#counts.latencies.add(now - (ring[(this.#echoed + index) % ring.length] ?? now));
    this.#echoed += count;
    this.#counts.echoes += count;
    this.onEchoes?.(count);
  }

  onBreak(): void {
    this.#counts.broken += 1;
  }
}
