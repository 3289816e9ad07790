import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import {
  type AddressInfo,
  createServer as createTcpServer,
  type Socket,
  type Server as TcpServer,
} from 'node:net';
import { type Test, test } from 'tap';
import { type FaultPlace, GatewayError } from '../../src/errors.js';
import type { Resolver } from '../../src/upstream/address.js';
import { createUpstreamClient } from '../../src/upstream/client.js';
import { type Downloaded, type DownloadOptions, download } from '../../src/upstream/download.js';
import { unboundedDownload } from '../support/unbounded-download.js';

const fixtures = new URL('../../../test/fixtures/tls/', import.meta.url);
const pem = (name: string) => readFileSync(new URL(name, fixtures), 'utf8');

const limits: DownloadOptions = {
  maxBytes: 1000,
  timeoutMs: 20_000,
  allowPrivate: true,
  ...unboundedDownload,
};

async function listen(t: Test, server: TcpServer): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => void server.close());
  return (server.address() as AddressInfo).port;
}

async function serve(t: Test, answer: RequestListener, server: Server = createServer()): Promise<number> {
  server.on('request', answer);
  const port = await listen(t, server);
  t.teardown(() => server.closeAllConnections());
  return port;
}

/** Downloads, and makes sure that nothing is told twice or too early. */
function fetchFile(url: string, options: Partial<DownloadOptions> = {}): Promise<Downloaded | GatewayError> {
  return new Promise((resolve, reject) => {
    let calls = 0;
    let returned = false;
    download(url, { ...limits, ...options }, (result) => {
      if (++calls > 1) reject(new Error('told twice'));
      else if (!returned) reject(new Error('told before the call returned'));
      else setImmediate(() => resolve(result));
    });
    returned = true;
  });
}

async function refused(url: string, options: Partial<DownloadOptions> = {}): Promise<string> {
  const result = await fetchFile(url, options);
  if (!(result instanceof GatewayError)) throw new Error(`${url} was fetched`);
  if (result.kind !== 'invalid_value' || result.status !== 400) throw result;
  return result.message;
}

const png = Buffer.from('89504e470d0a1a0a', 'hex');
const sendPng = (response: ServerResponse): void => {
  response.writeHead(200, { 'content-type': 'Image/PNG; charset=x' });
  response.end(png);
};

test('a file comes whole, with its media type', async (t) => {
  let asked: IncomingMessage | null = null;
  const port = await serve(t, (request, response) => {
    asked = request;
    sendPng(response);
  });
  const result = await fetchFile(`http://127.0.0.1:${port}/a%20b.png?x=1#part`);
  t.strictSame(result, { bytes: png, mediaType: 'image/png' });
  t.match(asked, { method: 'GET', url: '/a%20b.png?x=1' });
  t.match((asked as unknown as IncomingMessage).headers, {
    host: `127.0.0.1:${port}`,
    'accept-encoding': 'identity',
  });
});

test('an answer without a content type has none', async (t) => {
  const port = await serve(t, (_request, response) => response.end(png));
  t.match(await fetchFile(`http://127.0.0.1:${port}/`), { mediaType: null });
});

test('https, with the authority of an upstream', async (t) => {
  const server = createSecureServer({ cert: pem('localhost.pem'), key: pem('localhost.key') });
  const port = await serve(t, (_request, response) => sendPng(response), server);
  const url = `https://localhost:${port}/`;
  const route = { identity: 'own', serverName: null, clientCertificate: null, proxy: null, verify: true };
  const own = { privateOrigin: `https://localhost:${port}`, ownRoute: { ...route, ca: pem('ca.pem') } };
  t.match(await fetchFile(url, own), { mediaType: 'image/png' });
  t.equal(
    await refused(url),
    `The file at localhost:${port} cannot be fetched: no secure connection to it can be made.`,
  );
});

