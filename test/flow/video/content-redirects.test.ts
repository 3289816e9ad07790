import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';
import { type Test, test } from 'tap';
import { testKey } from '../../support/gateway.js';
import { compat } from '../../support/media/client-formats.js';
import { type RawUpstream, startRawUpstream } from '../../support/upstream.js';
import { fileAnswer, startContent } from './contents.js';

const bytes = Buffer.from('0123456789');
const redirect = (location: string, status = 302): string =>
  `HTTP/1.1 ${status} X\r\nlocation: ${location}\r\nset-cookie: a=b\r\ncontent-length: 4\r\n\r\ngone`;
const originOf = (url: string): string => new URL(url).origin;
const targetOf = (head: string): string => head.split(' ')[1] ?? '';

function startFiles(t: Parameters<typeof startRawUpstream>[0]): Promise<RawUpstream> {
  return startRawUpstream(t, () => fileAnswer(bytes));
}

for (const kind of ['chat', 'generic'] as const) {
  test(`${kind}: a redirect is followed here, with the range and without credentials`, async (t) => {
    const files = await startFiles(t);
    let status = 0;
    const { get, contents } = await startContent(
      t,
      ({ socket }) => socket.write(redirect(`${originOf(files.url)}/deep/file.mp4?token=1#part`, status)),
      { kind, upstream: { fetchPrivate: true, headers: { 'x-own': 'secret' } } },
    );
    for (status of [301, 302, 303, 307, 308]) {
      const heard = await get({ range: 'bytes=2-4' });
      t.equal(heard.status, 206);
      t.equal(heard.text, '234');
      t.equal(heard.headers.get('location'), null);
      t.equal(heard.headers.get('set-cookie'), null);
      const sent = files.requests.at(-1)?.head ?? '';
      t.match(sent, /^GET \/deep\/file\.mp4\?token=1 HTTP\/1\.1\r\n/);
      t.match(sent, `\r\nhost: ${new URL(files.url).host}\r\n`);
      t.match(sent, /\r\nrange: bytes=2-4/);
      t.notMatch(sent, /upstream-key|authorization|secret|sk-/i);
      if (kind === 'generic') t.notMatch(contents().at(-1)?.head, /upstream-key|authorization|secret|sk-/i);
      else t.match(contents().at(-1)?.head, /authorization: Bearer upstream-key/);
    }
  });

  test(`${kind}: three redirects are followed, relative ones too, and a fourth is not`, async (t) => {
    let length = 3;
    const { get, contents } = await startContent(
      t,
      ({ socket, head }) => {
        const [, step] = /step(\d)/.exec(targetOf(head)) ?? [];
        const next = step === undefined ? 1 : Number(step) + 1;
        if (next > length) socket.write(fileAnswer(bytes));
        else socket.write(redirect(next % 2 === 1 ? `step${next}` : `/other/step${next}`));
      },
      { kind },
    );
    t.equal((await get()).text, '0123456789');
    const targets = contents().map(({ head }) => targetOf(head));
    const [first = ''] = targets;
    const folder = first.slice(0, first.lastIndexOf('/'));
    t.strictSame(targets.slice(1), [`${folder}/step1`, '/other/step2', '/other/step3']);
    length = 4;
    const heard = await get();
    t.equal(heard.status, 502);
    t.match(heard.json, { error: { code: 'upstream_error', message: /redirects too many times/ } });
    t.equal(heard.headers.get('location'), null);
  });

  test(`${kind}: a redirect into a private network is not followed unless the config allows it`, async (t) => {
    const files = await startFiles(t);
    const { port } = new URL(files.url);
    let location = '';
    const { get, contents } = await startContent(t, ({ socket }) => socket.write(redirect(location)), {
      kind,
    });
    let asked = 0;
    for (location of [
      `http://127.0.0.1:${port}/file.mp4`,
      `http://localhost:${port}/file.mp4`,
      `http://[::1]:${port}/file.mp4`,
      `http://2130706433:${port}/`,
      'http://169.254.169.254/latest/meta-data',
      'ftp://127.0.0.1/file.mp4',
      'file:///etc/passwd',
      'http://user:password@example.invalid/file.mp4',
    ]) {
      const heard = await get();
      t.equal(heard.status, 502, location);
      t.equal(contents().length, ++asked, 'the upstream was asked');
      t.match(heard.json, { error: { code: 'upstream_error' } });
      t.notMatch(heard.text, /127\.0\.0\.1|169\.254|localhost|passwd|password/);
    }
    t.equal(files.requests.length, 0);
  });
}

