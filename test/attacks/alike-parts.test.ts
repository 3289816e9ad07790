import { test } from 'tap';
import { testKey } from '../support/gateway.js';
import { exchange } from '../support/raw-client.js';
import { boundary } from '../support/upload-form.js';
import { refusedThere, startHearing } from './alike-members.js';

/** A part's head lines behind the first, and its content. */
interface Piece {
  readonly disposition: string;
  readonly value: string;
  readonly lines?: string;
}

const field = (name: string, value: string): Piece => ({ disposition: `form-data; name="${name}"`, value });
const file = (name: string): Piece => ({
  disposition: `form-data; name="${name}"; filename="a.png"`,
  value: '\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0',
  lines: 'content-type: image/png\r\n',
});

function request(path: string, pieces: readonly Piece[]): Buffer {
  const parts = pieces.map(
    ({ disposition, value, lines = '' }) =>
      `--${boundary}\r\ncontent-disposition: ${disposition}\r\n${lines}\r\n${value}\r\n`,
  );
  const body = Buffer.from(`${parts.join('')}--${boundary}--\r\n`, 'utf8');
  const head =
    `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\n` +
    `content-type: multipart/form-data; boundary=${boundary}\r\ncontent-length: ${body.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), body]);
}

const forms = [
  {
    path: '/v1/audio/transcriptions',
    pieces: [field('model', 'native'), file('file')],
    names: ['stream', 'response_format'],
  },
  {
    path: '/v1/audio/translations',
    pieces: [field('model', 'native'), file('file')],
    names: ['response_format'],
  },
  {
    path: '/v1/images/generations',
    pieces: [field('model', 'native'), field('prompt', 'a cat')],
    names: ['n', 'size', 'stream'],
  },
  {
    path: '/v1/images/edits',
    pieces: [field('model', 'native'), field('prompt', 'a cat'), file('image')],
    names: ['n', 'size', 'stream'],
  },
  {
    path: '/v1/videos',
    pieces: [field('model', 'sora'), field('prompt', 'a cat')],
    names: ['seconds', 'size'],
  },
];

/** Names of parts that some parsers take for this one. */
function alikeParts(name: string): string[] {
  const capital = `${name[0]?.toUpperCase()}${name.slice(1)}`;
  return [
    ...[capital, name.toUpperCase(), `${name}[]`, `${name}[0]`, `${name}[x]`, `${capital}[]`, `${name} `],
    ...[name.replace('s', '\u017f'), name.replace('o', '\\\\o'), `=?utf-8?q?${name}?=`].filter(
      (each) => each !== name,
    ),
    `=?UTF-8?B?${Buffer.from(name).toString('base64')}?=`,
  ];
}

for (const { path, pieces, names } of forms) {
  test(`${path}: a part that can be taken for one that is read reaches no upstream`, async (t) => {
    const { gateway, upstream } = await startHearing(t);
    const refused = async (attack: readonly Piece[], what: string) => {
      const answer = await exchange(gateway.port, request(path, attack));
      if (answer.status !== 400 || upstream.requests.length > 0)
        t.fail(what, { answer, requests: upstream.requests.length });
    };
    for (const name of ['model', ...names]) {
      const value = name === 'model' ? 'dear' : '1';
      const own = pieces.some(({ disposition }) => disposition.includes(`"${name}"`))
        ? []
        : [field(name, '1')];
      for (const alike of alikeParts(name)) {
        await refused([...pieces, ...own, field(alike, value)], `${alike} behind`);
        await refused([field(alike, value), ...own, ...pieces], `${alike} in front`);
      }
      await refused([...pieces, ...own, field(name, value)], `${name} twice`);
      await refused(
        [...pieces, ...own, { disposition: `form-data; name="${name}"; filename="m.txt"`, value }],
        `${name} as a file beside it`,
      );
      await refused(
        [...pieces, { disposition: `form-data; name*=UTF-8''${name}`, value }],
        `${name} extended`,
      );
      await refused([...pieces, { disposition: `form-data; name="x"; name="${name}"`, value }], 'two names');
      await refused(
        [
          ...pieces,
          {
            disposition: 'form-data; name="x"',
            lines: `content-disposition: form-data; name="${name}"\r\n`,
            value,
          },
        ],
        'two dispositions',
      );
    }
    for (const name of ['api_base', 'Api_Base', 'provider', 'extra_body[model]', 'extra_body']) {
      await refused([...pieces, field(name, 'x')], name);
      await refused([field(name, 'x'), ...pieces], name);
    }
    const legal = await exchange(
      gateway.port,
      request(path, [...pieces, field('x-own', '1'), field('x-own', '2')]),
    );
    t.match(legal.body, refusedThere);
    t.end();
  });
}

test('lists, parts of an object and several images are taken as ever', async (t) => {
  const { gateway, upstream } = await startHearing(t);
  for (const [path, pieces] of [
    [
      '/v1/audio/transcriptions',
      [
        field('model', 'native'),
        field('response_format', 'verbose_json'),
        field('timestamp_granularities[]', 'word'),
        field('timestamp_granularities[]', 'segment'),
        field('include[]', 'logprobs'),
        field('chunking_strategy[type]', 'server_vad'),
        field('chunking_strategy[threshold]', '0.5'),
        file('file'),
      ],
    ],
    [
      '/v1/images/edits',
      [
        field('model', 'native'),
        field('prompt', 'x'),
        file('image[]'),
        file('image[]'),
        file('image[0]'),
        file('mask'),
      ],
    ],
  ] as const) {
    const before = upstream.requests.length;
    const answer = await exchange(gateway.port, request(path, pieces));
    t.match(answer.body, refusedThere, path);
    t.equal(upstream.requests.length, before + 1);
  }
});

test('a part behind a large file that would lead an upstream elsewhere ends the call', async (t) => {
  const { gateway, upstream } = await startHearing(t);
  const large = { ...file('file'), value: 'x'.repeat(3 * 1024 * 1024) };
  for (const last of [field('MODEL', 'dear'), field('api_base', 'https://x')]) {
    const answer = await exchange(
      gateway.port,
      request('/v1/audio/transcriptions', [field('model', 'native'), large, last]),
    );
    t.equal(answer.status, 400, answer.body);
  }
  t.equal(upstream.requests.length, 0, 'no upstream has got a whole request');
});
