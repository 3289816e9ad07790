import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';

/** Bytes waiting for the reader beyond which the writer waits, too. */
const maxWaiting = 1024 * 1024;
/** Delay of a reset, which overtakes bytes in the kernel: it holds small segments until the last ones are acknowledged. */
const longestInKernelMs = 50;
const asText = { binary: false };
const asBinary = { binary: true };

/** A WebSocket connection with its pace: one writer can wait for a time, for the reader, or for the end. */
export class SocketLine {
  readonly #socket: WebSocket;
  readonly #connection: Socket;
  #wake: ((why: 'drain' | 'call' | 'close') => void) | null = null;
  #closed = false;

  constructor(socket: WebSocket, connection: Socket) {
    this.#socket = socket;
    this.#connection = connection;
    connection.on('drain', () => {
      if (socket.isPaused) {
        socket.resume();
      }
      this.#wake?.('drain');
    });
    socket.on('close', () => {
      this.#closed = true;
      this.#wake?.('close');
    });
    // A close event with the details follows.
    socket.on('error', () => undefined);
  }

  get closed(): boolean {
    return this.#closed || this.#socket.readyState !== this.#socket.OPEN;
  }

  /** Whether the writer should wait for the reader. */
  get isFull(): boolean {
    return this.#socket.bufferedAmount > maxWaiting;
  }

  /** Replaces the listener of messages. */
  listen(listener: (message: Buffer, isBinary: boolean) => void): void {
    this.#socket.removeAllListeners('message');
    this.#socket.on('message', listener);
  }

  send(message: string | Buffer, isBinary = false): void {
    if (!this.closed) {
      this.#socket.send(message, isBinary ? asBinary : asText);
    }
  }

  /** Stops reading from a client that does not read its answers. */
  holdWhenFull(): void {
    if (this.isFull) {
      this.#socket.pause();
    }
  }

  close(code: number, reason: string): void {
    this.#socket.close(code, reason);
  }

  /** RST, once all sent bytes have arrived. */
  reset(): void {
    this.#connection.write('', () => {
      setTimeout(() => this.#connection.resetAndDestroy(), longestInKernelMs);
    });
  }

  /** FIN in the middle of a frame. */
  cut(): void {
    const textFrameOf64Bytes = Buffer.from([0x81, 64]);
    this.#connection.write(Buffer.concat([textFrameOf64Bytes, Buffer.from('{"type":"cut')]));
    this.#connection.destroySoon();
  }

  /** Waits for milliseconds or until the reader has taken the waiting bytes; `wake` and the end also end the wait. */
  wait(until: number | 'drain' | 'end'): Promise<void> {
    if (this.closed || (until === 'drain' && !this.isFull)) {
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      const done = (): void => {
        this.#wake = null;
        clearTimeout(timer);
        resolve();
      };
      const timer = typeof until === 'number' ? setTimeout(done, until) : undefined;
      this.#wake = (why) => {
        if (why === 'close' || (why === 'drain' && until === 'drain') || (why === 'call' && timer)) {
          done();
        }
      };
    });
  }

  /** Ends a timed wait. */
  wake(): void {
    this.#wake?.('call');
  }
}
