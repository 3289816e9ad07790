import { type Test, test } from 'tap';
import { parseHostPattern, parseNetwork } from '../../src/config/networks.js';
import { GatewayError } from '../../src/errors.js';
import type { Resolver } from '../../src/upstream/address.js';
import { type Downloaded, download } from '../../src/upstream/download.js';
import {
  allowsPort,
  deniesAddress,
  deniesHost,
  type FetchRules,
  type Reached,
  Refusal,
  reachUrl,
} from '../../src/upstream/remote-url.js';
import { startGateway } from '../support/gateway.js';
import { clientFormats } from '../support/media/client-formats.js';
import { ask, mediaConfig } from '../support/media/gateway.js';
import { inputBody, png } from '../support/media/images.js';
import { anyHost, unboundedDownload } from '../support/unbounded-download.js';
import { jsonAnswer, startHttpUpstream, startRawUpstream } from '../support/upstream.js';

const anyPort = [[1, 65_535]] as const;

/** Rules as a config file has them. */
function rulesOf(networks: readonly string[], hosts: readonly string[], ports = anyPort): FetchRules {
  return {
    ports,
    denyNetworks: networks.flatMap((text) => parseNetwork(text) ?? []),
    denyHosts: hosts.flatMap((text) => parseHostPattern(text) ?? []),
  };
}

const resolvingTo =
  (...addresses: string[]): Resolver =>
  (_name, _options, done) =>
    setImmediate(() =>
      done(
        null,
        addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
      ),
    );

function reach(url: string, rules: FetchRules, resolve?: Resolver): Promise<Reached | Refusal> {
  const options = { ...anyHost, allowPrivate: true, rules, ...(resolve === undefined ? {} : { resolve }) };
  return new Promise((done) => reachUrl(url, options, done));
}

test('a denied network is found behind every spelling of its addresses', async (t) => {
  const rules = rulesOf(['127.0.0.0/8', '10.1.2.3', 'fd00::/8', '2001:db8:5::/48'], []);
  const denied = [
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f.1',
    '0x7f000001',
    '0177.0.0.1',
    '127.0.0.1.',
    '127。0。0。1',
    '%31%32%37.0.0.1',
    '10.1.2.3',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[0:0:0:0:0:ffff:7f00:0001]',
    '[::127.0.0.1]',
    '[64:ff9b::127.0.0.1]',
    '[64:ff9b:1::10.1.2.3]',
    '[2002:7f00:1::]',
    '[FD00::1]',
    '[fd12:3456::]',
    '[2001:DB8:5::1]',
  ];
  for (const host of denied) {
    for (const url of [`http://${host}/a`, `https://${host}:8443/a`, `HTTP://${host.toUpperCase()}/a`])
      t.type(await reach(url, rules), Refusal, url);
  }
  for (const host of ['126.0.0.1', '10.1.2.4', '[fc00::1]', '[2001:db8:6::1]', '[::ffff:10.1.2.4]'])
    t.notMatch(await reach(`http://${host}/`, rules), Refusal, host);
  t.end();
});

test('a network that is written in one family is denied in its forms of the other, and no wider', (t) => {
  t.ok(deniesAddress(rulesOf(['::ffff:10.0.0.0/104'], []), '10.9.9.9'));
  t.notOk(deniesAddress(rulesOf(['::ffff:10.0.0.0/104'], []), '11.0.0.1'));
  t.ok(deniesAddress(rulesOf(['0.0.0.0/0'], []), '64:ff9b::808:808'));
  t.ok(deniesAddress(rulesOf(['::/0'], []), '2606:4700::1'));
  t.notOk(deniesAddress(rulesOf(['::/0'], []), '8.8.8.8'), 'no IPv6 is not no IPv4');
  t.ok(deniesAddress(rulesOf(['fe80::/10'], []), 'fe80::1%eth0'), 'with a zone');
  t.ok(deniesAddress(rulesOf(['10.0.0.0/9'], []), '10.127.255.255'));
  t.notOk(deniesAddress(rulesOf(['10.0.0.0/9'], []), '10.128.0.0'));
  t.ok(deniesAddress(rulesOf(['10.0.0.0/8'], []), 'no address'), 'what cannot be read is not asked');
  t.end();
});

