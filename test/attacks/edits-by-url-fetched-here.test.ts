import { type Test, test } from 'tap';
import { startGateway } from '../support/gateway.js';
import { ask, mediaConfig } from '../support/media/gateway.js';
import { inputBody, png } from '../support/media/images.js';
import { jsonAnswer, type RawUpstream, startRawUpstream } from '../support/upstream.js';

const edits = '/v1/images/edits';
const made = JSON.stringify({ data: [{ url: 'https://cdn.example.com/a.png' }] });
const drawn = JSON.stringify({
  output: {
    choices: [{ message: { role: 'assistant', content: [{ image: 'https://cdn.example.com/a.png' }] } }],
  },
});
const data = `data:image/png;base64,${png.toString('base64')}`;

/** An upstream of a style, and a server with an image that nobody but the upstream should ask. */
async function stage(t: Test, images: 'openai' | 'openai-files' | 'dashscope') {
  const files = await startRawUpstream(t, ({ socket }) =>
    socket.write(
      Buffer.concat([
        Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: ${png.length}\r\n\r\n`),
        png,
      ]),
    ),
  );
  const upstream = await startRawUpstream(t, ({ socket }) =>
    socket.write(jsonAnswer(200, images === 'dashscope' ? drawn : made)),
  );
  const gateway = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: { u: { baseUrl: upstream.url, fetchPrivate: true } },
      models: { m: { protocols: ['images'], targets: [{ upstream: 'u', model: 'real', images }] } },
    }),
  });
  return { files, upstream, gateway, url: `${files.url}/a.png?sig=1` };
}

const sent = ({ requests }: RawUpstream): Record<string, unknown> =>
  JSON.parse(requests.at(-1)?.body.toString() ?? '{}') as Record<string, unknown>;

test('an edit by URL in the form of messages goes to an OpenAI upstream as a URL', async (t) => {
  const { files, upstream, gateway, url } = await stage(t, 'openai');
  const body = inputBody('m', [{ image: url }, { image: data }, { text: 'blue' }], { n: 2, size: '64*64' });
  const heard = await ask(gateway, 'POST', edits, { body });
  t.equal(heard.status, 200, heard.text);
  t.match(upstream.requests[0]?.head, /^POST \/v1\/images\/edits /);
  t.match(upstream.requests[0]?.head, /content-type: application\/json/);
  t.strictSame(sent(upstream), {
    model: 'real',
    prompt: 'blue',
    n: 2,
    size: '64x64',
    images: [{ image_url: url }, { image_url: data }],
  });
  t.equal(files.requests.length, 0);
});

test('an edit by URL in the form of messages goes to a DashScope upstream as a URL', async (t) => {
  const { files, upstream, gateway, url } = await stage(t, 'dashscope');
  const heard = await ask(gateway, 'POST', edits, {
    body: inputBody('m', [{ image: url }, { text: 'blue' }]),
  });
  t.equal(heard.status, 200, heard.text);
  t.match(sent(upstream), { input: { messages: [{ content: [{ image: url }, { text: 'blue' }] }] } });
  t.equal(files.requests.length, 0);
});

test('an edit of the other form by URL goes to both as a URL', async (t) => {
  for (const style of ['openai', 'dashscope'] as const) {
    const { files, upstream, gateway, url } = await stage(t, style);
    const body = { model: 'm', prompt: 'blue', images: [{ image_url: url }] };
    const heard = await ask(gateway, 'POST', edits, { body });
    t.equal(heard.status, 200, heard.text);
    t.ok(upstream.requests[0]?.body.includes(url));
    t.equal(files.requests.length, 0, style);
  }
});

test('only an upstream that needs bytes has us fetch, whichever form the edit has', async (t) => {
  const { files, upstream, gateway, url } = await stage(t, 'openai-files');
  const bodies = [
    inputBody('m', [{ image: url }, { text: 'blue' }]),
    { model: 'm', prompt: 'blue', images: [{ image_url: url }] },
  ];
  for (const [index, body] of bodies.entries()) {
    const heard = await ask(gateway, 'POST', edits, { body });
    t.equal(heard.status, 200, heard.text);
    t.equal(files.requests.length, index + 1);
    t.match(upstream.requests.at(-1)?.head, /content-type: multipart\/form-data/);
    t.ok(upstream.requests.at(-1)?.body.includes(png));
  }
  const bytes = inputBody('m', [{ image: data }, { text: 'blue' }]);
  t.equal((await ask(gateway, 'POST', edits, { body: bytes })).status, 200);
  t.equal(files.requests.length, 2);
});
