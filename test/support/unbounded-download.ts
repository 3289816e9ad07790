import type { Guarded } from '../../src/errors.js';
import { createUpstreamClient } from '../../src/upstream/client.js';

/** An owner of callbacks that must not throw: an exception fails the test. */
const faultless: Guarded = {
  onFault(_where, fault) {
    throw fault;
  },
};

/** Lets files be fetched from any port and name. */
export const anyHost = {
  isByClient: false,
  proxy: null,
  rules: { ports: [[1, 65_535]], denyNetworks: [], denyHosts: [] },
} as const;

/** A download that is limited only by size and time. */
export const unboundedDownload = {
  ...anyHost,
  owner: faultless,
  rate: { bytesPerSecond: 0, graceMs: 10_000 },
  hold: () => {},
  client: createUpstreamClient(),
};
