import type { TargetChooser } from '../attempts/choose.js';
import type { HealthTable } from '../attempts/health.js';
import type { HedgeBudgets } from '../attempts/hedge-budget.js';
import type { LackingEndpoints } from '../attempts/lacking-endpoints.js';
import type { Upstream } from '../config/types.js';
import type { FaultPlace, GatewayError, RefusingLimit } from '../errors.js';
import type { SweepList } from '../http/sweep.js';
import type { HostClock } from '../limits/clock.js';
import type { LeaseHolder } from '../limits/lease-holder.js';
import type { CallRecord } from '../metrics/call-record.js';
import type { Recorder } from '../metrics/recorder.js';
import type { BudgetAccounts } from '../store/accounts.js';
import type { OwnedRecords } from '../store/owned.js';
import type { Dialer } from '../upstream/dial.js';
import type { UpstreamClient } from '../upstream/types.js';
import type { BackgroundCalls } from '../usage/background-calls.js';
import type { OpenCalls } from '../usage/open-calls.js';
import type { TaskBook } from '../video/book.js';
import type { VideoTask } from '../video/task.js';
import type { TurnQueue } from '../wire/turn-queue.js';
import type { DetachedList } from './answer/detached-list.js';
import type { Unattended } from './background/unattended.js';
import type { Asking, Call } from './call.js';
import type { FindQueue } from './conversation/find-queue.js';
import type { MemoryBudget } from './memory-budget.js';
import type { Running } from './running.js';
import type { SessionList } from './sockets/sessions.js';
import type { Downloads } from './video/downloads.js';

/** An upstream's word that its account of ours is not accepted. */
export interface VendorAccountRefusal {
  readonly upstream: Upstream;
  /** Index of the upstream's key. */
  readonly keyIndex: number;
  readonly error: GatewayError;
}

/** What the phases of every call of a worker share. */
export interface Services {
  running: Running;
  readonly upstream: UpstreamClient;
  /** Of all connections to upstreams, those of WebSockets too. */
  readonly dialer: Dialer;
  readonly sessions: SessionList;
  readonly book: TaskBook;
  readonly downloads: Downloads;
  /** Begins to keep the video of a task that has just completed, where the config says so. */
  readonly keepVideo: (task: VideoTask) => void;
  /** Where turns of conversations are kept; null where the store cannot. */
  readonly owned: OwnedRecords | null;
  /** What is on its way there: bytes, and records that nobody waits for; and from when a failure is told again. */
  readonly keeping: { underWay: number; notes: number; tellFrom: number };
  /** Reads those turns, for a few calls at a time. */
  readonly finding: FindQueue;
  /** Takes note of a call that has ended; does its formatting later. */
  readonly report: (call: CallRecord) => void;
  /** Calls whose upstreams go on in the background. */
  readonly background: BackgroundCalls;
  /** Puts a call that was reported before into the ledger and the metrics. */
  readonly meter: (call: CallRecord) => void;
  /**
   * Notes what puts the price of an earlier task right, or what an earlier call has come to, once however often it is told.
   * Rejects as the store does.
   */
  readonly correct: (correction: CallRecord) => Promise<void>;
  /** Accounts of budgets, for corrections that do not go by way of the limits. */
  readonly budgets: BudgetAccounts;
  /** Counts and logs a mistake of ours. Never throws. @param call that it belongs to, or null */
  readonly reportFault: (where: FaultPlace, fault: unknown, call: Call | null) => void;
  /** Ends a call in whose course something was thrown, refusals included. Never throws. */
  readonly endThrown: (call: Call, where: FaultPlace, thrown: unknown) => void;
  /** Takes note that an upstream does not accept our account there. */
  readonly reportVendorAccount: (call: Pick<Asking, 'exchange'>, refusal: VendorAccountRefusal) => void;
  /** How every target fares, as this worker has seen it. */
  readonly health: HealthTable;
  readonly chooser: TargetChooser;
  readonly hedges: HedgeBudgets;
  readonly lacking: LackingEndpoints;
  readonly recorder: Pick<Recorder, 'recordAttempt' | 'recordFirstByte' | 'recordRetry' | 'count'>;
  readonly limits: LeaseHolder;
  /** The clock of the limits. */
  readonly hostClock: HostClock;
  /** Notes that a limit or budget has refused something. */
  readonly reportLimit: (limit: RefusingLimit) => void;
  readonly sweepList: SweepList;
  /** Calls that ask an upstream: long ones have a record in the store while they do. */
  readonly openCalls: OpenCalls<Call>;
  /** Bytes of bodies and gathered answers in memory. */
  readonly memory: MemoryBudget;
  /** Bodies that take long to look through and to translate; each is in the memory budget. */
  readonly largeBodies: TurnQueue;
  /** Calls whose clients have left, and whose upstreams are read on for. */
  readonly detached: DetachedList;
  /** Work that goes on without its client; a drain waits for it. */
  readonly unattended: Unattended;
}
