import { setTimeout as pause } from 'node:timers/promises';
import { type Test, test } from 'tap';
import { resolvePrice } from '../../src/config/resolve.js';
import type { LedgerRecord } from '../../src/usage/ledger-record.js';
import { type DemoGateway, startGateway } from '../support/gateway.js';
import { openLedger } from '../support/ledger.js';
import { openEvents, respond, says } from '../support/realtime-events.js';
import { connect, create } from '../support/responses-socket.js';

const price = resolvePrice({ input: 1, output: 10, perCall: 0.5 });

interface Stage extends Omit<DemoGateway, 'lines'> {
  /** The calls in the ledger, as soon as there are so many. */
  lines(count: number): Promise<readonly LedgerRecord[]>;
}

async function start(t: Test): Promise<Stage> {
  const { store, lines } = openLedger(t);
  const demo = await startGateway(t, {
    demo: 'simulator',
    adapt: (config) => ({
      ...config,
      store,
      usage: { ...config.usage, ledger: true },
      models: config.models.map((model) => ({ ...model, price })),
    }),
  });
  return { ...demo, lines };
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
