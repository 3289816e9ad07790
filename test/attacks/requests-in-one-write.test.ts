import { once } from 'node:events';
import { connect } from 'node:net';
import { type Test, test } from 'tap';
import { type RunningGateway, testKey } from '../support/gateway.js';
import { goodAnswer, startRouted } from '../support/routed.js';

/* All requests of one write are answered in one turn: what else the worker has to do, its heartbeat included, waits. */

const bearer = `authorization: Bearer ${testKey}\r\n`;
const json = `${bearer}content-type: application/json\r\n`;
const requests = {
  'nothing there': 'GET /x HTTP/1.1\r\nhost: x\r\n\r\n',
  'no key': 'GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n',
  'a list': `GET /v1/models HTTP/1.1\r\nhost: x\r\n${bearer}\r\n`,
  'a long list': `GET /v1beta/models?pageSize=1000 HTTP/1.1\r\nhost: x\r\n${bearer}\r\n`,
  'a bad body': `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n${json}content-length: 2\r\n\r\n{}`,
  'a bad form': `POST /v1/audio/transcriptions HTTP/1.1\r\nhost: x\r\n${bearer}content-type: text/plain\r\ncontent-length: 2\r\n\r\n{}`,
  'no such method': 'PUT /v1/models HTTP/1.1\r\nhost: x\r\n\r\n',
  head: 'HEAD /v1/models HTTP/1.1\r\nhost: x\r\n\r\n',
  preflight:
    'OPTIONS /v1/models HTTP/1.1\r\nhost: x\r\norigin: http://a\r\naccess-control-request-method: GET\r\n\r\n',
};

async function start(t: Test): Promise<RunningGateway> {
  const targets = [{ upstream: 'u0', model: 'm' }];
  const names = ['m', ...Array.from({ length: 300 }, (_, i) => `model-with-a-long-name-${i}`)];
  const models = Object.fromEntries(names.map((name) => [name, { protocols: ['chat', 'audio'], targets }]));
  const listen = { host: '127.0.0.1', port: 0, cors: { origins: ['*'] } };
  return (await startRouted(t, [goodAnswer], { config: { models, listen } })).gateway;
}

/** Sends all bytes in one write. @returns what comes until the other side ends the connection */
async function flood(port: number, bytes: Buffer): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  let text = '';
  socket.on('error', () => {});
  socket.setEncoding('latin1').on('data', (piece: string) => {
    text += piece;
  });
  socket.write(bytes);
  await once(socket, 'close');
  return text;
}

for (const [name, request] of Object.entries(requests)) {
  test(`half a megabyte of requests in one write ends its connection after some hundred answers: ${name}`, async (t) => {
    const { port, url, lines } = await start(t);
    const bytes = Buffer.from(request.repeat(520_000 / request.length));
    const heard = await flood(port, bytes);
    const answers = heard.split('HTTP/1.1 ').length - 1;
    // As many as one turn may give; uWS may bring what was written in a few.
    const served = lines.filter(({ msg }) => msg === 'request').length;
    t.ok(served <= 2000, `${served} requests served of ${bytes.length / request.length}`);
    t.ok(answers <= 2000, `${answers}`);
    const good = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${testKey}` } });
    t.equal(good.status, 200);
    await good.text();
  });
}

test('a client that waits for each answer keeps its connection, however often it asks', async (t) => {
  const { port } = await start(t);
  const socket = connect(port, '127.0.0.1');
  for (let round = 0; round < 500; round++) {
    socket.write(requests['no key']);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    if (!answer.includes('connection: close')) continue;
    t.fail(`closed in round ${round}`);
    break;
  }
  t.notOk(socket.readableEnded);
  socket.destroy();
});
