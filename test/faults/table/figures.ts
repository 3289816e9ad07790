import { expositionTexts } from '../../../src/metrics/exposition.js';
import { parseText } from '../../metrics/parse-text.js';
import type { RunningGateway } from '../../support/gateway.js';

const primary = {
  version: '0',
  node: process.version,
  workers: 1,
  workerRestarts: 0,
  configGeneration: 1,
  startedAt: 0,
  gauges: [],
  faults: [],
};

/** The values of a gateway's metrics at one time. */
export interface Figures {
  /** The sum of a family's series with these labels; 0 without any. */
  sum(family: string, labels?: Readonly<Record<string, string>>): number;
  /** The state of a target, named `upstream/model`. */
  stateOf(target: string): string | undefined;
}

/** Reads the text of `/metrics`. */
export function figuresOf({ gateway }: RunningGateway): Figures {
  const families = parseText([...expositionTexts(gateway.metrics(), primary)].join(''));
  const find = (family: string, wanted: Readonly<Record<string, string>>) =>
    (families.get(family)?.samples ?? []).filter(({ labels }) =>
      Object.entries(wanted).every(([name, value]) => labels[name] === value),
    );
  return {
    sum: (family, labels = {}) => find(family, labels).reduce((sum, { value }) => sum + value, 0),
    stateOf: (target) =>
      find('gateway_target_state', { target }).find(({ value }) => value === 1)?.labels.state,
  };
}
