import { deliveryScenarios } from './delivery-scenarios.js';
import { failureScenarios } from './failure-scenarios.js';
import { plainScenarios } from './plain-scenarios.js';
import type { Scenario } from './scenario.js';
import { toolScenarios } from './tool-scenarios.js';

/** What every client must be able to do on every upstream, except for the losses. */
export const scenarios: readonly Scenario[] = [
  ...plainScenarios,
  ...toolScenarios,
  ...deliveryScenarios,
  ...failureScenarios,
];
