import { test } from 'tap';
import { startGateway } from '../support/gateway.js';
import { writeConfig } from '../support/gateway-processes.js';

const token = 'the-token-of-the-operators';
const headers = { authorization: `Bearer ${token}` };

const config = {
  admin: { port: 0, token: `\${ADMIN_TOKEN}` },
  upstreams: {
    local: { kind: 'simulator' },
    far: { kind: 'chat', baseUrl: 'https://127.0.0.1:9/v1', apiKeys: [`\${UPSTREAM_KEY}`] },
  },
  models: { m: { protocols: ['chat'], targets: [{ upstream: 'local', model: 'sim-text' }] } },
  groups: { default: { models: ['*'] } },
  keys: [],
};

test('operators see the config in force, and what a reload would say of the file', async (t) => {
  const gateway = await startGateway(t, {
    workers: 1,
    file: config,
    env: { ADMIN_TOKEN: token, UPSTREAM_KEY: 'sk-from-the-environment' },
  });
  const url = await gateway.adminUrl();
  const path = gateway.configPath ?? '';
  const show = async () => {
    const text = await (await fetch(`${url}/config`, { headers })).text();
    t.notOk(text.includes(token) || text.includes('sk-from-the-environment'));
    return JSON.parse(text);
  };
  const check = async () => {
    const answer = await fetch(`${url}/config/check`, { method: 'POST', headers });
    t.equal(answer.status, 200);
    return answer.json();
  };
  t.equal((await fetch(`${url}/config`)).status, 401);
  t.equal((await fetch(`${url}/config/check`, { method: 'POST' })).status, 401);

  const inForce = {
    path,
    generation: 1,
    config: {
      admin: { host: '127.0.0.1', port: 0, token: '•••' },
      upstreams: { local: { kind: 'simulator' }, far: { apiKeys: ['•••'] } },
      models: { m: { targets: [{ upstream: 'local', model: 'sim-text', weight: 1 }] } },
    },
  };
  t.match(await show(), inForce);
  t.strictSame(await check(), { ok: true });

  writeConfig(path, {
    ...config,
    models: { other: config.models.m },
    groups: { default: { models: ['none'] } },
  });
  t.match(await check(), { ok: false, problems: [/^groups\.default\.models\[0\]: /] });
  writeConfig(path, '{');
  t.match(await check(), { ok: false, problems: [/^line 1, column 2: /] });
  writeConfig(path, { ...config, models: { other: config.models.m } });
  t.strictSame(await check(), { ok: true });
  t.match(await show(), inForce, 'none of these is in force');

  t.equal((await fetch(`${url}/reload`, { method: 'POST', headers })).status, 200);
  const reloaded = await show();
  t.equal(reloaded.generation, 2);
  t.strictSame(Object.keys(reloaded.config.models), ['other']);
});
