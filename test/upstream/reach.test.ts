import { readFileSync } from 'node:fs';
import { createServer } from 'node:tls';
import { test } from 'tap';
import { createOrigin } from '../../src/config/snapshot.js';
import type { Resolver } from '../../src/upstream/address.js';
import { ParsedHead } from '../../src/upstream/answer.js';
import {
  type Reached,
  Refusal,
  type RemoteOptions,
  reachUrl,
  redirectTarget,
} from '../../src/upstream/remote-url.js';
import { eventually } from '../support/eventually.js';
import { anyHost } from '../support/unbounded-download.js';
import { answering, Call, get, headOf, listen, makeClient, onRequests, rawServer } from './raw.js';

const fixtures = new URL('../../../test/fixtures/tls/', import.meta.url);
const pem = (name: string) => readFileSync(new URL(name, fixtures), 'utf8');

const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

const resolvingTo =
  (...addresses: readonly string[]): Resolver =>
  (_name, _options, done) =>
    done(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );

/** Asks, and makes sure that nothing is told twice or too early. */
function ask(url: string, options: Partial<RemoteOptions> = {}): Promise<Reached | Refusal> {
  return new Promise((resolve, reject) => {
    let calls = 0;
    let returned = false;
    const given = { ...anyHost, allowPrivate: false, resolve: resolvingTo('1.1.1.1'), ...options };
    reachUrl(url, given, (result) => {
      if (++calls > 1) reject(new Error('told twice'));
      else if (!returned) reject(new Error('told before the call returned'));
      else setImmediate(() => resolve(result));
    });
    returned = true;
  });
}

async function reach(url: string, options: Partial<RemoteOptions> = {}): Promise<Reached> {
  const result = await ask(url, options);
  if (result instanceof Refusal) throw result;
  return result;
}

async function refused(url: string, options: Partial<RemoteOptions> = {}): Promise<Refusal> {
  const result = await ask(url, options);
  if (!(result instanceof Refusal)) throw new Error(`${url} was reached`);
  return result;
}

test('the connection is pinned to the address that was checked, under the name of the URL', async (t) => {
  const { origin, path } = await reach('https://Files.Test/a%20b/c.mp4?sig=x%2F1#part');
  t.equal(path, '/a%20b/c.mp4?sig=x%2F1');
  t.match(origin, {
    secure: true,
    host: '1.1.1.1',
    port: 443,
    authority: 'files.test',
    serverName: 'files.test',
    ca: null,
    verify: true,
  });
  t.match((await reach('http://files.test')).origin, {
    secure: false,
    port: 80,
    serverName: null,
    maxConnections: 1024,
    maxWaiting: 1024,
    isKept: true,
  });
});

test('names, ports and addresses in every form', async (t) => {
  const cases = [
    ['https://files.test:8443/x', '1.1.1.1', 8443, 'files.test:8443', 'files.test', '/x'],
    ['https://files.test:443', '1.1.1.1', 443, 'files.test', 'files.test', '/'],
    ['https://files.test./x', '1.1.1.1', 443, 'files.test.', 'files.test', '/x'],
    ['https://bücher.test/ü?ü', '1.1.1.1', 443, 'xn--bcher-kva.test', 'xn--bcher-kva.test', '/%C3%BC?%C3%BC'],
    ['https://8.8.8.8/', '8.8.8.8', 443, '8.8.8.8', '8.8.8.8', '/'],
    ['https://[2606:4700::1111]:1/', '2606:4700::1111', 1, '[2606:4700::1111]:1', '2606:4700::1111', '/'],
    ['http://[2606:4700::1111]/', '2606:4700::1111', 80, '[2606:4700::1111]', null, '/'],
    ['http://files.test/\r\nx: y', '1.1.1.1', 80, 'files.test', null, '/x:%20y'],
  ] as const;
  for (const [url, host, port, authority, serverName, path] of cases) {
    t.match(await reach(url), { origin: { host, port, authority, serverName }, path }, url);
  }
  const six = await reach('https://files.test/', { resolve: resolvingTo('2606:4700::2', '1.1.1.1') });
  t.equal(six.origin.host, '2606:4700::2');
  const many = ['2606:4700::2', '2606:4700::3', '2606:4700::4', '1.1.1.1', '1.0.0.1'];
  const { origin, others } = await reach('https://files.test/', { resolve: resolvingTo(...many) });
  const asked = ['2606:4700::2', '1.1.1.1', '2606:4700::3', '1.0.0.1'];
  t.strictSame(
    [origin, ...others].map(({ host }) => host),
    asked,
    'of either family, in turn',
  );
  t.strictSame(new Set(others.map(({ authority }) => authority)), new Set(['files.test']));
});

