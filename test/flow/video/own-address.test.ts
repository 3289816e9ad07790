import { test } from 'tap';
import { parseNetwork } from '../../../src/config/networks.js';
import type { Call } from '../../../src/flow/call.js';
import { ownUrl } from '../../../src/flow/video/answer.js';
import { trustedProxies } from '../../../src/http/client-address.js';
import { RequestHead } from '../../../src/http/request-head.js';

interface Case {
  readonly peer?: readonly number[];
  readonly proto?: string;
  readonly host?: string;
  readonly publicUrl?: string;
  readonly tls?: boolean;
}

function urlFor({ peer, proto, host, publicUrl, tls }: Case): string {
  const head = new RequestHead();
  head.host = 'own:8080';
  head.peer = peer === undefined ? null : Uint8Array.from(peer).buffer;
  head.forwardedProto = proto ?? '';
  head.forwardedHost = host ?? '';
  const listen = { publicUrl: publicUrl ?? null, tls: tls === true ? {} : null };
  const proxies = trustedProxies([parseNetwork('10.0.0.0/8')].filter((network) => network !== null));
  return ownUrl({ exchange: { head }, running: { snapshot: { listen }, proxies } } as unknown as Call);
}

const proxy = [10, 0, 0, 1];

test('the own address is that of the request, with the own scheme', async (t) => {
  t.equal(urlFor({}), 'http://own:8080');
  t.equal(urlFor({ tls: true }), 'https://own:8080');
});

test('a trusted proxy says under which address it was asked, and nobody else does', async (t) => {
  const said = { proto: 'https', host: 'api.example.com' };
  t.equal(urlFor({ peer: proxy, ...said }), 'https://api.example.com');
  t.equal(urlFor({ peer: proxy, proto: 'https' }), 'https://own:8080');
  t.equal(
    urlFor({ peer: proxy, proto: 'http, HTTPS', host: 'evil.example, [::1]:8443' }),
    'https://[::1]:8443',
  );
  t.equal(urlFor({ peer: [203, 0, 113, 9], ...said }), 'http://own:8080');
  t.equal(urlFor(said), 'http://own:8080');
  t.equal(urlFor({ peer: proxy, publicUrl: 'https://public.example', ...said }), 'https://public.example');
});

test('what is no scheme or no host is passed over', async (t) => {
  t.equal(urlFor({ peer: proxy, proto: 'javascript', host: 'a/b' }), 'http://own:8080');
  t.equal(urlFor({ peer: proxy, proto: '', host: 'user@evil.example' }), 'http://own:8080');
});
