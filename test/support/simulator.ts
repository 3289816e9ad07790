import type { Test } from 'tap';
import { type Simulator, type SimulatorOptions, startSimulator } from '../../src/simulator/server.js';

/** Starts a simulator in this process, which ends with the test. */
export async function simulate(
  t: Pick<Test, 'teardown'>,
  options: SimulatorOptions = {},
): Promise<Simulator> {
  const simulator = await startSimulator(options);
  t.teardown(() => simulator.close());
  return simulator;
}
