import { brokenBefore, type Fault, lateBefore, playFaults, shortMs } from './fault.js';
import { accepting, answering, behindProxy, certificates, nameless, refusing, showing } from './hostile.js';

/** Faults before an answer has begun. */
const rows: readonly Fault[] = [
  {
    name: 'a connection that is refused',
    upstream: refusing,
    ...brokenBefore,
    counted: 'refused',
    repeatable: true,
    seen: 0,
  },
  {
    name: 'a name that does not resolve',
    upstream: nameless,
    ...brokenBefore,
    counted: 'refused',
    repeatable: true,
    seen: 0,
  },
  {
    name: 'a proxy that answers 407',
    upstream: behindProxy(({ socket }) => socket.end('HTTP/1.1 407 X\r\ncontent-length: 0\r\n\r\n')),
    ...brokenBefore,
    counted: 'proxy_failed',
    repeatable: true,
    seen: 0,
  },
  {
    name: 'a proxy that closes the connection',
    upstream: behindProxy(({ socket }) => socket.end()),
    ...brokenBefore,
    counted: 'proxy_failed',
    repeatable: true,
    seen: 0,
  },
  {
    name: 'a proxy that does not answer',
    upstream: behindProxy(() => {}),
    timeouts: { connectMs: shortMs },
    ...lateBefore,
    failsOver: true,
    counted: 'timeout',
    seen: 0,
  },
  {
    name: 'a reset before the request is read',
    upstream: accepting((socket) => setTimeout(() => socket.resetAndDestroy(), 100)),
    ...brokenBefore,
    counted: 'reset',
    seen: 0,
  },
  {
    name: 'a reset after the request',
    upstream: answering(({ socket }) => socket.resetAndDestroy()),
    ...brokenBefore,
    counted: 'reset',
    seen: 1,
  },
  {
    name: 'an end after the request',
    upstream: answering(({ socket }) => socket.end()),
    ...brokenBefore,
    counted: 'reset',
    seen: 1,
  },
  {
    name: 'no answer',
    upstream: answering(() => {}),
    timeouts: { firstByteMs: shortMs },
    ...lateBefore,
    counted: 'timeout',
    seen: 1,
  },
  {
    name: 'a certificate that has expired',
    upstream: showing(certificates.expired),
    ...brokenBefore,
    counted: 'tls_failed',
    seen: 0,
  },
  {
    name: 'a self-signed certificate',
    upstream: showing(certificates.selfSigned, {}),
    ...brokenBefore,
    counted: 'tls_failed',
    seen: 0,
  },
  {
    name: 'a certificate for another name',
    upstream: showing(certificates.selfSigned),
    ...brokenBefore,
    counted: 'tls_failed',
    seen: 0,
  },
  {
    name: 'plain HTTP in place of TLS',
    upstream: accepting(
      (socket) => socket.end('HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n'),
      true,
    ),
    ...brokenBefore,
    counted: 'tls_failed',
    seen: 0,
  },
  {
    name: 'a TLS handshake that is not answered',
    upstream: accepting(() => {}, true),
    timeouts: { connectMs: shortMs },
    ...lateBefore,
    failsOver: true,
    counted: 'timeout',
    seen: 0,
  },
];

playFaults(rows);
