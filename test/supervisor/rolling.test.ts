import { copyFileSync } from 'node:fs';
import { request } from 'node:http';
import { resolve } from 'node:path';
import { type TLSSocket, connect as tlsConnect } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { test } from 'tap';
import { type StartedGateway, startCli, writeConfig } from '../suites/start.js';
import { startSteadyLoad } from '../suites/steady-load.js';

/** From `dist*`, where this file runs compiled. */
const fixtures = resolve(fileURLToPath(import.meta.url), '../../../../test/fixtures/tls');
const key = 'sk-demo';
const hash = 'sha256:f77894fdfa58e447c57e077eaa9708e8e009c84dc6aba2db80461275e9b85be7';
const words = 'one two three four five six seven eight nine ten';

function configWith(more: Record<string, unknown>) {
  return {
    upstreams: { local: { kind: 'simulator' } },
    models: { 'sim-text': { protocols: ['chat'], targets: [{ upstream: 'local' }] } },
    groups: { default: { models: ['*'] } },
    keys: [{ id: 'team', hash, groups: ['default'] }],
    ...more,
  };
}

async function reload(gateway: StartedGateway, config: unknown): Promise<void> {
  writeConfig(gateway.configPath ?? '', config);
  gateway.kill('SIGHUP');
}

function countLogged(gateway: StartedGateway, text: string): number {
  return gateway.logs.filter((line) => line.includes(text)).length;
}

/** Whether all the workers that serve are others than these. */
function isReplaced(gateway: StartedGateway, before: readonly number[], count = before.length): boolean {
  const now = gateway.workerPids();
  return now.length === count && now.every((pid) => !before.includes(pid));
}

/** A stream that was asked for on a connection of its own. */
async function openStream(
  port: number,
  secure: boolean,
  content = words,
): Promise<{ readonly text: Promise<string> }> {
  const body = JSON.stringify({
    model: 'sim-text',
    stream: true,
    messages: [{ role: 'user', content }],
  });
  const socket = secure ? await openTls(port) : undefined;
  const sent = request({
    host: '127.0.0.1',
    port,
    method: 'POST',
    path: '/v1/chat/completions',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(socket === undefined ? { agent: false } : { createConnection: () => socket }),
  });
  sent.end(body);
  return new Promise((opened, failed) => {
    sent.once('error', failed);
    sent.once('response', (answer) => {
      let text = '';
      answer.setEncoding('utf8');
      const ended = new Promise<string>((done, broke) => {
        answer.on('data', (chunk) => {
          text += chunk;
        });
        answer.once('error', broke);
        answer.once('end', () => done(text));
      });
      opened({ text: ended });
    });
  });
}

function openTls(port: number): Promise<TLSSocket> {
  return new Promise((done, failed) => {
    const socket = tlsConnect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => done(socket));
    socket.once('error', failed);
  });
}

/** Serial number of the certificate that a new connection is shown. */
async function serialOf(port: number): Promise<string> {
  const socket = await openTls(port);
  const { serialNumber } = socket.getPeerCertificate();
  socket.destroy();
  return serialNumber;
}

test('a renewed certificate', async (t) => {
  const folder = t.testdir();
  const tls = { cert: `${folder}/cert.pem`, key: `${folder}/key.pem` };
  copyFileSync(`${fixtures}/localhost.pem`, tls.cert);
  copyFileSync(`${fixtures}/localhost.key`, tls.key);
  const config = configWith({ listen: { tls } });
  const gateway = await startCli({ config, workers: 2, env: { SIMULATOR_TOKENS_PER_SECOND: '5' } });
  t.teardown(() => gateway.stop());
  t.equal(await serialOf(gateway.port), '02');

  await t.test('is shown to new connections after a reload, and streams under way are whole', async (t) => {
    const before = gateway.workerPids();
    const stream = await openStream(gateway.port, true);
    copyFileSync(`${fixtures}/expired.pem`, tls.cert);
    await reload(gateway, config);
    await gateway.until(() => isReplaced(gateway, before));
    for (let round = 0; round < 8; round += 1) t.equal(await serialOf(gateway.port), '03');
    t.match(await stream.text, /data: \[DONE\]\s*$/);
  });

  await t.test('replaces no worker when it is the same as before', async (t) => {
    await gateway.untilLogged(({ msg }) => msg === 'workers replaced');
    const before = gateway.workerPids();
    await reload(gateway, config);
    await gateway.until(() => countLogged(gateway, '"config reloaded"') === 2);
    t.strictSame(gateway.workerPids(), before);
  });

  await t.test('is refused when the key is not its own, with the reason', async (t) => {
    const before = gateway.workerPids();
    copyFileSync(`${fixtures}/ca.key`, tls.key);
    await reload(gateway, config);
    const refused = await gateway.untilLogged(({ msg }) => `${msg}`.startsWith('reload refused'));
    t.match(refused.reasons, [/^listen\.tls: the certificate and the key cannot be used together \(ERR_/]);
    t.strictSame(gateway.workerPids(), before);
    t.equal(await serialOf(gateway.port), '03');
  });
});

test('a gateway under load', async (t) => {
  const gateway = await startCli({
    config: configWith({ workers: 2 }),
    workers: null,
    env: { SIMULATOR_TOKENS_PER_SECOND: '5' },
  });
  t.teardown(() => gateway.stop());

  await t.test('has its workers replaced by a reload, and fails no request', async (t) => {
    const before = gateway.workerPids();
    const stream = await openStream(gateway.port, false);
    const load = startSteadyLoad(gateway.port, key, 100);
    await reload(gateway, configWith({ workers: 2, limits: { headerBytes: 65_536 } }));
    await gateway.untilLogged(({ msg }) => msg === 'workers replaced');
    await load.stop();
    t.ok(isReplaced(gateway, before));
    t.strictSame(load.failures, []);
    t.ok(load.answers > 0);
    t.match(await stream.text, /data: \[DONE\]\s*$/);
  });

  await t.test('has as many workers as the config says after a reload', async (t) => {
    await reload(gateway, configWith({ workers: 3, limits: { headerBytes: 65_536 } }));
    await gateway.until(() => gateway.workerPids().length === 3);
    const [first = 0] = gateway.workerPids();
    const stream = await openStream(gateway.port, false);
    await reload(gateway, configWith({ workers: 1, limits: { headerBytes: 65_536 } }));
    await gateway.until(() => gateway.workerPids().length === 1);
    t.strictSame(gateway.workerPids(), [first]);
    t.match(await stream.text, /data: \[DONE\]\s*$/);
  });

  await t.test('cuts the oldest of the workers that drain when there are too many', async (t) => {
    const stream = await openStream(gateway.port, false, 'word '.repeat(1000));
    const cut = stream.text.then(
      () => null,
      (error: Error) => error,
    );
    const replacedBefore = countLogged(gateway, '"workers replaced"');
    for (let round = 1; round <= 5; round += 1) {
      t.equal(countLogged(gateway, 'the oldest is cut'), 0);
      await reload(gateway, configWith({ workers: 1, limits: { headerBytes: 65_536 + round } }));
      await gateway.until(() => countLogged(gateway, '"workers replaced"') === replacedBefore + round);
      // An answer under way keeps each of them from ending.
      const { text } = await openStream(gateway.port, false, 'word '.repeat(1000));
      text.catch(() => {});
    }
    t.ok(await cut);
    gateway.kill('SIGTERM');
    await gateway.untilLogged(({ msg }) => msg === 'draining');
    gateway.kill('SIGTERM');
    await gateway.exited;
  });
});
