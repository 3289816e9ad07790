import { test } from 'tap';
import type { Ask, Client } from '../suites/translation/client.js';
import { clients } from '../suites/translation/session.js';
import { tools, wantsTools } from '../suites/translation/tool-scenarios.js';
import { postJson } from '../support/post-json.js';
import { simulate } from '../support/simulator.js';
import { others, wrongCuts } from './cuts.js';

/** What a client of the protocol itself asks the simulator for. */
const asks: Readonly<Record<string, (client: Client) => Ask>> = {
  'a text': (client) => ({ stream: true, thinks: 'shown', turns: client.user('Ä🌍') }),
  'two calls': (client) => ({ stream: true, thinks: 'shown', tools, turns: client.user(wantsTools) }),
};

test("the simulator's streams are the same wherever they are cut", async (t) => {
  const simulator = await simulate(t);
  for (const client of clients) {
    for (const [name, ask] of Object.entries(asks)) {
      const { path, headers, body } = client.request('sim-text', ask(client));
      const response = await postJson(new URL(path, simulator.url), body, {
        authorization: 'Bearer key',
        ...headers,
      });
      const bytes = Buffer.from(await response.arrayBuffer());
      t.equal(response.status, 200);
      const [first, second] = others(client.protocol);
      const reader = name === 'a text' ? first : second;
      const wrong = wrongCuts(bytes, reader, client.protocol);
      t.strictSame(wrong, [], `${client.protocol}: ${name}, for ${reader.name}`);
    }
  }
});
