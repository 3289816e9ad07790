import { pino } from 'pino';
import type { Test } from 'tap';
import { demoConfig } from '../../src/config/demo.js';
import { parseConfig } from '../../src/config/load.js';
import type { ResolvedConfig } from '../../src/config/resolve.js';
import type { Snapshot } from '../../src/config/types.js';
import { Gateway } from '../../src/gateway.js';
import { Arrivals } from './arrivals.js';
import type { DemoGateway, DemoOptions, GatewayOptions, LogLine, RunningGateway } from './gateway.js';
import { testConfig } from './gateway-config.js';
import { ownLimits } from './leases.js';
import { lineSink } from './line-sink.js';
import { noManagedKeys } from './managed-keys.js';
import { simulate } from './simulator.js';
import { buildSnapshot } from './snapshot.js';

type Teardown = Pick<Test, 'teardown'>;

/** When the demo's models are said to have been created. */
const created = 1_700_000_000;

/** Starts a gateway with a config for tests, in this process. */
export function startHere(t: Teardown, options: GatewayOptions): Promise<RunningGateway> {
  const text = JSON.stringify(testConfig(options));
  const config = parseConfig(text, { directory: '.', environment: {}, created: 1 });
  return serve(t, config, options);
}

const versions = { chat: '/v1', messages: '/v1', generateContent: '/v1beta' } as const;

/** Starts the gateway of `npm start` in this process, with a simulator of its own. */
export async function startDemoHere(
  t: Teardown,
  { demo, adapt = (config) => config }: DemoOptions,
): Promise<DemoGateway> {
  const simulator = await simulate(t);
  const simulatorUrl = `http://127.0.0.1:${simulator.port}`;
  const whole = demoConfig(created);
  // A store would be made in the folder of whoever runs the tests.
  const config = { ...whole, usage: { ...whole.usage, ledger: false }, conversations: null };
  if (demo === 'simulator')
    return { ...(await serve(t, adapt(config), { simulatorUrl })), simulator, created };
  const upstream = { kind: demo, baseUrl: simulatorUrl + versions[demo], apiKeys: ['upstream-key'] };
  const adapted = adapt({
    ...config,
    upstreams: config.upstreams.map((each) => ({ ...each, ...upstream })),
    models: config.models.map((model) => ({
      ...model,
      targets: model.targets.map((target) => ({ ...target, responses: false })),
    })),
  });
  return { ...(await serve(t, adapted, { simulatorUrl })), simulator, created };
}

/** How long a test's own store may wait for its disk. */
const diskMs = 120_000;

interface ServeOptions
  extends Partial<Pick<GatewayOptions, 'leaseDelayMs' | 'managedKeys' | 'keepVideoMs' | 'storeWait'>> {
  /** Where the config's simulator listens. */
  readonly simulatorUrl?: string;
}

/** Starts a gateway on a free port. */
async function serve(t: Teardown, config: ResolvedConfig, options: ServeOptions): Promise<RunningGateway> {
  const {
    simulatorUrl = null,
    leaseDelayMs,
    managedKeys = noManagedKeys(),
    keepVideoMs,
    storeWait,
  } = options;
  const lines = new Arrivals<LogLine>();
  const take = (text: string): void => lines.add(JSON.parse(text) as LogLine);
  const log = pino({ base: null }, { write: take });
  const sink = lineSink(take);
  const built = buildSnapshot(config, { simulatorUrl });
  // `createStore` hands it to the embedded store: a disk that others keep busy is waited for.
  const patient = { ...built.store, timeoutMs: diskMs };
  const snapshot: Snapshot = built.store.kind === 'embedded' ? { ...built, store: patient } : built;
  const { owner, join } = ownLimits(t, config, leaseDelayMs);
  const gateway = join(
    (sendLease) =>
      new Gateway({
        snapshot,
        log,
        lines: sink,
        sendLease,
        keepVideoMs,
        storeWait,
        managedKeys,
      }),
  );
  const port = await gateway.listen('127.0.0.1', 0);
  t.teardown(() => gateway.close());
  return {
    gateway,
    snapshot,
    owner,
    port,
    url: `http://127.0.0.1:${port}`,
    lines: lines.all,
    line: (test) => lines.first(test),
    async linesUntil(id) {
      await lines.first((line) => line.msg === 'request' && line.id === id);
      return lines.all.filter(({ msg }) => msg === 'request');
    },
  };
}
