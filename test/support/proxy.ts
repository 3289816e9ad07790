import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { createServer as createSecureServer, type TlsOptions } from 'node:tls';
import type { Test } from 'tap';
import { Arrivals } from './arrivals.js';

/** A request for a tunnel. */
interface TunnelRequest {
  /** Request line and headers, without the empty line. */
  readonly head: string;
  /** `host:port` that it names. */
  readonly target: string;
  readonly socket: Socket;
  /**
   * Connects to the target's port on this host, whatever its name, and relays both directions after this answer.
   * @returns the connection to the target
   */
  open(answer?: string): Socket;
}

export interface TestProxy {
  readonly port: number;
  /** `http://127.0.0.1:PORT`, or `https://`. @param user user and password, as they are written in a URL */
  url(user?: string): string;
  /** What it does with each request from now on. */
  answer: (request: TunnelRequest, index: number) => void;
  /** Requests so far. */
  readonly requests: readonly TunnelRequest[];
  /** Resolves with the request of this number (from 0). */
  request(index: number): Promise<TunnelRequest>;
  /** Resolves when it no longer listens, and nothing is open. */
  close(): Promise<void>;
}

export const tunnelOpened = 'HTTP/1.1 200 Connection established\r\n\r\n';

/**
 * A proxy that opens tunnels, or does with each request what the test says. It ends with the test.
 * @param tls its clients use TLS
 * @param host address on which it listens
 */
export async function startProxy(
  t: Pick<Test, 'teardown'>,
  answer: TestProxy['answer'] = (request) => request.open(),
  tls: TlsOptions | null = null,
  host = '127.0.0.1',
): Promise<TestProxy> {
  const requests = new Arrivals<TunnelRequest>();
  const sockets = new Set<Socket>();
  const keep = (socket: Socket): Socket => {
    sockets.add(socket);
    socket.on('error', () => {});
    return socket.on('close', () => sockets.delete(socket));
  };
  const serve = (socket: Socket): void => {
    keep(socket);
    let text = '';
    const onData = (data: Buffer): void => {
      text += data.toString('latin1');
      const end = text.indexOf('\r\n\r\n');
      if (end === -1) return;
      socket.off('data', onData);
      const head = text.slice(0, end);
      const [, target = ''] = head.split(' ', 2);
      const request: TunnelRequest = {
        head,
        target,
        socket,
        open: (opened = tunnelOpened) => {
          const far = keep(connect(Number(target.slice(target.lastIndexOf(':') + 1)), '127.0.0.1'));
          far.on('connect', () => {
            socket.write(opened, 'latin1');
            socket.pipe(far).pipe(socket);
          });
          far.on('close', () => socket.destroy());
          socket.on('close', () => far.destroy());
          return far;
        },
      };
      requests.add(request);
      proxy.answer(request, requests.all.length - 1);
    };
    socket.on('data', onData);
  };
  const server = tls === null ? createServer(serve) : createSecureServer(tls, serve);
  server.on('tlsClientError', () => {});
  server.listen(0, host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy();
    if (!server.listening) return;
    server.close();
    await once(server, 'close');
  };
  t.teardown(close);
  const proxy: TestProxy = {
    port,
    url: (user) => `http${tls === null ? '' : 's'}://${user === undefined ? '' : `${user}@`}${host}:${port}`,
    answer,
    requests: requests.all,
    request: (index) => requests.at(index),
    close,
  };
  return proxy;
}
