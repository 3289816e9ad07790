import type { Test } from 'tap';
import { UpstreamWatch } from '../../../src/flow/background/watch.js';
import type { Simulator, SimulatorOptions } from '../../../src/simulator/server.js';
import { eventually } from '../eventually.js';
import { type RunningGateway, startGateway } from '../gateway.js';
import { simulate } from '../simulator.js';
import type { ClientFormat, Standing } from './client-formats.js';
import { type MediaOptions, mediaConfig } from './gateway.js';

/** The formats in which the gateway calls upstreams. Each has its own model, with the same name. */
export const wires = ['compat', 'vendork', 'vendorj', 'generic'] as const;

interface VideoStage {
  readonly gateway: RunningGateway;
  readonly simulator: Simulator;
}

/** Starts a gateway with a model for each upstream format, all of them the simulator without delays. */
export async function startVideos(
  t: Test,
  options: Partial<MediaOptions> & { readonly pace?: SimulatorOptions['videoPace'] } = {},
): Promise<VideoStage> {
  const simulator = await simulate(t, { videoPace: options.pace ?? { queuedMs: 0, runningMs: 0 } });
  const gateway = await startGateway(t, { config: mediaConfig(t, { ...simulated(simulator), ...options }) });
  return { gateway, simulator };
}

/** Returns the upstreams and models of such a gateway. */
export function simulated({ port }: { readonly port: number }): Pick<MediaOptions, 'upstreams' | 'models'> {
  const origin = `http://127.0.0.1:${port}`;
  const targets = (upstream: string) => ({
    protocols: ['video'],
    targets: [{ upstream, model: 'sim-video' }],
  });
  return {
    upstreams: {
      compat: { kind: 'chat', baseUrl: `${origin}/v1` },
      generic: { kind: 'generic', baseUrl: `${origin}/v1` },
      vendork: { kind: 'vendork', baseUrl: `${origin}/vendork` },
      vendorj: { kind: 'vendorj', baseUrl: `${origin}/vendorj` },
    },
    models: Object.fromEntries(wires.map((wire) => [wire, targets(wire)])),
  };
}

/**
 * Keeps the gateways of this process from polling upstreams on their own: only requests of clients make them poll.
 */
export function onlyClientsAsk(t: Test): void {
  t.intercept(UpstreamWatch.prototype, 'tick', { value: async () => {} });
}

/** Creates a task. @returns its id */
export async function make(
  clientFormat: ClientFormat,
  gateway: RunningGateway,
  model: string,
  prompt: string,
): Promise<string> {
  return clientFormat.idOf(await clientFormat.create(gateway, { model, prompt }));
}

/** Polls a task until it has ended. */
export function ended(clientFormat: ClientFormat, gateway: RunningGateway, id: string): Promise<Standing> {
  return eventually(() => clientFormat.show(gateway, id), {
    fits: ({ state }) => state === 'completed' || state === 'failed',
    everyMs: 10,
  });
}
