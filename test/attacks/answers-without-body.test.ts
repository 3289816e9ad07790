import { test } from 'tap';
import { headAnd, startServer, Wire } from '../http/http-server.js';
import { startGateway, testKey } from '../support/gateway.js';

const origin = 'https://app.example.com';

test('the answer to a preflight has no length, and the connection goes on', async (t) => {
  const cors = { origins: [origin], maxAgeSeconds: 60 };
  const config = { listen: { host: '127.0.0.1', port: 0, cors } };
  const { port } = await startGateway(t, { upstreams: ['http://127.0.0.1:1/v1'], config });
  const wire = new Wire(port);
  const preflight =
    `OPTIONS /v1/chat/completions HTTP/1.1\r\nhost: x\r\norigin: ${origin}\r\n` +
    'access-control-request-method: POST\r\n\r\n';
  for (let round = 0; round < 2; round++) {
    wire.send(preflight);
    const head = await wire.take(headAnd(0));
    t.match(head, /^HTTP\/1\.1 204 /);
    t.match(head, /\r\naccess-control-allow-origin: /);
    t.notMatch(head, /content-length|transfer-encoding/i);
  }
  wire.send(`GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\n\r\n`);
  t.match(await wire.take((text) => text.includes('"data"')), /^HTTP\/1\.1 200 /);
  wire.socket.destroy();
});

test('204 and 304 have neither length nor coding, however they are answered', async (t) => {
  const { port } = await startServer(t, (exchange) => {
    const [, way, status] = exchange.path.split('/');
    if (way === 'whole') exchange.respond(Number(status), '', 'left out');
    else {
      exchange.begin(Number(status), '');
      exchange.end();
    }
  });
  const wire = new Wire(port);
  for (const way of ['whole', 'streamed']) {
    for (const status of [204, 304]) {
      for (let round = 0; round < 2; round++) {
        wire.send(`GET /${way}/${status} HTTP/1.1\r\nhost: x\r\n\r\n`);
        const head = await wire.take(headAnd(0));
        t.match(head, new RegExp(`^HTTP/1\\.1 ${status} `));
        t.notMatch(head, /content-length|transfer-encoding/i);
      }
    }
  }
  t.notOk(wire.closed);
  wire.socket.destroy();
});