test('an identity is shared by nothing that another connection could serve', async (t) => {
  const fixed = {
    ca: null,
    verify: true,
    serverName: null,
    clientCertificate: null,
    proxy: null,
    maxConnections: 1,
    maxWaiting: 1,
  };
  const own = { privateOrigin: 'https://a.test', ownRoute: { ...fixed, identity: 'own' } };
  const identities = [
    (await reach('https://a.test/')).origin.identity,
    (await reach('https://b.test/')).origin.identity,
    (await reach('http://a.test/')).origin.identity,
    (await reach('http://b.test/')).origin.identity,
    (await reach('https://a.test:444/')).origin.identity,
    (await reach('https://a.test/', { resolve: resolvingTo('1.0.0.1') })).origin.identity,
    (await reach('https://a.test/', own)).origin.identity,
    (await reach('https://1.1.1.1/')).origin.identity,
    createOrigin('https://a.test/', fixed).identity,
    createOrigin('https://1.1.1.1/', fixed).identity,
    createOrigin('http://1.1.1.1/', fixed).identity,
  ];
  t.equal(new Set(identities).size, identities.length);
  t.equal((await reach('https://A.test/other?x')).origin.identity, identities[0]);
});

const unreachable = 'it has no address that may be fetched from';

test('hosts outside the public internet are refused, however they are spelled, unless allowed', async (t) => {
  const hosts = [
    '127.0.0.1',
    '2130706433',
    '0x7f.1',
    '127.0.0.1.',
    '１２７.0.0.1',
    '0',
    '[::1]',
    '169.254.169.254',
  ];
  hosts.push('[::ffff:127.0.0.1]', '10.1.2.3', '[fd00::1]', '[64:ff9b::7f00:1]');
  for (const host of hosts) {
    const url = `http://${host}/`;
    t.match(await refused(url), { message: unreachable }, host);
    t.type((await reach(url, { allowPrivate: true })).origin.host, 'string', host);
  }
  const isPublic = (address: string): boolean => address === '127.0.0.1';
  t.equal((await reach('http://127.0.0.1/', { isPublic })).origin.host, '127.0.0.1');
});

test('one private address of a name is enough, and it is told like a name that is unknown', async (t) => {
  const mixed = await refused('http://a.test/', { resolve: resolvingTo('1.1.1.1', '10.0.0.1') });
  const unknown = await refused('http://a.test/', {
    resolve: (_name, _options, done) => done(new Error('x'), []),
  });
  const empty = await refused('http://a.test/', { resolve: resolvingTo() });
  for (const error of [mixed, unknown, empty]) {
    t.match(error, { message: unreachable });
  }
  const { origin } = await reach('http://a.test/', { allowPrivate: true, resolve: resolvingTo('10.0.0.1') });
  t.equal(origin.host, '10.0.0.1');
});

test('the name is looked up once', async (t) => {
  let lookups = 0;
  const resolve: Resolver = (name, options, done) => {
    lookups++;
    t.equal(name, 'a.test');
    resolvingTo('1.1.1.1')(name, options, done);
  };
  await reach('https://a.test:1234/', { resolve });
  t.equal(lookups, 1);
});