test('no connection and no session ticket is kept of a server that a client has named', async (t) => {
  const client = createUpstreamClient();
  const server = createSecureServer({ cert: pem('localhost.pem'), key: pem('localhost.key') });
  const resumed: boolean[] = [];
  server.on('secureConnection', (socket) => resumed.push(socket.isSessionReused()));
  const port = await serve(t, (_request, response) => sendPng(response), server);
  const route = { identity: 'own', serverName: null, clientCertificate: null, proxy: null, verify: true };
  const own = {
    privateOrigin: `https://localhost:${port}`,
    ownRoute: { ...route, ca: pem('ca.pem') },
    client,
  };
  for (const isByClient of [true, true, false, false]) {
    t.match(await fetchFile(`https://localhost:${port}/`, { ...own, isByClient }), {
      mediaType: 'image/png',
    });
    t.equal(client.stats().open, isByClient ? 0 : 1);
  }
  t.strictSame(resumed, [false, false, false]);
});

const unreachable = (host: string): string =>
  `The file at ${host} cannot be fetched: it has no address that may be fetched from.`;

test('hosts outside the public internet are refused unless allowed, however they are spelled', async (t) => {
  const port = await serve(t, () => t.fail('a request came'));
  const hosts = [
    ['127.0.0.1', '127.0.0.1'],
    ['2130706433', '127.0.0.1'],
    ['0x7f.1', '127.0.0.1'],
    ['0177.0.0.01', '127.0.0.1'],
    ['127.1', '127.0.0.1'],
    ['127.0.0.1.', '127.0.0.1'],
    ['%31%32%37.0.0.1', '127.0.0.1'],
    ['１２７.0.0.1', '127.0.0.1'],
    ['0', '0.0.0.0'],
    ['[::1]', '[::1]'],
    ['[::ffff:127.0.0.1]', '[::ffff:7f00:1]'],
    ['169.254.169.254', '169.254.169.254'],
    ['localhost', 'localhost'],
    ['LOCALHOST', 'localhost'],
  ] as const;
  for (const [host, told] of hosts) {
    const url = `http://${host}:${port}/`;
    t.equal(await refused(url, { allowPrivate: false }), unreachable(`${told}:${port}`), host);
  }
});

const resolvingTo =
  (...addresses: readonly string[]): Resolver =>
  (_name, _options, done) =>
    setImmediate(() =>
      done(
        null,
        addresses.map((address) => ({ address, family: 4 })),
      ),
    );

test('a name is refused when any of its addresses is private, and told like one that is unknown', async (t) => {
  const private1 = { allowPrivate: false, resolve: resolvingTo('1.1.1.1', '127.0.0.1') };
  t.equal(await refused('http://a.test/', private1), unreachable('a.test'));
  const unknown: Resolver = (_name, _options, done) => setImmediate(() => done(new Error('ENOTFOUND'), []));
  t.equal(await refused('http://a.test/', { resolve: unknown }), unreachable('a.test'));
});

test('the connection goes to the address that the one lookup gave', async (t) => {
  const port = await serve(t, (request, response) => response.end(request.headers.host));
  let lookups = 0;
  const resolve: Resolver = (name, options, done) => {
    lookups++;
    resolvingTo('127.0.0.1')(name, options, done);
  };
  const result = await fetchFile(`http://a.test:${port}/`, { resolve });
  t.equal((result as Downloaded).bytes.toString(), `a.test:${port}`);
  t.equal(lookups, 1);
});

test('an address that is slow to connect is asked again when no other connects', async (t) => {
  const server = createSecureServer({ cert: pem('localhost.pem'), key: pem('localhost.key') });
  server.on('request', (_request, response) => sendPng(response));
  const sockets: Socket[] = [];
  // The handshake of the first connection never ends.
  const port = await listen(
    t,
    createTcpServer((socket) => {
      sockets.push(socket.on('error', () => {}));
      if (sockets.length > 1) server.emit('connection', socket);
    }),
  );
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
  });
  const route = { identity: 'own', serverName: null, clientCertificate: null, proxy: null, verify: true };
  const own = { privateOrigin: `https://localhost:${port}`, ownRoute: { ...route, ca: pem('ca.pem') } };
  const resolve = resolvingTo('127.0.0.1', '127.0.0.2');
  t.match(await fetchFile(`https://localhost:${port}/`, { ...own, resolve }), { mediaType: 'image/png' });
  t.equal(sockets.length, 2);
});