test('an address in a private network is asked where it is the upstream itself, or the config allows it', async (t) => {
  const files = await startFiles(t);
  const elsewhere = () => `${originOf(files.url)}/file.mp4`;
  const refused = await startContent(t, () => {}, { kind: 'generic', url: elsewhere });
  const heard = await refused.get();
  t.equal(heard.status, 502);
  t.match(heard.json, { error: { code: 'upstream_error', message: /cannot be fetched/ } });
  t.notMatch(heard.text, /127\.0\.0\.1/);
  t.equal(files.requests.length, 0);

  const allowed = await startContent(t, () => {}, {
    kind: 'generic',
    url: elsewhere,
    upstream: { fetchPrivate: true },
  });
  t.equal((await allowed.get()).text, '0123456789');
  t.equal(files.requests.length, 1);

  const itself = await startContent(t, ({ socket }) => socket.write(fileAnswer(bytes)), { kind: 'generic' });
  t.equal((await itself.get()).text, '0123456789');
  t.match(itself.contents()[0]?.head, /^GET \/v1\/file\.mp4\?sig=1 HTTP/);
  t.notMatch(itself.contents()[0]?.head, /upstream-key/);
});

test('an address that is none is a video that cannot be had', async (t) => {
  for (const url of [
    '',
    'nonsense',
    'javascript:alert(1)',
    'file:///etc/passwd',
    `http://x/${'a'.repeat(9000)}`,
  ]) {
    const { get, gateway, id } = await startContent(t, () => {}, { kind: 'generic', url: () => url });
    t.equal((await get()).status, 404, url.slice(0, 20));
    const { heard } = await compat.show(gateway, id);
    t.match(heard.json, { status: 'completed' });
  }
});

test('where nothing listens any more, the answer is 502', async (t) => {
  const { get } = await startContent(t, () => {}, {
    kind: 'generic',
    url: () => 'http://127.0.0.1:1/file.mp4',
    upstream: { fetchPrivate: true },
  });
  const heard = await get();
  t.equal(heard.status, 502);
  t.notMatch(heard.text, testKey);
  t.equal((await get({}, { method: 'HEAD' })).status, 502);
});

/** Has a name resolve to these addresses until the test ends. */
function resolveTo(t: Test, known: string, addresses: readonly string[]): void {
  const { lookup } = dns;
  const found = addresses.map((address) => ({ address, family: 4 }));
  const stub = (name: string, options: object, done: (error: null, all: typeof found) => void): void => {
    if (name === known) done(null, found);
    else Reflect.apply(lookup, dns, [name, options, done]);
  };
  const put = (value: unknown): void => {
    Reflect.set(dns, 'lookup', value);
    syncBuiltinESMExports();
  };
  put(stub);
  t.teardown(() => put(lookup));
}

test('where nobody answers at one address of a name, the next one is asked', async (t) => {
  const files = await startFiles(t);
  const { port } = new URL(files.url);
  const url = `http://files.example:${port}/file.mp4`;
  const { get } = await startContent(t, ({ socket }) => socket.write(redirect(url)), {
    upstream: { fetchPrivate: true },
  });
  resolveTo(t, 'files.example', ['127.0.0.9', '127.0.0.10', '127.0.0.1']);
  t.equal((await get()).text, '0123456789');
  t.match(files.requests.at(-1)?.head, `\r\nhost: files.example:${port}\r\n`);
  resolveTo(t, 'files.example', ['127.0.0.9', '127.0.0.10']);
  t.match((await get()).json, { error: { code: 'upstream_error' } });
});
