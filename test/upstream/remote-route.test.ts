import { test } from 'tap';
import { resolveProxy } from '../../src/config/proxy.js';
import type { GatewayError } from '../../src/errors.js';
import { isPrivateName, type Resolver } from '../../src/upstream/address.js';
import { type Downloaded, type DownloadOptions, download } from '../../src/upstream/download.js';
import type { EgressProxy, Origin } from '../../src/upstream/origin.js';
import { type Reached, type Refusal, type RemoteOptions, reachUrl } from '../../src/upstream/remote-url.js';
import { authority, clientCertificate, demanding, serverCertificate } from '../support/certificates.js';
import { eventually } from '../support/eventually.js';
import { startProxy } from '../support/proxy.js';
import { anyHost, unboundedDownload } from '../support/unbounded-download.js';
import { startRawUpstream } from '../support/upstream.js';
import { plainOrigin } from './raw.js';

const proxy = resolveProxy('http://user:pass@proxy.test:3128', null) as EgressProxy;
const own: Origin = plainOrigin(443, {
  secure: true,
  host: 'api.test',
  authority: 'api.test',
  serverName: 'inner.test',
  ca: authority,
  clientCertificate,
  proxy,
});
const unresolved: Resolver = () => {
  throw new Error('a name was looked up');
};

const reach = (url: string, options: Partial<RemoteOptions>): Promise<Reached | Refusal> =>
  new Promise((resolve) => {
    reachUrl(url, { ...anyHost, allowPrivate: false, resolve: unresolved, ...options }, resolve);
  });

const fetched = (url: string, options: Partial<DownloadOptions>): Promise<Downloaded | GatewayError> =>
  new Promise((resolve) => {
    download(
      url,
      {
        allowPrivate: false,
        maxBytes: 1 << 20,
        timeoutMs: 20_000,
        ...unboundedDownload,
        ...options,
      },
      resolve,
    );
  });

test("what is at an upstream's own origin is reached as the upstream is, with connections of its own", async (t) => {
  const options = { privateOrigin: 'https://api.test', ownRoute: own };
  const { origin } = (await reach('https://api.test/file.mp4', options)) as Reached;
  const { host, port, authority: name, serverName, ca, verify } = own;
  t.match(origin, { host, port, authority: name, serverName, ca, verify, clientCertificate, proxy });
  t.not(origin.identity, own.identity);
  const resolve: Resolver = (_name, _options, done) => done(null, [{ address: '1.1.1.1', family: 4 }]);
  for (const url of ['https://api.test:444/a', 'http://api.test/a', 'https://files.test/a']) {
    const { origin } = (await reach(url, { ...options, resolve })) as Reached;
    t.match(origin, { host: '1.1.1.1', ca: null, clientCertificate: null, proxy: null }, url);
  }
});

test('a proxy looks a name up, and no connection of another way serves what is behind it', async (t) => {
  const other = { ...proxy, identity: 'other' };
  const through = await Promise.all(
    [proxy, other].map((each) => reach('https://files.test./a', { proxy: each }) as Promise<Reached>),
  );
  for (const { origin } of through) t.match(origin, { host: 'files.test.', serverName: 'files.test' });
  t.equal(new Set(through.map(({ origin }) => origin.identity)).size, 2);
});

test('behind a proxy names are refused that are private by themselves, unless all may be asked', async (t) => {
  for (const host of [
    'localhost',
    'LOCALHOST.',
    'a.localhost',
    'minio',
    'minio.local',
    'a.internal.',
    '10.0.0.1',
    '[::1]',
  ]) {
    t.match(await reach(`https://${host}/a`, { proxy }), { message: /no address|its port/ }, host);
    t.match(await reach(`https://${host}/a`, { proxy, allowPrivate: true }), { origin: { proxy } }, host);
  }
  for (const host of ['files.test', 'localhost.test', '1.1.1.1', '[2606:4700::1111]'])
    t.match(await reach(`https://${host}/a`, { proxy }), { origin: { proxy } }, host);
  const rules = {
    ports: [[443, 443]] as const,
    denyNetworks: [{ address: '1.1.1.0', prefix: 24 }],
    denyHosts: ['*.b.test'],
  };
  for (const url of ['https://a.b.test/', 'https://1.1.1.1/', 'https://files.test:444/'])
    t.match(await reach(url, { proxy, rules, allowPrivate: true }), { message: /no address|its port/ }, url);
});

test('names that are private by themselves', async (t) => {
  for (const name of ['localhost', 'minio', 'a.localhost', 'a.local', 'a.b.internal'])
    t.ok(isPrivateName(name), name);
  for (const name of ['a.test', 'localhost.test', 'alocal.test', 'internal.test'])
    t.notOk(isPrivateName(name), name);
});

test('a file is downloaded through a proxy of either kind, from a server of either kind', async (t) => {
  for (const tls of [null, serverCertificate]) {
    const between = await startProxy(t, undefined, tls);
    const way = resolveProxy(between.url('user:pass'), authority);
    for (const secure of [false, true]) {
      const files = await startRawUpstream(
        t,
        ({ head, socket }) =>
          socket.write(
            head.startsWith('GET /v1/first')
              ? 'HTTP/1.1 302 X\r\nlocation: /v1/second\r\ncontent-length: 0\r\n\r\n'
              : 'HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfile',
          ),
        secure ? { tls: demanding } : {},
      );
      const url = files.url.replace('127.0.0.1', 'files.test');
      const route = { ...own, secure, serverName: 'localhost', proxy: way };
      const options = { privateOrigin: new URL(url).origin, ownRoute: route, resolve: unresolved };
      const result = await fetched(`${url}/first`, options);
      t.equal((result as Downloaded).bytes?.toString(), 'file', String(result));
    }
    t.equal(between.requests.length, 4);
  }
});

test('a download directly from an own origin shows the certificate', async (t) => {
  const files = await startRawUpstream(t, 'HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfile', {
    tls: demanding,
  });
  const route = { ...own, serverName: 'localhost', proxy: null };
  const options = { privateOrigin: new URL(files.url).origin, ownRoute: route };
  const result = await fetched(files.url, options);
  t.equal((result as Downloaded).bytes?.toString(), 'file', String(result));
});

test('a download that is given up, or takes too long, leaves no connection to the proxy', async (t) => {
  const between = await startProxy(t, () => {});
  const way = resolveProxy(between.url(), null);
  const give = download(
    'http://files.test/a',
    { allowPrivate: false, maxBytes: 1, timeoutMs: 20_000, ...unboundedDownload, proxy: way },
    () => t.fail('it is told'),
  );
  const first = await between.request(0);
  give();
  await eventually(() => first.socket.destroyed);
  const late = await fetched('http://files.test/a', { proxy: way, timeoutMs: 50 });
  t.match(late, { kind: 'invalid_value', message: /it took too long/ });
  await eventually(() => between.requests.every(({ socket }) => socket.destroyed));
});

test('a download that its proxy refuses tells the client nothing of the proxy', async (t) => {
  const between = await startProxy(t, ({ socket }) => socket.end('HTTP/1.1 403 words\r\n\r\n'));
  const result = await fetched('http://files.test/a', {
    proxy: resolveProxy(between.url('user:pass'), null),
  });
  t.match(result, {
    kind: 'invalid_value',
    message: 'The file at files.test cannot be fetched: the connection to it failed.',
  });
  t.match((result as GatewayError).cause, { cause: /^files\.test: proxy answered 403 \(127/ });
});
