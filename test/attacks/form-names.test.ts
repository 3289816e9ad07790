import { test } from 'tap';
import { bytesOf, type EntryRequest, encoded, entryPointsConfig } from '../support/entry-points.js';
import { startGateway, testKey } from '../support/gateway.js';
import { halves, hostile } from '../support/head-fuzz.js';
import { exchange } from '../support/raw-client.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { jsonAnswer, type RawRequest, startRawUpstream } from '../support/upstream.js';

const boundary = 'limit-of-parts';

interface Asked {
  readonly path: string;
  readonly fields: readonly string[];
  readonly file: string;
}

/** A form that is relayed as it comes, one that is relayed whole, and one that is written anew. */
const forms: readonly Asked[] = [
  { path: '/v1/audio/transcriptions', fields: ['model'], file: 'file' },
  { path: '/v1/images/edits', fields: ['model', 'prompt'], file: 'image' },
  { path: '/v1/videos', fields: ['model', 'prompt'], file: 'input_reference' },
];

type Place = 'name' | 'filename' | 'content-type';

function formWith({ path, fields, file }: Asked, place: Place, text: string): EntryRequest {
  const part = (head: string, value: string) => `--${boundary}\r\n${head}\r\n\r\n${value}\r\n`;
  const body =
    fields.map((name) => part(`content-disposition: form-data; name="${name}"`, 'by-chat')).join('') +
    part(
      `content-disposition: form-data; name="${file}"; filename="a${place === 'filename' ? text : ''}b.png"\r\n` +
        `content-type: image/png${place === 'content-type' ? `;a=${text}` : ''}`,
      'PNG',
    ) +
    (place === 'name' ? part(`content-disposition: form-data; name="x${text}"`, 'own') : '');
  const type = `multipart/form-data; boundary=${boundary}`;
  return {
    method: 'POST',
    path,
    query: '',
    headers: [
      ['authorization', `Bearer ${testKey}`],
      ['content-type', type],
    ],
    body: `${body}--${boundary}--\r\n`,
  };
}

/** The names of the lines of each part's head, as a reader sees them who splits at line ends. */
function headsOf({ head, body }: RawRequest): readonly string[] {
  const limit = /boundary="?([^"\r\n]+)"?/.exec(head)?.[1] ?? '';
  return `\r\n${body.toString('latin1')}`
    .split(`\r\n--${limit}`)
    .slice(1, -1)
    .map((part) =>
      part
        .slice(2, part.indexOf('\r\n\r\n'))
        .split(/\r\n|\r|\n/)
        .map((line) => line.slice(0, line.indexOf(':')).toLowerCase())
        .join(),
    );
}

test('no name, filename or content type in a form gives its upstream another line or part', async (t) => {
  const upstream = await startRawUpstream(t, ({ socket }) =>
    socket.write(jsonAnswer(422, '{"error":{"message":"no"}}')),
  );
  const { port } = await startGateway(t, {
    upstreams: [],
    config: { ...entryPointsConfig(upstream.url), store: { kind: 'embedded', path: temporaryFolder(t) } },
  });
  const line = 'content-disposition';
  const texts = [
    ...hostile.filter((each, at) => each < '\u0100' || at % 40 === 0),
    ...halves.filter((_, at) => at % 512 === 0),
    '\u010d\u010ax-injected: 1\u010d\u010a\u010d\u010a',
    '\r\nx-injected: 1',
    '%0D%0Ax-injected: 1',
    '%22; name=%22model',
    '"; name="model',
    '\\"; name=\\"model',
    '\\',
    `\u010d\u010a--${boundary}\u010d\u010acontent-disposition: form-data; name="model"\u010d\u010a\u010d\u010adear`,
  ];
  let arrived = 0;
  for (const form of forms) {
    for (const place of ['name', 'filename', 'content-type'] as const) {
      const expected = [
        ...form.fields.map(() => line),
        `${line},content-type`,
        ...(place === 'name' ? [line] : []),
      ];
      for (const text of texts) {
        const before = upstream.requests.length;
        const { status, body } = await exchange(port, bytesOf(formWith(form, place, text)));
        const said = `${form.path} ${place} ${JSON.stringify(text)}`;
        const came = upstream.requests.slice(before);
        const [request] = came;
        arrived += came.length;
        if (came.length > 1) t.fail(`${said}: ${came.length} requests`);
        else if (request === undefined && status !== 400) t.fail(`${said}: ${status} ${body}`);
        else if (request !== undefined) {
          const heads = headsOf(request);
          // What the client itself has sent as two lines are two.
          const isOwn = text.startsWith('\r\n') && heads.join(';').includes('x-injected');
          if (!isOwn && heads.join(';') !== expected.join(';')) t.fail(`${said}: ${heads.join(';')}`);
          const isWhole = form.path !== '/v1/videos' && !/[\r\n\0]/.test(text);
          if (isWhole && !request.body.includes(encoded(text, 'utf8'))) t.fail(`${said}: changed`);
        }
      }
    }
  }
  t.ok(arrived > 100, `${arrived} forms arrived`);
});
