import { test } from 'tap';
import { encoded, otherKey } from '../support/entry-points.js';
import { startGateway, testKey } from '../support/gateway.js';
import { hostile } from '../support/head-fuzz.js';
import { chatRequest, open, readAnswer } from '../support/raw-client.js';
import { completion, startRawUpstream } from '../support/upstream.js';

interface Whole {
  readonly status: number;
  /** In order. */
  readonly names: readonly string[];
  readonly values: ReadonlyMap<string, string>;
}

/** What the client's connection brings for a request, and for an honest one behind it: each must be one answer. */
async function answersTo(port: number, bytes: Buffer): Promise<readonly Whole[]> {
  const socket = await open(port, bytes);
  const pieces: Buffer[] = [];
  socket.on('data', (piece) => pieces.push(piece));
  await readAnswer(socket);
  socket.write(`GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${otherKey}\r\n\r\n`);
  await readAnswer(socket);
  socket.destroy();
  return readWhole(Buffer.concat(pieces).toString('latin1'));
}

/** Every answer that bytes hold, by their lengths; what is left is one more. */
function readWhole(text: string): readonly Whole[] {
  if (text === '') return [];
  const end = text.indexOf('\r\n\r\n');
  const lines = text.slice(0, end).split('\r\n').slice(1);
  const values = new Map(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line] as const),
  );
  const length = Number(values.get('content-length')?.slice('content-length:'.length) ?? 0);
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0);
  return [{ status, names: [...values.keys()], values }, ...readWhole(text.slice(end + 4 + length))];
}

const isText = (byte: number) => byte === 9 || (byte >= 0x20 && byte !== 0x7f);
const ownNames = [
  'content-length',
  'content-type',
  'date',
  'keep-alive',
  'server-timing',
  'transfer-encoding',
  'uwebsockets',
  'x-gateway-path',
  'x-request-id',
];
const passedOn = [
  'openai-processing-ms',
  'openai-version',
  'retry-after',
  'x-ratelimit-limit-requests',
  'x-should-retry',
];

test('no byte in a header of an upstream’s answer begins another line of ours, or another answer', async (t) => {
  let byte = 0;
  const upstream = await startRawUpstream(t, ({ socket }) => {
    const value = `a${String.fromCharCode(byte)}x-injected: 1`;
    const lines = [...passedOn, 'x-request-id'].map((name) => `${name}: ${value}\r\n`).join('');
    socket.write(
      `HTTP/1.1 200 OK\r\n${lines}content-type: application/json;a=${value}\r\ncontent-length: ${completion.length}\r\n\r\n${completion}`,
      'latin1',
    );
  });
  const { port } = await startGateway(t, {
    upstreams: [upstream.url],
    // It is not well most of the time.
    config: { routing: { failures: 1_000_000, minimumCalls: 1_000_000, retries: 0 } },
  });
  const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] });
  for (byte = 0; byte < 256; byte++) {
    if (byte > 0x20 && byte < 0x7f) continue;
    const [answer, next, more] = await answersTo(port, chatRequest(body));
    const isTaken = isText(byte);
    const said = `byte ${byte}`;
    // A bare line end makes lines of their own, which are none that is passed on.
    if (answer?.status !== (isTaken ? 200 : 502)) t.fail(`${said}: ${answer?.status}`);
    const names = answer?.names.filter((name) => !ownNames.includes(name)) ?? [];
    const expected = isTaken ? [...passedOn, 'x-upstream-request-id'] : [];
    if (names.toSorted().join() !== expected.toSorted().join()) t.fail(`${said}: ${names.join()}`);
    if (next?.status !== 401 || more !== undefined) t.fail(`${said}: ${next?.status}, ${more?.status}`);
  }
  t.pass('every byte');
});

test('nothing that a client sends comes back in a head of its answer but what is its own', async (t) => {
  const upstream = await startRawUpstream(t, ({ socket }) => socket.destroy());
  const gateways = [
    {},
    { listen: { cors: { origins: ['https://app.test'] } } },
    { listen: { cors: { origins: ['*'] } } },
  ];
  const cors = ['access-control-allow-origin', 'access-control-expose-headers', 'vary'];
  const preflight = [
    'access-control-allow-headers',
    'access-control-allow-methods',
    'access-control-max-age',
  ];
  const known = [...ownNames, ...cors, ...preflight, 'allow', 'access-control-allow-origin'];
  for (const config of gateways) {
    const { port } = await startGateway(t, { upstreams: [upstream.url], config });
    for (let at = 0; at < hostile.length; at += 7) {
      const character = hostile[at] as string;
      // The server underneath reads these as what they are.
      if (character < '\u0100') continue;
      const text = `a${character}\u010d\u010aset-cookie: a=b\u010d\u010a\u010d\u010aHTTP/1.1 200 OK`;
      const requests = [
        `PATCH /v1/chat/completions/${text.replaceAll(' ', '')}`,
        'PATCH /v1/chat/completions',
        `GET /v1/videos/${encodeURIComponent(text)}/content`,
        `GET /v1/models/${encodeURIComponent(text)}`,
        'OPTIONS /v1/chat/completions',
      ];
      const request = requests[(at / 7) % requests.length] as string;
      const lines = [
        `authorization: Bearer ${testKey}`,
        `origin: ${at % 2 === 0 ? 'https://app.test' : text}`,
        `access-control-request-method: POST`,
        `access-control-request-headers: x-a, ${text}`,
        `x-request-id: ${text}`,
        `sec-websocket-protocol: ${text}`,
        `range: ${text}`,
        `if-none-match: ${text}`,
        `host: ${text}`,
      ];
      const bytes = encoded(`${request} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`, 'utf8');
      const [answer, next, more] = await answersTo(port, bytes);
      const said = `${request} ${JSON.stringify(character)}`;
      const foreign = answer?.names.filter((name) => !known.includes(name));
      if (foreign?.join() !== '') t.fail(`${said}: ${foreign?.join() ?? 'no answer'}`);
      for (const line of answer?.values.values() ?? [])
        if (!/^[\t -~]*$/.test(line) || /set-cookie|app\.test.*app\.test/.test(line))
          t.fail(`${said}: ${line}`);
      if (next?.status !== 401 || more !== undefined)
        t.fail(`${said}: then ${next?.status}, ${more?.status}`);
    }
    t.pass(JSON.stringify(config));
  }
});
