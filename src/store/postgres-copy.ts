import type { Connection, Submittable } from 'pg';

/** Methods of the driver's connection during `COPY`, which are missing in its types. */
interface CopyConnection {
  sendCopyFromChunk(chunk: Uint8Array): void;
  endCopyFrom(): void;
}

/**
 * A `COPY … FROM STDIN` as a query of the driver, which does not provide one.
 * https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-COPY
 */
export class CopyQuery implements Submittable {
  /** Resolves when the server has stored all rows. Otherwise rejects with the server's error. */
  readonly done: Promise<void>;
  readonly #text: string;
  readonly #chunks: readonly Uint8Array[];
  #resolve: () => void = () => {};
  #reject: (error: unknown) => void = () => {};

  /** @param chunks whole rows in the text format of `COPY`, each with its line end */
  constructor(text: string, chunks: readonly Uint8Array[]) {
    this.#text = text;
    this.#chunks = chunks;
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  submit(connection: Connection): void {
    connection.query(this.#text);
  }

  handleCopyInResponse(connection: CopyConnection): void {
    this.#send(connection, 0);
  }

  handleError(error: unknown): void {
    this.#reject(error);
  }

  handleReadyForQuery(): void {
    this.#resolve();
  }

  handleCommandComplete(): void {}

  /** Sends one chunk per turn of the event loop. Many at once would block a process that serves requests. */
  #send(connection: CopyConnection, index: number): void {
    const chunk = this.#chunks[index];
    if (chunk === undefined) {
      connection.endCopyFrom();
      return;
    }
    connection.sendCopyFromChunk(chunk);
    setImmediate(() => this.#send(connection, index + 1));
  }
}
