import { test } from 'tap';
import { startGateway, testKey } from '../support/gateway.js';
import { completion, jsonAnswer, startRawUpstream } from '../support/upstream.js';

const body = '{"model":"m","messages":[{"role":"user","content":"hi"}]}';

function ask(url: string, forwardedFor: string): Promise<Response> {
  const headers = {
    authorization: `Bearer ${testKey}`,
    'content-type': 'application/json',
    'x-forwarded-for': forwardedFor,
    'x-forwarded-proto': 'https',
    'x-forwarded-host': 'api.example.com',
  };
  return fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body });
}

for (const { name, listen, client } of [
  {
    name: 'a line has no address of the client unless the config asks for it',
    listen: {},
    client: undefined,
  },
  {
    name: 'without trusted proxies a line has the address of the connection',
    listen: { trustedProxies: [] },
    client: '127.0.0.1',
  },
  {
    name: 'behind a trusted proxy a line has the address that the proxy names',
    listen: { trustedProxies: ['127.0.0.0/8', '10.0.0.0/8'] },
    client: '198.51.100.1',
  },
]) {
  test(`${name}, and upstreams never hear of it`, async (t) => {
    let sent = '';
    const upstream = await startRawUpstream(t, ({ socket, head }) => {
      sent = head;
      socket.write(jsonAnswer(200, completion));
    });
    const gateway = await startGateway(t, {
      upstreams: [upstream.url],
      config: { listen: { host: '127.0.0.1', port: 0, ...listen } },
    });
    t.equal((await ask(gateway.url, '6.6.6.6, 198.51.100.1, 10.0.0.7')).status, 200);
    const line = await gateway.line(({ msg }) => msg === 'request');
    t.equal(line.client, client);
    t.match(sent, /^POST /);
    t.notMatch(sent.toLowerCase(), /forwarded|198\.51\.100\.1/);
  });
}
