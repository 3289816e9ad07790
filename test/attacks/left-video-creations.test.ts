import { type Test, test } from 'tap';
import { hashKey } from '../../src/keys/secret.js';
import { costOf } from '../support/cost.js';
import { eventually } from '../support/eventually.js';
import { type RunningGateway, startGateway, testKey } from '../support/gateway.js';
import { clientFormats, compat } from '../support/media/client-formats.js';
import { ask, mediaConfig } from '../support/media/gateway.js';
import { open } from '../support/raw-client.js';
import { jsonAnswer, startRawUpstream } from '../support/upstream.js';

const taken = jsonAnswer(
  200,
  JSON.stringify({ id: 'theirs', object: 'video', status: 'queued', progress: 0 }),
);
const refused = jsonAnswer(400, '{"error":{"message":"no such prompt","type":"invalid_request_error"}}');
const asked = { model: 'm', prompt: 'a fox' };
/** Of a call, in nano-dollars. */
const costOfCall = 1_000_000_000;

interface Stage {
  readonly gateway: RunningGateway;
  /** Answers what waits at the upstream. */
  answer(text: string): void;
  /** Submissions that have come there. */
  made(): number;
  /** Submissions that wait there. */
  waiting(): number;
}

/** A gateway whose key may have one call under way, and an upstream that answers when it is told to. */
async function start(t: Test): Promise<Stage> {
  const held: (() => void)[] = [];
  let next = '';
  const upstream = await startRawUpstream(t, ({ socket, head }) => {
    if (head.startsWith('GET')) socket.write(taken);
    else held.push(() => socket.write(next));
  });
  const gateway = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: { u: { baseUrl: upstream.url } },
      models: {
        m: { protocols: ['video'], targets: [{ upstream: 'u', model: 'real' }], price: { perCall: 1 } },
      },
      config: {
        keys: [
          {
            id: 'test',
            hash: hashKey(testKey),
            groups: ['default'],
            limits: { concurrent: 1 },
            budget: { usd: 1000, per: 'month' },
          },
        ],
        groups: { default: { models: ['*'] } },
      },
    }),
  });
  return {
    gateway,
    answer(text) {
      next = text;
      for (const write of held.splice(0)) write();
    },
    made: () => upstream.requests.filter(({ head }) => !head.startsWith('GET')).length,
    waiting: () => held.length,
  };
}

function goneOf({ lines }: RunningGateway): number {
  return lines.filter(({ outcome }) => outcome === 'client_gone').length;
}

function requestText(type: string, body: string, key: string): string {
  return (
    `POST /v1/videos HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\nidempotency-key: ${key}\r\n` +
    `content-type: ${type}\r\ncontent-length: ${body.length}\r\n\r\n${body}`
  );
}

const formText = Object.entries(asked)
  .map(([name, value]) => `--B\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`)
  .join('');
const bodies = [
  ['application/json', JSON.stringify(asked)],
  ['multipart/form-data; boundary=B', `${formText}--B--\r\n`],
] as const;

for (const clientFormat of clientFormats) {
  test(`${clientFormat.format}: who leaves a creation keeps its place, and pays, until it has ended`, async (t) => {
    const { gateway, answer, waiting, made } = await start(t);
    const leaving = new AbortController();
    const left = clientFormat.create(gateway, asked, { signal: leaving.signal });
    await eventually(() => waiting() > 0);
    leaving.abort();
    await t.rejects(left);
    // By these answers the gateway has seen it leave.
    await ask(gateway, 'GET', '/v1/models');
    const second = await clientFormat.create(gateway, asked);
    t.equal(second.status, 429, 'it is still under way');
    t.equal(goneOf(gateway), 0);
    answer(taken);
    await gateway.line(({ outcome }) => outcome === 'client_gone');
    t.equal(costOf(gateway), costOfCall);
    const third = clientFormat.create(gateway, asked);
    // Not any second request: by now the gateway may have asked how the first task stands.
    await eventually(() => waiting() > 0);
    answer(taken);
    t.equal((await third).status, 200, 'its place is free');
    t.equal(made(), 2);
  });
}

test('a creation that the upstream refuses, or breaks off, costs a client that has left nothing', async (t) => {
  const { gateway, answer, waiting } = await start(t);
  for (const [index, text] of [
    refused,
    'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}',
    'none\r\n\r\n',
  ].entries()) {
    const leaving = new AbortController();
    const left = compat.create(gateway, asked, { signal: leaving.signal });
    await eventually(() => waiting() > 0);
    leaving.abort();
    await t.rejects(left);
    await ask(gateway, 'GET', '/v1/models');
    answer(text);
    await eventually(() => goneOf(gateway) === index + 1);
  }
  t.equal(costOf(gateway), 0);
});

for (const [type, body] of bodies) {
  test(`creations in ${type} left while they are noted are made one at a time, and paid for`, async (t) => {
    const { gateway, answer, waiting, made } = await start(t);
    const marks = [...'abcdefgh'];
    for (const mark of marks) {
      const socket = await open(gateway.port, '');
      // All of it is sent, and the end of the connection right behind it comes while the task is being noted.
      await new Promise<void>((resolve) => socket.write(requestText(type, body, mark), () => resolve()));
      socket.destroy();
      await ask(gateway, 'GET', '/v1/models');
    }
    let most = 0;
    const creations = () => gateway.lines.filter(({ path }) => path === '/v1/videos').length;
    await eventually(() => {
      most = Math.max(most, waiting());
      if (waiting() > 0) answer(taken);
      return creations() === marks.length;
    });
    t.ok(most <= 1, `${most} at once`);
    const count = made();
    t.equal(costOf(gateway), count * costOfCall);
    for (const mark of marks) {
      let status = 0;
      const headers = { 'idempotency-key': mark };
      void ask(gateway, 'POST', '/v1/videos', { body: asked, headers }).then((heard) => {
        status = heard.status;
      });
      await eventually(() => {
        answer(taken);
        return status !== 0;
      });
      // The same in a form is another request.
      t.ok(status === 200 || (status === 409 && type.startsWith('multipart')), `${mark}: ${status}`);
    }
    t.ok(costOf(gateway) >= count * costOfCall);
    t.equal(costOf(gateway), made() * costOfCall, 'each that was made was paid for once');
  });
}
