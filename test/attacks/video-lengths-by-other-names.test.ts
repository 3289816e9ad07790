import { type Test, test } from 'tap';
import { startGateway } from '../support/gateway.js';
import { actionPath } from '../support/media/client-formats.js';
import { ask, formOf, mediaConfig } from '../support/media/gateway.js';
import { jsonAnswer, postsTo, startRawUpstream } from '../support/upstream.js';

const taken = { id: 'theirs', task_id: 'theirs', status: 'queued', data: { task_id: 'theirs' } };

async function start(t: Test) {
  const upstream = await startRawUpstream(t, ({ socket, head }) => {
    const code = /vendorj/.test(head) ? { code: 10_000 } : { code: 0 };
    socket.write(jsonAnswer(200, JSON.stringify({ ...taken, ...(/kling|vendorj/.test(head) ? code : {}) })));
  });
  const kinds = { compat: 'chat', generic: 'generic', vendork: 'vendork', vendorj: 'vendorj' };
  const gateway = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: Object.fromEntries(
        Object.entries(kinds).map(([name, kind]) => [
          name,
          { kind, baseUrl: name === 'vendorj' ? `${upstream.url}/vendorj` : upstream.url, allowMembers: [] },
        ]),
      ),
      models: Object.fromEntries(
        Object.keys(kinds).map((name) => [
          name,
          { protocols: ['video'], targets: [{ upstream: name, model: 'v' }] },
        ]),
      ),
    }),
  });
  return { gateway, upstream };
}

const compat = { path: '/v1/videos', body: { model: 'compat', prompt: 'x', seconds: '4' } };
const generic = { path: '/v1/video/generations', body: { model: 'generic', prompt: 'x', duration: 4, n: 2 } };
const vendork = {
  path: '/vendork/v1/videos/text2video',
  body: { model_name: 'vendork', prompt: 'x', duration: '4' },
};
const vendorj = {
  path: actionPath('CVSync2AsyncSubmitTask'),
  body: { req_key: 'vendorj', prompt: 'x', frames: 97 },
};

type Attack = readonly [members: object, named: string, instead?: string];

const attacks: readonly (readonly [{ readonly path: string; readonly body: object }, readonly Attack[]])[] = [
  [
    compat,
    [
      [{ duration: 60 }, 'duration', 'seconds'],
      [{ Duration: 60 }, 'Duration', 'seconds'],
      [{ duration: [4] }, 'duration', 'seconds'],
      [{ seconds: null, duration: 60 }, 'duration', 'seconds'],
      [{ durationSeconds: 60 }, 'durationSeconds', 'seconds'],
      [{ n_seconds: 60 }, 'n_seconds', 'seconds'],
      [{ num_frames: 4 }, 'num_frames', 'seconds'],
      [{ n: 9 }, 'n'],
      [{ count: 9 }, 'count'],
      [{ sample_count: '9' }, 'sample_count'],
      [{ sampleCount: 9 }, 'sampleCount'],
      [{ metadata: { duration: 60 } }, 'metadata.duration', 'seconds'],
      [{ metadata: { seconds: '60' } }, 'metadata.seconds', 'seconds'],
      [{ metadata: { n: 9 } }, 'metadata.n'],
      [{ metadata: '{"duration":60}' }, 'metadata.duration', 'seconds'],
      [{ metadata: '{"duration":60,"duration":4}' }, 'metadata.duration', 'seconds'],
      [{ metadata: `{"a":"${'x'.repeat(20_000)}","n":9}` }, 'metadata'],
      [{ metadata: { extra_body: { n: 9 } } }, 'metadata.extra_body.n'],
      [{ extra_body: { duration: 60 } }, 'extra_body.duration', 'seconds'],
      [{ extra_body: { count: 9 } }, 'extra_body.count'],
      [{ extra_body: { seconds: '60' } }, 'extra_body.seconds'],
      [{ metadata: '{"n":9,"x":NaN}' }, 'metadata'],
      [{ metadata: " {'n':9}" }, 'metadata'],
      [{ metadata: { model: 'dear' } }, 'metadata.model'],
      [{ metadata: { Model_Name: 'dear' } }, 'metadata.Model_Name'],
      [{ metadata: { extra_body: { req_key: 'dear' } } }, 'metadata.extra_body.req_key'],
      [{ metadata: '{"model":"dear"}' }, 'metadata.model'],
      [{ parameters: { duration: 60 } }, 'parameters.duration', 'seconds'],
      [{ config: { number_of_videos: 4 } }, 'config.number_of_videos'],
    ],
  ],
  [
    generic,
    [
      [{ parameters: { duration: 60 } }, 'parameters.duration', 'duration'],
      [{ Parameters: { durationSeconds: 60 } }, 'Parameters.durationSeconds', 'duration'],
      [{ parameters: '{"duration":60}' }, 'parameters.duration', 'duration'],
      [{ config: { duration_seconds: 60 } }, 'config.duration_seconds', 'duration'],
      [{ input: { duration: 60 } }, 'input.duration', 'duration'],
      [{ input: { num_frames: 600 } }, 'input.num_frames', 'duration'],
      [{ input: { parameters: { n: 9 } } }, 'input.parameters.n', 'n'],
      [{ parameters: { model: 'dear' } }, 'parameters.model'],
      [{ seconds: '60' }, 'seconds', 'duration'],
      [{ num_videos: 9 }, 'num_videos', 'n'],
      [{ metadata: { duration: 60 } }, 'metadata.duration', 'duration'],
      [{ metadata: { seconds: 60 } }, 'metadata.seconds', 'duration'],
      [{ metadata: { durationSeconds: 60 } }, 'metadata.durationSeconds', 'duration'],
      [{ metadata: { n: 1 } }, 'metadata.n', 'n'],
      [{ metadata: { model: 'dear' } }, 'metadata.model'],
      [{ metadata: '{"model":"dear"}' }, 'metadata.model'],
      [{ extra_body: { seconds: 60 } }, 'extra_body.seconds', 'duration'],
      [{ extra_body: { duration: 60 } }, 'extra_body.duration'],
      [{ frames: 4 }, 'frames', 'duration'],
    ],
  ],
  [
    vendork,
    [
      [{ seconds: 60 }, 'seconds', 'duration'],
      [{ metadata: { seconds: 60 } }, 'metadata.seconds', 'duration'],
      [{ sample_count: 9 }, 'sample_count', 'n'],
      [{ extra_body: { seconds: 60 } }, 'extra_body.seconds', 'duration'],
    ],
  ],
  [
    vendorj,
    [
      [{ duration: 60 }, 'duration', 'frames'],
      [{ metadata: { frames: 241 } }, 'metadata.frames', 'frames'],
      [{ metadata: { req_key: 'dear' } }, 'metadata.req_key'],
      [{ n: 9 }, 'n'],
    ],
  ],
];

