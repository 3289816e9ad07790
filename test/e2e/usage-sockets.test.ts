import { setTimeout as pause } from 'node:timers/promises';
import { type Test, test } from 'tap';
import { resolvePrice } from '../../src/config/prices.js';
import type { StoreSettings } from '../../src/config/types.js';
import { createStore } from '../../src/store/create.js';
import type { LedgerRecord } from '../../src/usage/ledger-record.js';
import { readPage } from '../../src/usage/queries.js';
import { usageLedger } from '../../src/usage/sums.js';
import { eventually } from '../support/eventually.js';
import { type DemoGateway, startGateway } from '../support/gateway.js';
import { openEvents, respond, says } from '../support/realtime-events.js';
import { connect, create } from '../support/responses-socket.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const price = resolvePrice({ input: 1, output: 10, perCall: 0.5 });

interface Stage extends Omit<DemoGateway, 'lines'> {
  /** The calls in the ledger, as soon as there are so many. */
  lines(count: number): Promise<readonly LedgerRecord[]>;
}

async function start(t: Test): Promise<Stage> {
  const folder = temporaryFolder(t);
  const settings: StoreSettings = { kind: 'embedded', path: folder, taskDays: 1 };
  const demo = await startGateway(t, {
    demo: 'simulator',
    adapt: (config) => ({
      ...config,
      store: settings,
      usage: { ...config.usage, ledger: true },
      models: config.models.map((model) => ({ ...model, price })),
    }),
  });
  const store = createStore(settings);
  t.teardown(() => store.close());
  return {
    ...demo,
    async lines(count) {
      const range = { from: 0, until: Date.now() + 60_000 };
      const read = async () => {
        const { lines } = await store.readLines(usageLedger, range, 100, null);
        return lines.flatMap(({ value }) => readPage(value));
      };
      return eventually(read, { fits: ({ length }) => length >= count, everyMs: 50 });
    },
  };
}

test('each response over a WebSocket has a line, and the socket has none', async (t) => {
  const stage = await start(t);
  const { socket, send, answer } = await connect(t, stage.url);
  const told: { readonly input: number; readonly output: number }[] = [];
  for (const input of ['one', 'two words']) {
    send(create({ input }));
    const usage = (await answer()).at(-1)?.response?.usage;
    told.push({ input: usage?.input_tokens ?? -1, output: usage?.output_tokens ?? -1 });
  }
  socket.close();
  const lines = await stage.lines(2);
  t.match(
    lines,
    told.map(({ input, output }) => ({
      protocol: 'responses',
      model: 'sim-text',
      outcome: 'complete',
      tokensKnown: 'exact',
      inputTokens: input,
      outputTokens: output,
      costNanoUsd: input * 1000 + output * 10_000 + 500_000_000,
    })),
  );
  t.ok(told.every(({ output }) => output > 0));
  // Past the interval at which lines are written.
  await pause(600);
  t.equal((await stage.lines(2)).length, 2);
});

test('a realtime session has one line with all of its responses', async (t) => {
  const stage = await start(t);
  const session = await openEvents(t, Number(new URL(stage.url).port), {
    query: 'model=sim-realtime',
    headers: { authorization: 'Bearer sk-demo' },
  });
  let [input, output] = [0, 0];
  for (const text of ['one', 'two']) {
    session.send(says(text), respond);
    const { usage } = (await session.log.next('response.done')).response;
    input += usage.input_tokens;
    output += usage.output_tokens;
  }
  session.socket.close();
  const [line, ...more] = await stage.lines(1);
  t.strictSame(more, []);
  t.ok(output > 0);
  t.match(line, {
    protocol: 'realtime',
    model: 'sim-realtime',
    tokensKnown: 'exact',
    inputTokens: input,
    outputTokens: output,
    costNanoUsd: input * 1000 + output * 10_000 + 500_000_000,
  });
});
