import { test } from 'tap';
import { ownSecrets } from '../../../src/config/snapshot.js';
import type { Upstream } from '../../../src/config/types.js';
import type { Call } from '../../../src/flow/call.js';
import { isForClients, shownTask } from '../../../src/flow/video/answer.js';
import { clientFormats, compat } from '../../support/media/client-formats.js';
import { noResult, sampleTask } from '../../video/samples.js';
import { startContent } from './contents.js';

const upstreamAt = (authority: string, fetchPrivate = false) =>
  ({ origin: { authority }, fetchPrivate, secrets: ownSecrets([], []) }) as unknown as Upstream;
const vendor = upstreamAt('api.vendor.example:8443');

test('an address on the public internet is for clients', async (t) => {
  for (const url of [
    'https://cdn.example.com/x.mp4',
    'http://cdn.example.com:8080/x.mp4?token=1#part',
    'https://vendor.example/x.mp4',
    'https://93.184.216.34/x.mp4',
    'https://[2606:4700::1111]/x.mp4',
    'https://localhost.example.com/x.mp4',
  ]) {
    t.ok(isForClients(url, vendor), url);
    t.ok(isForClients(url, null), url);
    t.notOk(
      isForClients(url, upstreamAt('api.vendor.example', true)),
      'the config says that it may be private',
    );
  }
});

test('no address that is not for clients is shown in a task', async (t) => {
  const call = { running: { snapshot: { upstreams: new Map([['studio', vendor]]) } } } as unknown as Call;
  const shown = (url: string | null, watermarkUrl: string) =>
    shownTask(call, sampleTask({ result: { ...noResult, url, watermarkUrl } })).result;
  const [open, closed] = ['https://cdn.example.com/x.mp4', 'http://10.1.2.3/x.mp4'];
  t.strictSame(shown(open, open), { ...noResult, url: open, watermarkUrl: open });
  t.strictSame(shown(open, closed), { ...noResult, url: open });
  t.strictSame(shown(closed, open), { ...noResult, watermarkUrl: open });
  t.strictSame(shown(null, closed), noResult);
  const others = [
    { url: open, duration: null, watermarkUrl: closed },
    { url: closed, duration: null, watermarkUrl: open },
  ];
  t.strictSame(shownTask(call, sampleTask({ result: { ...noResult, others } })).result, {
    ...noResult,
    others: [{ url: open, duration: null }],
  });
});

test("an address in a private network, or on the upstream itself, is the gateway's own affair", async (t) => {
  for (const url of [
    'http://127.0.0.1/x.mp4',
    'http://2130706433/x.mp4',
    'http://10.1.2.3:9000/x.mp4',
    'http://192.168.0.1/x.mp4',
    'http://169.254.169.254/x.mp4',
    'http://[::1]/x.mp4',
    'http://[fe80::1]/x.mp4',
    'http://[::ffff:10.0.0.1]/x.mp4',
    'http://localhost/x.mp4',
    'http://LOCALHOST./x.mp4',
    'http://files.localhost/x.mp4',
    'http://minio:9000/x.mp4',
    'http://minio.local/x.mp4',
    'http://storage.internal/x.mp4',
    'https://user:password@cdn.example.com/x.mp4',
    'ftp://cdn.example.com/x.mp4',
    'nonsense',
  ])
    t.notOk(isForClients(url, null), url);
  for (const url of [
    'https://api.vendor.example:8443/x.mp4',
    'http://api.vendor.example/x.mp4',
    'https://API.vendor.example./x',
  ]) {
    t.notOk(isForClients(url, vendor), url);
    t.ok(isForClients(url, upstreamAt('other.example')), url);
  }
  t.notOk(isForClients('https://[2606:4700::1111]/x', upstreamAt('[2606:4700::1111]:8000')));
});

test("each format shows the upstream's own address where clients can use it", async (t) => {
  const url = 'https://cdn.example.com/x.mp4';
  const { gateway, id } = await startContent(t, () => {}, { kind: 'generic', url: () => url });
  for (const clientFormat of clientFormats) {
    const { heard } = await clientFormat.show(gateway, id);
    t.equal(heard.text.includes(url), clientFormat !== compat, heard.text);
    t.notMatch(heard.text, '/content');
  }
});

test("each format shows the gateway's address where the upstream's is private", async (t) => {
  const stage = await startContent(t, () => {}, { kind: 'generic' });
  const allowed = await startContent(t, () => {}, {
    kind: 'generic',
    url: () => 'https://cdn.example.com/x.mp4',
    upstream: { fetchPrivate: true },
  });
  for (const { gateway, id, path, upstream } of [stage, allowed]) {
    for (const clientFormat of clientFormats) {
      const { heard } = await clientFormat.show(gateway, id);
      t.equal(heard.text.includes(gateway.url + path), clientFormat !== compat, heard.text);
      t.notOk(
        heard.text.includes(new URL(upstream.url).host) || heard.text.includes('example.com'),
        heard.text,
      );
    }
  }
});
