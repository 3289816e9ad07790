import { type Test, test } from 'tap';
import { hashKey } from '../../../src/keys/secret.js';
import { startGateway, testKey } from '../../support/gateway.js';
import { ask } from '../../support/media/gateway.js';
import { png } from '../../support/media/images.js';
import { jsonAnswer, startRawUpstream } from '../../support/upstream.js';

const answer = jsonAnswer(200, JSON.stringify({ created: 5, data: [{ b64_json: 'AAAA' }] }));
const generations = '/v1/images/generations';

/** A gateway whose key may use the models `m` and `open`, and not `closed`. */
async function start(t: Test, target: object = {}) {
  const upstream = await startRawUpstream(t, answer);
  const of = (name: string, protocol: string) => ({
    protocols: [protocol],
    targets: [{ upstream: 'u0', model: name, ...target }],
  });
  const gateway = await startGateway(t, {
    upstreams: [upstream.url],
    config: {
      models: { m: of('m', 'images'), open: of('open-there', 'chat'), closed: of('closed-there', 'chat') },
      groups: { default: { models: ['m', 'open'] } },
      keys: [{ id: 'k', hash: hashKey(testKey), groups: ['default'] }],
    },
  });
  return { upstream, gateway };
}

function formWith(field: string, author: string): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries({
    model: 'm',
    prompt: 'x',
    [field]: author,
    'svg[reasoning][effort]': 'low',
  }))
    form.append(name, value);
  form.append('image', new Blob([png]), 'a.png');
  return form;
}

test('an SVG is written by no model that the key may not use', async (t) => {
  const { upstream, gateway } = await start(t);
  for (const author of ['closed', 'closed-there', 'Closed-there:nitro']) {
    const svg = { model: author, reasoning: { effort: 'low' } };
    const bodies = [
      { path: generations, body: { model: 'm', prompt: 'x', svg } },
      { path: generations, body: { model: 'm', prompt: 'x', response_format: 'b64_json', svg } },
      {
        path: '/v1/images/edits',
        body: { model: 'm', prompt: 'x', image: 'data:image/png;base64,AAAA', svg },
      },
      { path: '/v1/images/edits', body: formWith('svg[model]', author) },
    ];
    for (const { path, body } of bodies) {
      const { status, json } = await ask(gateway, 'POST', path, { body });
      t.match({ status, json }, { status: 404, json: { error: { code: 'model_not_found' } } });
    }
  }
  t.equal(upstream.requests.length, 0);
});

test('the model that writes an SVG reaches the upstream by its name there', async (t) => {
  const { upstream, gateway } = await start(t);
  const svg = { model: 'open', reasoning: { effort: 'low' } };
  const { status } = await ask(gateway, 'POST', generations, {
    body: { model: 'm', prompt: 'x', svg, n: 1 },
  });
  t.equal(status, 200);
  t.equal(
    upstream.requests[0]?.body.toString(),
    '{"model":"m","prompt":"x","svg":{"model":"open-there","reasoning":{"effort":"low"}},"n":1}',
  );
  await ask(gateway, 'POST', '/v1/images/edits', { body: formWith('svg[model]', 'open') });
  t.match(upstream.requests[1]?.body.toString(), /name="svg\[model\]"\r\n\r\nopen-there\r\n/);
  const other = { model: 'm', prompt: 'x', svg: { model: 'of-the-vendor' } };
  await ask(gateway, 'POST', generations, { body: other });
  t.equal(upstream.requests[2]?.body.toString(), JSON.stringify(other), 'a name of the upstream alone');
  for (const open of [null, {}, { model: null }]) {
    const body = { model: 'm', prompt: 'x', svg: open };
    t.equal((await ask(gateway, 'POST', generations, { body })).status, 200);
  }
});

test('an SVG of an edit that becomes a form is written by no model that is named elsewhere', async (t) => {
  const { upstream, gateway } = await start(t, { images: 'openai-files' });
  const edit = (members: object) =>
    ask(gateway, 'POST', '/v1/images/edits', {
      body: { model: 'm', prompt: 'x', image: `data:image/png;base64,${png.toString('base64')}`, ...members },
    });
  const bodies: [members: object, param: string][] = [
    [{ svg: [{ model: 'closed' }] }, 'svg'],
    [{ svg: { model: ['closed'] } }, 'svg.model'],
    [{ svg: { model: { '': 'closed' } } }, 'svg.model'],
    [{ svg: { 'model]': 'closed' } }, 'svg'],
    [{ svg: { 0: { model: 'closed' } } }, 'svg'],
    [{ 'svg[0]': { model: 'closed' } }, 'svg'],
    [{ 'svg[model]': 'closed' }, 'svg[model]'],
    [{ 'svg[model]': ['open'], svg: { model: 'open' } }, 'svg[model]'],
    [{ 'svg.model': 'closed' }, 'svg.model'],
    [{ 'SVG[model]': 'closed' }, 'svg[model]'],
    [{ ' svg[model][]': 'closed' }, 'svg'],
  ];
  for (const [members, param] of bodies) {
    const { status, json } = await edit(members);
    t.match({ status, json }, { status: 400, json: { error: { param } } }, JSON.stringify(members));
  }
  for (const field of ['svg[0][model]', 'svg[][model]', 'svg[model][]', 'svg[model]]']) {
    const { status } = await ask(gateway, 'POST', '/v1/images/edits', { body: formWith(field, 'closed') });
    t.equal(status, 400, field);
  }
  t.equal(upstream.requests.length, 0);
  t.equal((await edit({ svg: { model: 'open', style: { a: [{ b: 1 }] } } })).status, 200);
  const sent = upstream.requests[0]?.body.toString();
  t.match(sent, /name="svg\[model\]"\r\n\r\nopen-there\r\n/);
  t.match(sent, /name="svg\[style\]\[a\]"\r\n\r\n\{"b":1\}\r\n/);
});
