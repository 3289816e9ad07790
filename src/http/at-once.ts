/** Answers in one turn of the event loop after which connections are ended: some milliseconds of work. */
const mostAtOnce = 200;
/** Of a body, smaller pieces than this are counted: clients send larger ones, but for the last. */
const smallPiece = 64;
/** So many of them in one turn, of all bodies, are taken: a tenth of a second of work. */
const mostSmallPieces = 200_000;

/**
 * The answers that a server gives while it still reads the request: refusals, the lists of models. uWS hands over all
 * requests that one read of a socket has brought before anything else gets its turn, thousands where their client did
 * not wait for answers, of hundreds of sockets. Each of the first is answered, and after those each connection is ended
 * with its next answer, with which uWS drops what is behind it. An answer that has to wait for anything needs no count:
 * uWS cuts a connection on which the next request comes before it.
 *
 * The pieces of bodies are counted for the same reason: uWS hands over each chunk by itself, and one read of a socket
 * may bring a hundred thousand of one byte.
 */
export class AtOnce {
  /** What a client has sent is being handed over. */
  isReading = false;
  #answers = 0;
  #smallPieces = 0;

  /** Counts an answer. @returns whether its connection is to end with it */
  isTooMany(): boolean {
    if (!this.isReading) return false;
    if (this.#answers++ === 0)
      setImmediate(() => {
        this.#answers = 0;
      });
    return this.#answers > mostAtOnce;
  }

  /** Counts a piece of a body. @returns whether its body is to be refused, with all that is behind it */
  isTooSmall(bytes: number): boolean {
    if (bytes >= smallPiece) return false;
    if (this.#smallPieces++ === 0)
      setImmediate(() => {
        this.#smallPieces = 0;
      });
    return this.#smallPieces > mostSmallPieces;
  }
}
