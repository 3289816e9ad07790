import type { Socket } from 'node:net';
import { audioEvent, clientFrame, serverFrame, serverFrameBytes } from './frames.js';
import type { LatencyCounts } from './latency-counts.js';
import { openRawSocket, type RawSocketListener, type SocketTarget } from './raw-socket.js';

/** What happens to the sessions of a client. */
export interface EchoCounts {
  echoes: number;
  broken: number;
  /** Sessions on which something else came than what was sent. */
  wrong: number;
  readonly latencies: LatencyCounts;
}

/**
 * A session on which one message is sent again and again. All of its frames are alike, so that each byte that comes
 * back is compared where it lies, and nothing is parsed.
 */
export class EchoSession implements RawSocketListener {
  /** Called when so many messages have come back. */
  onEchoes: ((count: number) => void) | null = null;
  readonly #counts: EchoCounts;
  readonly #frames: Buffer;
  readonly #expected: Buffer;
  readonly #frameBytes: number;
  /** When the messages under way were sent, in a ring. */
  readonly #sentAt: Float64Array;
  #sent = 0;
  #echoed = 0;
  /** Bytes that have come of the frame that is next. */
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
   * @param plan.number of the session, which its messages carry
   * @param plan.window messages that are under way at most
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

  /** Messages that have not come back yet. */
  get underWay(): number {
    return this.#sent - this.#echoed;
  }

  /** Sends so many messages in one write; no more than the window has room for. */
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
