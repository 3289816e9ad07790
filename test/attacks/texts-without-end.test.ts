import { test } from 'tap';
import { masked } from '../../src/attempts/secrets.js';
import { parseHostPattern } from '../../src/config/networks.js';
import { type Downloaded, download } from '../../src/upstream/download.js';
import { deniesHost, reachUrl } from '../../src/upstream/remote-url.js';
import { startGateway, testKey } from '../support/gateway.js';
import { goodAnswer } from '../support/routed.js';
import { anyHost, unboundedDownload } from '../support/unbounded-download.js';
import { startRawUpstream } from '../support/upstream.js';

/*
 * An expression that looks through such a text from each of its characters holds a worker for hours: these tests would
 * not end.
 */

const many = 1_000_000;
const headers = { authorization: `Bearer ${testKey}` };

test('a number of a million digits in a form is refused at once', async (t) => {
  const upstream = await startRawUpstream(t, goodAnswer);
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    config: {
      models: { m: { protocols: ['audio', 'images', 'video'], targets: [{ upstream: 'u0', model: 'm' }] } },
      store: { kind: 'embedded', path: t.testdir() },
    },
  });
  const asked = [
    ['/v1/audio/transcriptions', { model: 'm', temperature: `${'0'.repeat(many)}!` }, 'file'],
    ['/v1/images/edits', { model: 'm', prompt: 'x', n: `${'0'.repeat(many)}!` }, 'image'],
    ['/v1/videos', { model: 'm', prompt: 'x', seconds: `${'1'.repeat(many)}!` }, 'input_reference'],
  ] as const;
  for (const [path, fields, file] of asked) {
    const body = new FormData();
    for (const [name, value] of Object.entries(fields)) body.append(name, value);
    body.append(file, new Blob(['x'], { type: 'image/png' }), 'a.png');
    const answer = await fetch(gateway.url + path, { method: 'POST', headers, body });
    t.equal(answer.status, 400, path);
    await answer.text();
  }
  t.equal(upstream.requests.length, 0);
});

const rules = {
  ports: [[1, 65_535]] as const,
  denyNetworks: [],
  denyHosts: ['*.example.com', 'intern.example', parseHostPattern('x.example.')].flatMap(
    (name) => name ?? [],
  ),
};

test('a URL whose host is a million dots is refused at once, wherever it is fetched', async (t) => {
  const url = `http://${'.'.repeat(many)}a/`;
  const fetched = await new Promise<Downloaded | Error>((done) => {
    download(url, { allowPrivate: false, maxBytes: 1, timeoutMs: 60_000, ...unboundedDownload, rules }, done);
  });
  t.match(fetched, { kind: 'invalid_value' });
  t.match(await new Promise((done) => reachUrl(url, { ...anyHost, allowPrivate: false, rules }, done)), {
    message: /no address/,
  });
  t.notOk(deniesHost(rules, `${'.'.repeat(many)}a`));
  t.ok(deniesHost(rules, 'a.example.com..'));
  t.ok(deniesHost(rules, 'intern.example.'));
  t.ok(deniesHost(rules, `x.example${'.'.repeat(many)}`));
});

test('a call with such a URL is refused, and the worker serves on', async (t) => {
  const upstream = await startRawUpstream(t, goodAnswer);
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    upstream: { kind: 'generateContent' },
  });
  const url = `http://${'.'.repeat(many)}a/x.png`;
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'm',
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
    }),
  });
  t.equal(answer.status, 400);
  t.match(await answer.json(), { error: { param: 'messages[0].content[0]' } });
  t.equal(upstream.requests.length, 0);
});

test('the words of an upstream for the log lose what looks like a key, in one look', (t) => {
  for (const text of ['a', 'a-', 'x', '*', '.', '*…', '0', 'eyJ', 'sk-', 'account ', 'Bearer ']) {
    const words = `${text.repeat(20_000)}!`;
    t.ok(masked(words, null).length <= 1001, text);
  }
  for (const secret of ['abcd****wxyz', 'abc...xyz', 'AAAAAAAAxxxxxBBBB', 'ab…yz', 'abcdefghijklmnopqrs1'])
    t.equal(masked(`the key ${secret} is wrong`, null), 'the key [secret] is wrong', secret);
  t.equal(masked('internationalization is no number… here', null), 'internationalization is no number… here');
  t.end();
});