test('a path is asked for as it is named, whatever its segments mean to that server', async (t) => {
  const asked: unknown[] = [];
  const port = await serve(t, (request, response) => {
    asked.push(request.url);
    sendPng(response);
  });
  const paths = ['/a%2F..%2Fb.png', '/a/..;/b', '/a%5c..%5cb', '/..;/a?b=/../c'];
  for (const path of paths)
    t.match(await fetchFile(`http://127.0.0.1:${port}${path}`), { mediaType: 'image/png' }, path);
  t.strictSame(asked, paths);
});

test('redirects are followed, three at most', async (t) => {
  const port = await serve(t, (request, response) => {
    const left = Number((request.url ?? '').slice(1));
    if (left === 0) sendPng(response);
    else
      response.writeHead([301, 302, 303, 307, 308][left] ?? 302, { location: `/${left - 1}` }).end('moved');
  });
  t.match(await fetchFile(`http://127.0.0.1:${port}/3`), { mediaType: 'image/png' });
  t.match(await refused(`http://127.0.0.1:${port}/4`), /redirects too many times/);
});

test('where a redirect leads is checked as well', async (t) => {
  let location = '';
  let asked = 0;
  const port = await serve(t, (_request, response) => {
    asked++;
    response.writeHead(302, { location }).end();
  });
  // A network in which this server alone is public.
  const options = {
    allowPrivate: false,
    resolve: ((name, asked, done) =>
      resolvingTo(name === 'b.test' ? '127.0.0.1' : '10.0.0.1')(name, asked, done)) as Resolver,
    isPublic: (address: string) => address === '127.0.0.1',
  };
  const targets = [
    [`http://127.0.0.2:${port}/`, /no address that may be fetched from/],
    [`http://2130706434:${port}/`, /no address that may be fetched from/],
    [`//[::1]:${port}/`, /no address that may be fetched from/],
    [`http://internal.test:${port}/`, /no address that may be fetched from/],
    ['file:///etc/passwd', /only http and https/],
    ['http://user@a.test/', /credentials/],
    ['http://', /the status 302/],
  ] as const;
  for (const [target, reason] of targets) {
    location = target;
    const message = await refused(`http://b.test:${port}/`, options);
    t.match(message, reason, target);
    t.ok(message.startsWith(`The file at b.test:${port} cannot be fetched`));
  }
  t.equal(asked, targets.length);
});

test('only answers that can be the file are taken', async (t) => {
  const answers: Record<string, (response: ServerResponse) => void> = {
    '/missing': (response) => response.writeHead(404).end('secret'),
    '/part': (response) => response.writeHead(206).end('x'),
    '/empty': (response) => response.writeHead(204).end(),
    '/nowhere': (response) => response.writeHead(302).end(),
    '/packed': (response) => response.writeHead(200, { 'content-encoding': 'compress' }).end('x'),
    '/long': (response) => response.writeHead(200, { 'content-length': '1001' }).write('x'),
    '/longer': (response) => response.writeHead(200).end(Buffer.alloc(1001)),
    '/short': (response) => {
      response.writeHead(200, { 'content-length': '10' }).write('x');
      response.socket?.end();
    },
    '/gone': (response) => response.destroy(),
  };
  const port = await serve(t, (request, response) => answers[request.url ?? '']?.(response));
  const reasons = {
    '/missing': 'the answer has the status 404',
    '/part': 'the answer has the status 206',
    '/empty': 'the answer has the status 204',
    '/nowhere': 'the answer has the status 302',
    '/packed': 'the answer is compressed',
    '/long': 'it is larger than 1000 bytes',
    '/longer': 'it is larger than 1000 bytes',
    '/short': 'the connection to it failed',
    '/gone': 'the connection to it failed',
  };
  for (const [path, reason] of Object.entries(reasons)) {
    const message = await refused(`http://127.0.0.1:${port}${path}`);
    t.equal(message, `The file at 127.0.0.1:${port} cannot be fetched: ${reason}.`, path);
  }
});

