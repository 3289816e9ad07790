import { connect as connectSocket } from 'node:net';
import { AnswerReader } from './answer-reader.js';

/** An answer that takes longer than this counts as missing. */
const silenceMs = 30_000;
/** The part of a request id that all answers of one worker share. */
const workerPartOfId = 22;

/** A complete answer. */
export interface Answer {
  readonly status: number;
  readonly chunked: boolean;
  /** A stream with the last event of chat streams. */
  readonly endsWithDone: boolean;
  readonly bytes: number;
  /** Body of an answer that is not chunked. */
  readonly text: string;
  /** The part of the request id that identifies the worker. */
  readonly worker: string;
}

/** A keep-alive connection with one request at a time. */
export interface ClientConnection {
  /** False once either side has ended it. It then takes no more requests. */
  readonly usable: boolean;
  /**
   * Sends a request and waits for its answer.
   * @throws Error if the connection ends, or is silent for too long, before the answer is complete
   */
  ask(request: Buffer): Promise<Answer>;
  close(): void;
}

interface Asked {
  readonly reader: AnswerReader;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Opens a connection to 127.0.0.1.
 * @throws the system's error if it is not accepted
 */
export function openConnection(port: number): Promise<ClientConnection> {
  return new Promise((onOpen, onRefused) => {
    const socket = connectSocket({ port, host: '127.0.0.1', noDelay: true });
    let usable = false;
    let asked: Asked | null = null;

    const lose = (reason: string): void => {
      usable = false;
      const lost = asked;
      asked = null;
      socket.destroy();
      if (lost === null) return;
      const heard = lost.reader.head === '' ? 'before the answer' : 'within the answer';
      lost.reject(new Error(`${reason} ${heard}`));
    };
    const finish = ({ reader, resolve }: Asked): void => {
      asked = null;
      if (reader.header('connection')?.toLowerCase() === 'close') {
        usable = false;
        socket.destroy();
      }
      resolve({
        status: reader.status,
        chunked: reader.framing === 'chunked',
        endsWithDone: reader.endsWithDone,
        bytes: reader.bytes,
        text: reader.text,
        worker: reader.header('x-request-id')?.slice(0, workerPartOfId) ?? '',
      });
    };

    socket.setTimeout(silenceMs, () => {
      if (asked !== null) lose('silence');
    });
    socket.on('data', (data: Buffer) => {
      if (asked === null) return lose('unasked bytes');
      if (asked.reader.push(data)) return;
      if (asked.reader.fault === null) finish(asked);
      else lose(asked.reader.fault);
    });
    socket.on('end', () => lose('end'));
    socket.on('close', () => lose('close'));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      onRefused(error);
      lose(error.code ?? error.message);
    });
    socket.on('connect', () => {
      usable = true;
      onOpen({
        get usable() {
          return usable;
        },
        ask: (request) =>
          new Promise((resolve, reject) => {
            if (!usable || asked !== null) {
              reject(new Error('the connection takes no request now'));
              return;
            }
            asked = { reader: new AnswerReader(), resolve, reject };
            socket.write(request);
          }),
        close: () => lose('closed by the client'),
      });
    });
  });
}