test('a length, a number or a model beside the one that is metered reaches no upstream', async (t) => {
  const { gateway, upstream } = await start(t);
  for (const [{ path, body }, each] of attacks) {
    for (const [members, named, instead] of each) {
      const heard = await ask(gateway, 'POST', path, { body: { ...body, ...members } });
      const what = `${path} ${JSON.stringify(members).slice(0, 100)}`;
      t.equal(heard.status, 400, what);
      t.match(heard.text, `'${named}'`, what);
      if (instead !== undefined) t.match(heard.text, `send '${instead}' alone`, what);
    }
  }
  t.equal(upstream.requests.length, 0);
});

test('nor does one in a form, however the form writes members of objects', async (t) => {
  const { gateway, upstream } = await start(t);
  const own = Object.entries(compat.body);
  for (const [name, value] of [
    ['duration', '60'],
    ['n', '9'],
    ['count', '9'],
    ['metadata[duration]', '60'],
    ['parameters[duration]', '60'],
    ['metadata.n', '9'],
    ['extra_body[duration]', '60'],
    ['metadata', '{"duration": 60}'],
    ['metadata', '{"model": "dear"}'],
    ['metadata[model]', 'dear'],
    ['metadata', '{"n": 9, "x": NaN}'],
    ['metadata', `{"a":"${'\u20ac'.repeat(20_000)}","n":9}`],
    ['duration[]', '60'],
  ] as const) {
    const heard = await ask(gateway, 'POST', compat.path, { body: formOf([...own, [name, value]]) });
    t.match(heard, { status: 400, text: /'(?:duration|n|count|metadata|extra_body|parameters)/ }, name);
  }
  t.equal(upstream.requests.length, 0);
});

test('a field of the length that comes as a file is refused, since some servers read it all the same', async (t) => {
  const { gateway, upstream } = await start(t);
  const fields = [
    ['model"', 'compat'],
    ['prompt"', 'x'],
    ['seconds"; filename=""', '12'],
  ];
  const parts = fields.map(
    ([name, value]) => `--b\r\ncontent-disposition: form-data; name="${name}\r\n\r\n${value}\r\n`,
  );
  const heard = await ask(gateway, 'POST', compat.path, {
    body: Buffer.from(`${parts.join('')}--b--\r\n`),
    headers: { 'content-type': 'multipart/form-data; boundary=b' },
  });
  t.equal(heard.status, 400, heard.text);
  t.match(heard.json, { error: { param: 'seconds' } });
  t.equal(upstream.requests.length, 0);
});

test('what says the same passes, and so does what is neither', async (t) => {
  const { gateway, upstream } = await start(t);
  const passes: readonly (readonly [{ readonly path: string; readonly body: object }, object])[] = [
    [compat, { duration: 4, n: 1, metadata: { duration: '4.0', count: 1, note: 'n' } }],
    [compat, { duration: null, metadata: 'of my own', extra_body: { duration: '4' } }],
    [compat, { metadata: { inner: { duration: 60, n: 9 } }, seed: 9 }],
    [generic, { seconds: '4', metadata: { n: 2, seconds: 4, duration: 4 }, count: 2 }],
    [generic, { parameters: { duration: 4, n: 2, resolution: '1080p' }, input: 'a cat', config: null }],
    [generic, { input: '{a cat} in {the rain}' }],
    [vendork, { seconds: 4, metadata: { duration: '4' } }],
    [vendorj, { duration: 4, metadata: { frames: 97 } }],
  ];
  for (const [{ path, body }, members] of passes) {
    const heard = await ask(gateway, 'POST', path, { body: { ...body, ...members } });
    t.equal(heard.status, 200, `${JSON.stringify(members)} ${heard.text}`);
  }
  const form = formOf([...Object.entries(compat.body), ['duration', '4'], ['metadata', '{"note":1}']]);
  t.equal((await ask(gateway, 'POST', compat.path, { body: form })).status, 200);
  t.equal(postsTo(upstream).length, passes.length + 1);
});
