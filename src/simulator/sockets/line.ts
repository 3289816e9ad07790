import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';

/** Bytes that may wait for their reader before the writer waits too. */
const mostWaiting = 1024 * 1024;
/** A reset overtakes what the kernel still holds, and it holds small segments until the last ones are acknowledged. */
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
    // A close event follows; it says all that is of interest.
    socket.on('error', () => undefined);
  }

  get closed(): boolean {
    return this.#closed || this.#socket.readyState !== this.#socket.OPEN;
  }

  /** Whether so much waits that the writer should wait too. */
  get isFull(): boolean {
    return this.#socket.bufferedAmount > mostWaiting;
  }

  /** From here on messages go to this listener alone. */
  listen(listener: (message: Buffer, isBinary: boolean) => void): void {
    this.#socket.removeAllListeners('message');
    this.#socket.on('message', listener);
  }

  send(message: string | Buffer, isBinary = false): void {
    if (!this.closed) {
      this.#socket.send(message, isBinary ? asBinary : asText);
    }
  }

  /** Hears nothing more from a client that does not take the answers it has. */
  holdWhenFull(): void {
    if (this.isFull) {
      this.#socket.pause();
    }
  }

  close(code: number, reason: string): void {
    this.#socket.close(code, reason);
  }

  /** RST, once all that was sent has arrived. */
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

  /** Waits for so many milliseconds, until the reader has taken what waits, or until `wake` or the end. */
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

  /** Ends a wait for a time. */
  wake(): void {
    this.#wake?.('call');
  }
}
