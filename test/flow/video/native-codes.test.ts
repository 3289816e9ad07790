import { type Test, test } from 'tap';
import { startGateway } from '../../support/gateway.js';
import { type ClientFormat, clientFormats } from '../../support/media/client-formats.js';
import { mediaConfig } from '../../support/media/gateway.js';
import { jsonAnswer, startRawUpstream } from '../../support/upstream.js';

type Kind = 'chat' | 'generic' | 'vendork' | 'vendorj';

/** A gateway whose upstream of a kind answers everything with a status and a body. */
async function start(t: Test, kind: Kind, status: number, body: object) {
  const upstream = await startRawUpstream(t, () => jsonAnswer(status, JSON.stringify(body)));
  const gateway = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: { u: { kind, baseUrl: upstream.url } },
      models: { m: { protocols: ['video'], targets: [{ upstream: 'u', model: 'v' }] } },
    }),
  });
  const create = (format: ClientFormat['format']) => {
    const client = clientFormats.find((each) => each.format === format) as ClientFormat;
    return client.create(gateway, { model: 'm', prompt: 'a' });
  };
  return create;
}

test("a native code inside a 200 reaches the vendor's own client as it came, with the status that it stands for", async (t) => {
  const cases: readonly (readonly ['vendork' | 'vendorj', number, number])[] = [
    ['vendork', 1201, 400],
    ['vendork', 1301, 400],
    ['vendork', 1303, 429],
    ['vendorj', 50_411, 400],
    ['vendorj', 50_430, 429],
    ['vendorj', 50_215, 400],
  ];
  for (const [kind, code, status] of cases) {
    const body = { code, message: 'Their words', request_id: 'theirs', data: null };
    const create = await start(t, kind, 200, body);
    const refused = await create(kind);
    t.equal(refused.status, status, String(code));
    t.strictSame(refused.json, body);
    t.equal(refused.headers.get('x-gateway-path'), 'spliced');
  }
});

test('one about the account of the gateway does not', async (t) => {
  const create = await start(t, 'vendork', 200, { code: 1102, message: 'No money', request_id: 'theirs' });
  const refused = await create('vendork');
  t.equal(refused.status, 502);
  t.notMatch(refused.text, /theirs|No money|1102/);
});

test('a native code for refused content is the same to clients of other formats, in a 200 and a 400', async (t) => {
  for (const [kind, code] of [
    ['vendork', 1301],
    ['vendorj', 50_411],
  ] as const)
    for (const status of [200, 400]) {
      const create = await start(t, kind, status, { code, message: 'Their words', data: null });
      for (const format of ['compat', 'generic'] as const) {
        const refused = await create(format);
        t.equal(refused.status, 400);
        t.match(refused.json, { error: { code: 'content_policy_violation', message: 'Their words' } });
      }
      const other = kind === 'vendork' ? 'vendorj' : 'vendork';
      t.match((await create(other)).json, { code: kind === 'vendork' ? 50_412 : 1301 });
    }
});

test('a native code that says no more than its status changes nothing', async (t) => {
  for (const [kind, code] of [
    ['vendorj', 50_400],
    ['vendorj', 7],
    ['vendork', 7],
  ] as const) {
    const create = await start(t, kind, 400, { code, message: 'Their words', data: null });
    t.match((await create('compat')).json, { error: { code: null, message: 'Their words' } });
  }
});

test("an OpenAI-compatible upstream's refusal of content has the vendors' own numbers for it", async (t) => {
  const error = {
    message: 'No.',
    type: 'invalid_request_error',
    param: 'prompt',
    code: 'moderation_blocked',
  };
  const create = await start(t, 'chat', 400, { error });
  t.match((await create('vendork')).json, { code: 1301, error: { code: 'moderation_blocked' } });
  t.match((await create('vendorj')).json, { code: 50_412 });
});

test('the member at fault is named to clients of another format that have it', async (t) => {
  const error = { message: 'No.', type: 'invalid_request_error', param: 'prompt', code: 'x' };
  for (const [kind, format] of [
    ['chat', 'generic'],
    ['generic', 'compat'],
  ] as const) {
    const create = await start(t, kind, 400, { error });
    t.strictSame((await create(format)).json, { error });
    const other = await start(t, kind, 400, { error: { ...error, param: 'elsewhere' } });
    t.strictSame((await other(format)).json, { error: { ...error, param: null } });
  }
});

test("a 500 is the vendor's internal error", async (t) => {
  const create = await start(t, 'chat', 500, { error: { message: 'No.', code: null } });
  const failed = await create('vendorj');
  t.equal(failed.status, 500);
  t.match(failed.json, { code: 50_500 });
});