test('a denied name is found in every spelling, and those below it where that is said', async (t) => {
  const rules = rulesOf([], ['Files.Example.com.', '*.inner.example', 'bücher.example']);
  const resolve = resolvingTo('1.1.1.1');
  for (const host of [
    'files.example.com',
    'FILES.example.COM',
    'files.example.com.',
    'files%2eexample.com',
    'files。example.com',
    'ｆｉｌｅｓ.example.com',
    'a.inner.example',
    'a.b.inner.example.',
    'BÜCHER.example',
    'xn--bcher-kva.example',
  ]) {
    for (const more of ['', ':80', ':8080']) {
      const url = `http://${host}${more}/a.png`;
      t.type(await reach(url, rules, resolve), Refusal, url);
    }
  }
  for (const host of ['example.com', 'myfiles.example.com', 'inner.example', 'xinner.example'])
    t.notMatch(await reach(`http://${host}/`, rules, resolve), Refusal, host);
  t.ok(deniesHost(rules, 'files.example.com..'));
});

test('a name is denied as soon as one of its addresses is', async (t) => {
  const rules = rulesOf(['10.0.0.0/8'], []);
  for (const addresses of [
    ['10.0.0.1'],
    ['1.1.1.1', '10.0.0.1'],
    ['1.1.1.1', '::ffff:10.0.0.1'],
    ['2606:4700::1', '64:ff9b::a00:1'],
  ])
    t.type(await reach('http://a.test/', rules, resolvingTo(...addresses)), Refusal, addresses.join());
  t.notMatch(await reach('http://a.test/', rules, resolvingTo('1.1.1.1', '11.0.0.1')), Refusal);
});

test('only ports of the list are asked: 80 and 443 unless it says more', async (t) => {
  const usual = rulesOf([], [], [
    [80, 80],
    [443, 443],
  ] as never);
  const resolve = resolvingTo('1.1.1.1');
  for (const port of ['', ':80', ':443', ':080']) {
    t.notMatch(await reach(`http://a.test${port}/`, usual, resolve), Refusal, `http ${port}`);
    t.notMatch(await reach(`https://a.test${port}/`, usual, resolve), Refusal, `https ${port}`);
  }
  for (const port of [':22', ':6379', ':8080', ':81', ':65535', ':0'])
    t.type(await reach(`http://a.test${port}/`, usual, resolve), Refusal, port);
  const secure = rulesOf([], [], [[443, 443]] as never);
  t.type(await reach('http://a.test/', secure, resolve), Refusal);
  t.notMatch(await reach('https://a.test/', secure, resolve), Refusal);
  t.ok(allowsPort(rulesOf([], [], [[8000, 8999]] as never), 8500));
});

/** A server of files that counts who asks, and redirects where it is told. */
async function startFiles(t: Test, location?: () => string) {
  let asked = 0;
  const { origin, port } = await startHttpUpstream(t, (_request, response) => {
    asked++;
    const to = location?.();
    if (to !== undefined) response.writeHead(302, { location: to });
    else response.writeHead(200, { 'content-type': 'image/png' });
    response.end(to === undefined ? png : '');
  });
  return { port, url: `${origin}/a.png`, asked: () => asked };
}

test('a redirect leads to no denied host, network or port', async (t) => {
  const inner = await startFiles(t);
  for (const to of [inner.url, inner.url.replace('127.0.0.1', 'localhost'), 'http://denied.test/a.png']) {
    const outer = await startFiles(t, () => to);
    const only = rulesOf([], ['localhost', 'denied.test'], [[outer.port, outer.port]] as never);
    const limits = {
      maxBytes: 1000,
      timeoutMs: 20_000,
      allowPrivate: true,
      ...unboundedDownload,
      rules: only,
    };
    const got = await new Promise<Downloaded | GatewayError>((done) => download(outer.url, limits, done));
    t.type(got, GatewayError, to);
    t.equal(outer.asked(), 1);
  }
  t.equal(inner.asked(), 0);
});

