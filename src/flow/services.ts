import type { Snapshot } from '../config/types.js';
import type { Sealer } from '../conversation/seal.js';
import type { Dialect } from '../dialects/dialect.js';
import type { TrustedProxies } from '../http/client-address.js';
import type { Router } from '../http/router.js';
import type { KeyTable } from '../keys/table.js';
import type { HostClock } from '../limits/clock.js';
import type { LeaseHolder } from '../limits/holding.js';
import type { PoolTable } from '../limits/pools.js';
import type { Recorder } from '../metrics/recorder.js';
import type { Route } from '../routes.js';
import type { TargetChooser } from '../routing/choose.js';
import type { HealthTable } from '../routing/health-table.js';
import type { HedgeBudgets } from '../routing/hedge-budget.js';
import type { UpstreamClient } from '../upstream/client.js';
import type { SecureProfiles } from '../upstream/secure.js';
import type { TaskBook } from '../video/book.js';
import type { Call } from './call.js';
import type { SessionList } from './realtime/sessions.js';
import type { Unattended } from './unattended.js';
import type { WatchList } from './watch.js';

/** What follows from one config, swapped whole on reload. A call keeps the one that it began with. */
export interface Running {
  readonly snapshot: Snapshot;
  readonly keys: KeyTable;
  readonly router: Router<Route>;
  /** Null where nobody wants to know the addresses of clients. */
  readonly proxies: TrustedProxies | null;
  readonly sealer: Sealer;
  readonly pools: PoolTable;
  readonly dialectForPath: (path: string) => Dialect;
}

/** What the phases of every call of a worker share. */
export interface Services {
  running: Running;
  readonly upstream: UpstreamClient;
  /** TLS toward the upstreams of WebSockets. */
  readonly secureProfiles: SecureProfiles;
  readonly sessions: SessionList;
  readonly book: TaskBook;
  /** Takes note of a finished call; does its formatting later. */
  readonly report: (call: Call) => void;
  /** Takes note of a mistake of ours that a call survived. */
  readonly reportFault: (call: Call, fault: unknown) => void;
  /** How well every target is, as this worker has seen it. */
  readonly health: HealthTable;
  readonly chooser: TargetChooser;
  readonly hedges: HedgeBudgets;
  readonly attempts: Pick<Recorder, 'recordAttempt' | 'recordRetry' | 'recordHedge'>;
  readonly limits: LeaseHolder;
  /** By which the limits are kept. */
  readonly hostClock: HostClock;
  /** Notes that a limit refused a call. @param limit what was counted: `requests` */
  readonly reportLimit: (limit: string) => void;
  readonly watched: WatchList;
  /** Bytes of request bodies in memory. */
  bufferedBytes: number;
  /** Work that goes on without its client; a drain waits for it. */
  readonly unattended: Unattended;
}
