import type { Guarded } from '../../src/errors.js';
import { createDialer } from '../../src/upstream/dial.js';

/** An owner of callbacks of which none is to throw: what they throw fails the test. */
const faultless: Guarded = {
  onFault(_where, fault) {
    throw fault;
  },
};

/** A download that only its size and its time bound. */
export const unboundedDownload = {
  owner: faultless,
  rate: { bytesPerSecond: 0, graceMs: 10_000 },
  hold: () => {},
  dialer: createDialer(),
};
