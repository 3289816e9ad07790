import { snapshotSteps } from '../../src/config/snapshot.js';
import type { Snapshot } from '../../src/config/types.js';
import { atOnce } from '../../src/wire/steps.js';

/** Does `snapshotSteps` at once. @throws what that throws */
export function buildSnapshot(...given: Parameters<typeof snapshotSteps>): Snapshot {
  return atOnce(snapshotSteps(...given));
}
