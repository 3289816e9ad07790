import { connect, type Socket } from 'node:net';
import type { Test } from 'tap';
import type { Exchange } from '../../src/http/exchange.js';
import { Server } from '../../src/http/server.js';

export interface TestServer {
  readonly port: number;
  readonly server: Server;
}

interface StartOptions {
  readonly isShort?: () => boolean;
  readonly port?: number;
  readonly host?: string;
}

const onFault = (_where: string, fault: unknown): void => {
  throw fault;
};

/**
 * Starts a server on a port of its own for as long as the test runs.
 * @param host `ownAddress` where it is closed while somebody still comes to it
 */
export async function startServer(
  t: Test,
  onRequest: (exchange: Exchange) => void,
  tls: { readonly cert: string; readonly key: string } | null = null,
  { isShort = () => false, port = 0, host = '127.0.0.1' }: StartOptions = {},
): Promise<TestServer> {
  const sockets = { paths: [], limits: { messageBytes: 1024, idleSeconds: 120 } };
  const words = { vendorc: [], vendorg: [], passed: [] };
  const server = new Server({
    words,
    onListening: () => {},
    onDraining: () => {},
    cors: null,
    readsPeers: false,
    tls,
    sockets,
    onRequest,
    onFault,
    isShort,
  });
  t.teardown(() => server.close());
  return { server, port: await server.listen(host, port) };
}

/** What an exchange told its listener. */
export interface Heard {
  readonly gone: Promise<void>;
  isGone: boolean;
}

/** Listens to an exchange. */
export function hear(exchange: Exchange, onDrained: () => void = () => {}): Heard {
  let tell = () => {};
  const heard: Heard = {
    gone: new Promise((resolve) => {
      tell = resolve;
    }),
    isGone: false,
  };
  exchange.listener = {
    onDrained,
    onClientGone: () => {
      heard.isGone = true;
      tell();
    },
  };
  return heard;
}

/** A connection to a server, and all that came over it. */
export class Wire {
  readonly socket: Socket;
  text = '';
  closed = false;
  #wake: (() => void) | null = null;

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1');
    this.socket.on('error', () => {});
    this.socket.on('data', (data) => {
      this.text += data.toString('latin1');
      this.#wake?.();
    });
    this.socket.on('close', () => {
      this.closed = true;
      this.#wake?.();
    });
  }

  send(bytes: string | Buffer): void {
    this.socket.write(bytes);
  }

  /** Waits until `isEnough` says so of all that has come, and takes that away; or until the connection has ended. */
  async take(isEnough: (text: string) => boolean): Promise<string> {
    while (!isEnough(this.text) && !this.closed) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const { text } = this;
    this.text = '';
    return text;
  }

  /** Waits for the end of the connection. */
  ended(): Promise<string> {
    return this.take(() => false);
  }
}

/** Whether a head has come, and `bytes` after it. */
export function headAnd(bytes: number): (text: string) => boolean {
  return (text) => {
    const end = text.indexOf('\r\n\r\n');
    return end !== -1 && text.length >= end + 4 + bytes;
  };
}

/** Lets the event loop turn so often: what can happen to sockets of this process has happened. */
export async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}