const denials = [
  { what: 'ports', fetch: {} },
  { what: 'networks', fetch: { ports: ['1-65535'], denyNetworks: ['127.0.0.0/8'] } },
  { what: 'networks in IPv6 form', fetch: { ports: ['1-65535'], denyNetworks: ['::ffff:127.0.0.0/104'] } },
];

test('no feature that fetches goes where the operator denies it, private addresses allowed or not', async (t) => {
  for (const { what, fetch } of denials) {
    const files = await startFiles(t);
    const upstream = await startRawUpstream(t, ({ head, socket }) => {
      const isVideo = head.includes('/video/generations');
      socket.write(
        isVideo
          ? jsonAnswer(200, JSON.stringify({ task_id: 'a', id: 'a', status: 'completed', url: files.url }))
          : jsonAnswer(200, JSON.stringify({ data: [{ url: files.url }] })),
      );
    });
    const made = { baseUrl: upstream.url, fetchPrivate: true };
    const gateway = await startGateway(t, {
      config: mediaConfig(t, {
        upstreams: {
          chat: made,
          google: { ...made, kind: 'generateContent' },
          generic: { ...made, kind: 'generic' },
          bytes: made,
        },
        models: {
          image: { protocols: ['images'], targets: [{ upstream: 'chat' }] },
          edit: { protocols: ['images'], targets: [{ upstream: 'bytes', images: 'openai-files' }] },
          text: { protocols: ['chat', 'messages', 'responses'], targets: [{ upstream: 'google' }] },
          video: { protocols: ['video'], targets: [{ upstream: 'generic' }] },
        },
        config: { fetch },
      }),
    });
    const asBytes = { model: 'image', prompt: 'a', response_format: 'b64_json' };
    const image = await ask(gateway, 'POST', '/v1/images/generations', { body: asBytes });
    t.equal(image.status, 502, `${what}: an image that the upstream made`);
    const edited = inputBody('edit', [{ image: files.url }, { text: 'a' }]);
    const edit = await ask(gateway, 'POST', '/v1/images/edits', { body: edited });
    t.equal(edit.status, 400, `${what}: an image of an edit`);
    const content = [{ type: 'image_url', image_url: { url: files.url } }];
    const chat = { model: 'text', messages: [{ role: 'user', content }] };
    const text = await ask(gateway, 'POST', '/v1/chat/completions', { body: chat });
    t.equal(text.status, 400, `${what}: an image of a conversation`);
    const [, , , generic] = clientFormats;
    if (generic === undefined) throw new Error('no client format');
    const id = generic.idOf(await generic.create(gateway, { model: 'video', prompt: 'a' }));
    for (const method of ['GET', 'HEAD'] as const) {
      const video = await ask(gateway, method, `/v1/videos/${id}/content`);
      t.equal(video.status, 502, `${what}: a video`);
    }
    t.equal(files.asked(), 0, `${what}: nothing was asked`);
    await gateway.gateway.close();
  }
});

test("an upstream's own origin has any port, and is denied all the same where the list has it", async (t) => {
  const upstream = await startRawUpstream(t, ({ head, socket }) => {
    const [, host] = /^host: (.*)$/m.exec(head) ?? [];
    if (head.startsWith('GET'))
      socket.write(
        Buffer.concat([
          Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: ${png.length}\r\n\r\n`),
          png,
        ]),
      );
    else socket.write(jsonAnswer(200, JSON.stringify({ data: [{ url: `http://${host?.trim()}/a.png` }] })));
  });
  for (const [fetch, status] of [
    [{}, 200],
    [{ denyNetworks: ['127.0.0.1/32'] }, 502],
  ] as const) {
    const gateway = await startGateway(t, {
      config: mediaConfig(t, {
        upstreams: { u: { baseUrl: upstream.url } },
        models: { m: { protocols: ['images'], targets: [{ upstream: 'u' }] } },
        config: { fetch },
      }),
    });
    const body = { model: 'm', prompt: 'a', response_format: 'b64_json' };
    t.equal((await ask(gateway, 'POST', '/v1/images/generations', { body })).status, status);
    await gateway.gateway.close();
  }
});