test('a file of exactly the greatest size is taken', async (t) => {
  const port = await serve(t, (_request, response) => response.end(Buffer.alloc(1000)));
  const result = await fetchFile(`http://127.0.0.1:${port}/`);
  t.equal((result as Downloaded).bytes.length, 1000);
});

test('URLs that name no file to fetch are refused', async (t) => {
  const urls = [
    ['', 'The file cannot be fetched: the URL is not valid.'],
    ['a.png', 'The file cannot be fetched: the URL is not valid.'],
    ['http://1.2.3.4.5/', 'The file cannot be fetched: the URL is not valid.'],
    ['file:///etc/passwd', 'The file at file: cannot be fetched: only http and https URLs are fetched.'],
    ['ftp://a.test/', 'The file at a.test cannot be fetched: only http and https URLs are fetched.'],
    ['http://me:secret@a.test/', 'The file at a.test cannot be fetched: the URL holds credentials.'],
  ] as const;
  for (const [url, message] of urls) t.equal(await refused(url), message, url);
});

test('a server that cannot be reached, and one that does not speak TLS', async (t) => {
  const port = await serve(t, () => {});
  t.match(await refused(`https://127.0.0.1:${port}/`), /no secure connection/);
  t.match(await refused('http://127.0.0.1:1/'), /the connection to it failed/);
});

test('the time for all of it is limited: for names, heads and bodies', async (t) => {
  const port = await serve(t, (request, response) => {
    if (request.url === '/body') response.writeHead(200).write('x');
  });
  const never: Resolver = () => {};
  const cases = [
    ['http://a.test/', { resolve: never }],
    [`http://127.0.0.1:${port}/head`, {}],
    [`http://127.0.0.1:${port}/body`, {}],
  ] as const;
  for (const [url, options] of cases)
    t.match(await refused(url, { timeoutMs: 50, ...options }), /took too long/);
});

test('after a cancel nothing is told, and the connection is closed', async (t) => {
  let cancel = (): void => {};
  const server = createServer();
  const closed = new Promise<void>((resolve) => {
    server.on('connection', (socket) => socket.once('close', () => resolve()));
  });
  const port = await serve(t, () => cancel(), server);
  const never = (): never => {
    throw new Error('told after a cancel');
  };
  cancel = download(`http://127.0.0.1:${port}/`, limits, never);
  await closed;
  cancel();
  download('not a URL', limits, never)();
  download(`http://127.0.0.1:${port}/`, limits, never)();
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  t.pass();
});

test('a fault of ours within it is told its owner alone, and the connection is closed', async (t) => {
  const uncaught: unknown[] = [];
  const onUncaught = (fault: unknown): void => void uncaught.push(fault);
  process.on('uncaughtException', onUncaught);
  t.teardown(() => process.off('uncaughtException', onUncaught));
  const server = createServer();
  const closed = new Promise<void>((resolve) => {
    server.on('connection', (socket) => socket.once('close', () => resolve()));
  });
  const port = await serve(t, (_request, response) => sendPng(response), server);
  const fault = new TypeError('a mistake');
  const told: (readonly [FaultPlace, unknown])[] = [];
  const hold = (): never => {
    throw fault;
  };
  const onFault = (where: FaultPlace, thrown: unknown): void => void told.push([where, thrown]);
  const options = { ...limits, hold, owner: { onFault } };
  download(`http://127.0.0.1:${port}/`, options, () => t.fail('its owner ends'));
  await closed;
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  t.strictSame(told, [['upstream', fault]]);
  t.strictSame(uncaught, []);
});
