import type { Test } from 'tap';
import type { ResolvedConfig } from '../../src/config/resolve.js';
import type { UpstreamKind } from '../../src/config/types.js';
import { type Simulator, startSimulator } from '../../src/simulator/server.js';
import { type DemoGateway, startDemo } from './demo.js';

/** What the models of the demo are served by: `simulator` takes every protocol as it comes. */
export type ServedBy = Extract<UpstreamKind, 'simulator' | 'chat' | 'messages' | 'generateContent'>;

const versions = { chat: '/v1', messages: '/v1', generateContent: '/v1beta' } as const;

/**
 * Starts the demo's gateway with models that are served by an upstream of one protocol: the simulator again, which is
 * then called in that protocol alone. Both end with the test.
 * @param adapt changes the config further.
 */
export async function startOn(
  t: Test,
  kind: ServedBy,
  adapt: (config: ResolvedConfig) => ResolvedConfig = (config) => config,
): Promise<DemoGateway> {
  if (kind === 'simulator') return startDemo(t, adapt);
  const simulator: Simulator = await startSimulator();
  t.teardown(() => simulator.close());
  const baseUrl = `http://127.0.0.1:${simulator.port}${versions[kind]}`;
  const demo = await startDemo(t, (config) =>
    adapt({
      ...config,
      upstreams: config.upstreams.map((upstream) => ({
        ...upstream,
        kind,
        baseUrl,
        apiKeys: ['upstream-key'],
      })),
      models: config.models.map((model) => ({
        ...model,
        targets: model.targets.map((target) => ({ ...target, responses: false })),
      })),
    }),
  );
  return { ...demo, simulator };
}
