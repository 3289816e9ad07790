import type { Snapshot } from '../config/types.js';
import type { TrustedProxies } from '../http/client-address.js';
import type { Router } from '../http/router.js';
import type { KeyTable } from '../keys/table.js';
import type { ErrorFormat } from '../protocols/error-formats/formats.js';
import type { Route } from '../routes.js';

/** Everything derived from one config, replaced as a whole on reload. A call keeps the one that it began with. */
export interface Running {
  readonly snapshot: Snapshot;
  readonly keys: KeyTable;
  readonly router: Router<Route>;
  /** Null if nothing uses the addresses of clients. */
  readonly proxies: TrustedProxies | null;
  readonly errorFormatForPath: (method: string, path: string) => ErrorFormat;
}
