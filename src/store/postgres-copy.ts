import type { Connection, Submittable } from 'pg';

/** What the driver hands over while rows are wanted; its types do not tell of it. */
interface CopyConnection {
  sendCopyFromChunk(chunk: Uint8Array): void;
  endCopyFrom(): void;
}

/**
 * A `COPY … FROM STDIN` as a query of the driver, which has none of its own.
 * https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-COPY
 */
export class CopyQuery implements Submittable {
  /** Resolves when the server has taken all rows, and rejects with what it says otherwise. */
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

  /** A chunk a turn of the event loop: to send many at once would hold up whoever serves requests. */
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
