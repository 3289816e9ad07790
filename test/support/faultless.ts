import type { Guarded } from '../../src/errors.js';

/** An owner of callbacks of which none is to throw: what they throw fails the test. */
export const faultless: Guarded = {
  onFault(_where, fault) {
    throw fault;
  },
};
