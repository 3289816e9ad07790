import { snapshotSteps } from '../../src/config/snapshot.js';
import type { Snapshot } from '../../src/config/types.js';
import { atOnce } from '../../src/wire/steps.js';

/** Runs `snapshotSteps` at once. @throws as it does */
export function buildSnapshot(...given: Parameters<typeof snapshotSteps>): Snapshot {
  return atOnce(snapshotSteps(...given));
}