test('URLs that name no file to fetch are refused without their text', async (t) => {
  const cases = [
    ['', 'the URL is not valid'],
    ['/video.mp4', 'the URL is not valid'],
    ['http://1.2.3.4.5/', 'the URL is not valid'],
    ['http://[fe80::1%25eth0]/', 'the URL is not valid'],
    ['file:///etc/passwd', 'only http and https URLs are fetched'],
    ['data:video/mp4;base64,AA', 'only http and https URLs are fetched'],
    ['https://me:secret@files.test/', 'the URL holds credentials'],
    ['https://me@files.test/', 'the URL holds credentials'],
  ] as const;
  for (const [url, reason] of cases) {
    t.match(await refused(url), { message: reason }, url);
  }
});

test('nothing is told after it was given up', async (t) => {
  const never = (): never => {
    throw new Error('told after it was given up');
  };
  let answer: (() => void) | null = null;
  const resolve: Resolver = (name, options, done) => {
    answer = () => resolvingTo('1.1.1.1')(name, options, done);
  };
  const cancel = reachUrl('http://a.test/', { ...anyHost, allowPrivate: false, resolve }, never);
  reachUrl('not a URL', { ...anyHost, allowPrivate: false }, never)();
  const tell = await eventually<(() => void) | null>(() => answer);
  cancel();
  tell();
  cancel();
  t.pass();
});

test('the upstream client fetches from there, plain and with the name in TLS', async (t) => {
  const client = makeClient(t);
  const seen: string[] = [];
  const plain = await rawServer(t, (socket) =>
    onRequests(socket, (text) => {
      seen.push(text);
      socket.write(ok);
    }),
  );
  const local = { allowPrivate: true, resolve: resolvingTo('127.0.0.1') };
  const fetchFrom = async (url: string, ca: string | null = null): Promise<Call> => {
    const { origin, path } = await reach(url, local);
    const head = headOf('GET', path, origin.authority);
    return new Call(client, { ...origin, ca }, { ...get(), head }).over;
  };
  t.equal((await fetchFrom(`http://files.test:${plain.port}/v?a=b`)).body, 'ok');
  t.strictSame(seen, [`GET /v?a=b HTTP/1.1\r\nhost: files.test:${plain.port}\r\n\r\n`]);

  const certificate = { cert: pem('localhost.pem'), key: pem('localhost.key') };
  const secure = await listen(t, createServer(certificate), answering(ok));
  const ca = pem('ca.pem');
  t.equal((await fetchFrom(`https://localhost:${secure.port}/`, ca)).body, 'ok');
  t.equal((secure.sockets[0] as unknown as { servername: string }).servername, 'localhost');
  t.equal((await fetchFrom(`https://127.0.0.1:${secure.port}/`, ca)).body, 'ok');
  const other = await fetchFrom(`https://files.test:${secure.port}/`, ca);
  t.match(other.failure, { reason: 'tls_failed', detail: /another name/ });
});

test('where an answer redirects to', async (t) => {
  const from = 'https://a.test/dir/file?x';
  const head = (status: number, location: string | null): ParsedHead => {
    const parsed = new ParsedHead();
    parsed.status = status;
    if (location !== null) parsed.fields.push('location', location);
    return parsed;
  };
  for (const status of [301, 302, 303, 307, 308]) {
    t.equal(redirectTarget(from, head(status, 'other')), 'https://a.test/dir/other');
  }
  t.equal(redirectTarget(from, head(302, '//b.test/x')), 'https://b.test/x');
  t.equal(
    redirectTarget(from, head(302, 'http://10.0.0.1/')),
    'http://10.0.0.1/',
    'to be checked by reachUrl',
  );
  t.equal(redirectTarget(from, head(302, null)), null);
  t.equal(redirectTarget(from, head(302, 'http://')), null);
  for (const status of [200, 300, 304, 404]) t.equal(redirectTarget(from, head(status, '/x')), null);
});
