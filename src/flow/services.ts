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
import type { TurnQueue } from '../wire/steps.js';
import type { DetachedList } from './answer/detached-list.js';
import type { Unattended } from './background/unattended.js';
import type { DecodeQueue } from './body/decode-queue.js';
import type { Call, RequestSender } from './call.js';
import type { FindQueue } from './conversation/find-queue.js';
import type { MemoryBudget } from './memory-budget.js';
import type { ImplausibleUsage } from './record/consumption.js';
import type { Running } from './running.js';
import type { SessionList } from './sockets/sessions.js';
import type { Downloads } from './video/downloads.js';

/** An upstream's report that it does not accept the gateway's account. */
export interface VendorAccountRefusal {
  readonly upstream: Upstream;
  /** Index of the upstream's key. */
  readonly keyIndex: number;
  readonly error: GatewayError;
}

/** How long calls wait for the store of conversations, in milliseconds. */
export interface StoreWait {
  /** The end of an answer, so that a short stall of the disk fails no answer. */
  readonly endMs: number;
  /** A request that can proceed without the turns that it continues. */
  readonly turnsMs: number;
}

/** The parts of a worker that the phases of all calls share. */
export interface Services {
  running: Running;
  readonly upstream: UpstreamClient;
  /** Opens all connections to upstreams, WebSockets included. */
  readonly dialer: Dialer;
  readonly sessions: SessionList;
  readonly book: TaskBook;
  readonly downloads: Downloads;
  /** Starts to download the video of a task that has just completed, if the config says to keep it. */
  readonly keepVideo: (task: VideoTask) => void;
  /** The stored turns of conversations; null if the store cannot keep them. */
  readonly owned: OwnedRecords | null;
  /**
   * Turns on their way to the store: their bytes, the records that nothing waits for, whether the store fails, and from
   * when a failure is logged again.
   */
  readonly keeping: { underWay: number; notes: number; isFailing: boolean; silentUntil: number };
  readonly storeWait: StoreWait;
  /** Logs that the store of turns fails; with null that it works again. */
  readonly reportKeeping: (fault: unknown) => void;
  /** Reads those turns, for a few calls concurrently. */
  readonly finding: FindQueue;
  /** Records a call that has ended. Its formatting happens later. */
  readonly report: (call: CallRecord) => void;
  /** Calls whose upstreams continue in the background. */
  readonly background: BackgroundCalls;
  /** Writes a call that was reported before to the ledger and the metrics. */
  readonly meter: (call: CallRecord) => void;
  /**
   * Records a correction: of the price of an earlier task, or of the outcome of an earlier call. Repeating one has no
   * effect.
   * Rejects if the store does.
   */
  readonly correct: (correction: CallRecord) => Promise<void>;
  /** Accounts of budgets, for corrections that bypass the limits. */
  readonly budgets: BudgetAccounts;
  /** Counts and logs an unexpected exception. Never throws. @param call its owner, or null */
  readonly reportFault: (where: FaultPlace, fault: unknown, call: Call | null) => void;
  /** Ends a call during which something was thrown, refusals included. Never throws. */
  readonly endThrown: (call: Call, where: FaultPlace, thrown: unknown) => void;
  /** Records that an upstream does not accept the gateway's account. */
  readonly reportVendorAccount: (
    call: Pick<RequestSender, 'exchange'>,
    refusal: VendorAccountRefusal,
  ) => void;
  /** Counts and logs a usage that no call can have had, which its call is not charged. */
  readonly reportImplausible: (
    call: Pick<RequestSender, 'exchange'> | null,
    reported: ImplausibleUsage,
  ) => void;
  /** The health of every target, as seen by this worker. */
  readonly health: HealthTable;
  readonly chooser: TargetChooser;
  readonly hedges: HedgeBudgets;
  readonly lacking: LackingEndpoints;
  readonly recorder: Pick<Recorder, 'recordAttempt' | 'recordFirstByte' | 'recordRetry' | 'count'>;
  readonly limits: LeaseHolder;
  /** The clock of the limits. */
  readonly hostClock: HostClock;
  /** Counts a refusal by a limit or budget. */
  readonly reportLimit: (limit: RefusingLimit) => void;
  readonly sweepList: SweepList;
  /** Calls that wait for an upstream. Long ones have a record in the store during that time. */
  readonly openCalls: OpenCalls<Call>;
  /** Bytes of bodies and gathered answers in memory. */
  readonly memory: MemoryBudget;
  /** Decodes compressed bodies that need more than a little memory. */
  readonly decoding: DecodeQueue;
  /** Queue for bodies that take long to parse and translate. Each of them counts in the memory budget. */
  readonly largeBodies: TurnQueue;
  /** Calls whose clients have disconnected, and whose upstreams are still read. */
  readonly detached: DetachedList;
  /** Work that continues without its client. A drain waits for it. */
  readonly unattended: Unattended;
}
