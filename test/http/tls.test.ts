import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { ListenError } from '../../src/http/server.js';
import { startGateway, testKey } from '../support/gateway.js';
import { completion, jsonAnswer, startRawUpstream } from '../support/upstream.js';
import { startServer } from './http-server.js';

/** From `dist*`, where this file runs compiled. */
const fixtures = resolve(fileURLToPath(import.meta.url), '../../../../test/fixtures/tls');

test('with a certificate the listener speaks HTTPS', async (t) => {
  const upstream = await startRawUpstream(t, jsonAnswer(200, completion));
  const { port } = await startGateway(t, {
    upstreams: [upstream.url],
    config: {
      listen: { port: 0, tls: { cert: `${fixtures}/localhost.pem`, key: `${fixtures}/localhost.key` } },
    },
  });
  const answer = await new Promise<{ status: number; body: string }>((done, failed) => {
    const sent = request(
      {
        host: '127.0.0.1',
        port,
        servername: 'localhost',
        ca: readFileSync(`${fixtures}/ca.pem`),
        method: 'POST',
        path: '/v1/chat/completions',
        headers: { authorization: `Bearer ${testKey}` },
      },
      (response) => {
        let body = '';
        response.setEncoding('utf8');
        response.on('data', (text) => {
          body += text;
        });
        response.on('end', () => done({ status: response.statusCode ?? 0, body }));
      },
    );
    sent.on('error', failed);
    sent.end('{"model":"m","messages":[{"role":"user","content":"hi"}]}');
  });
  t.same(answer, { status: 200, body: completion });
});

test('files of which one was replaced and the other not yet are named', async (t) => {
  const [cert, key] = [`${fixtures}/localhost.pem`, `${fixtures}/client.key`];
  const reason = `the certificate in ${cert} and the key in ${key} cannot be used together`;
  await t.rejects(
    startServer(t, () => {}, { cert, key }),
    new ListenError(reason),
  );
});
