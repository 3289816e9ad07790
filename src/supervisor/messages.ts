import type { ConfigPart } from '../config/change.js';
import type { WireKeys } from '../keys/key-wire.js';
import type { HolderMessage, OwnerMessage } from '../limits/lease-messages.js';
import type { CollectedMetrics } from '../metrics/collected.js';
import type { Inspection } from '../metrics/inspection.js';

/**
 * Signal that a gateway sends when it has taken over the port: to the previous primary, or to workers whose primary has
 * died. They then stop listening and drain.
 */
export const replacedSignal = 'SIGUSR2';

/**
 * Argument of every worker, followed by the process id of its primary. It distinguishes a worker from any other program
 * that listens on the port. A worker whose parent is another process has lost its primary.
 */
export const workerMark = 'worker-of-model-gateway';

/** How long requests on idle connections are still served: when a gateway ends, and when there is another worker. */
export const graceMs = { atEnd: 300, replaced: 5000 } as const;

/**
 * How long a worker that drains waits for the ledger after its last request while the store fails: the rest of the
 * drain, within these bounds. With a longer wait, a restart during an outage would be an outage itself.
 */
export const lastLedgerMs = { least: 10_000, most: 60_000 } as const;

/** Messages from the primary to a worker. */
export type WorkerOrder =
  /**
   * A part of the change from the config that the worker was last sent, whether or not it applied that one. Before the
   * start, it is a change from no config. All parts precede the order that they belong to.
   */
  | { readonly type: 'config-part'; readonly part: ConfigPart }
  | {
      readonly type: 'start';
      readonly simulatorUrl: string | null;
      readonly host: string;
      readonly port: number;
    }
  | {
      readonly type: 'reload';
      readonly number: number;
      readonly simulatorUrl: string | null;
    }
  /** Accept no more connections, and continue to serve the existing ones. */
  | { readonly type: 'stop-listening'; readonly number: number }
  /** End when all calls have ended. `graceMs`: how long requests on idle connections are still served. */
  | { readonly type: 'drain'; readonly graceMs: number }
  /** End immediately. */
  | { readonly type: 'cut' }
  /** Changes of the managed keys. The first message, sent before the start, contains all of them. */
  | { readonly type: 'keys'; readonly keys: WireKeys }
  /** Confirm that everything sent before has been read, and that the keys sent before are in force. */
  | { readonly type: 'confirm'; readonly number: number }
  /** Report the metrics. */
  | { readonly type: 'collect'; readonly id: number }
  /** Report the state that operators inspect. */
  | { readonly type: 'inspect'; readonly id: number }
  | OwnerMessage;

/** An order by its type. */
export type OrderOf<Type extends WorkerOrder['type']> = Extract<WorkerOrder, { readonly type: Type }>;

/** Messages from a worker to the primary. */
export type WorkerReport =
  /** The code is loaded, and the worker accepts orders. */
  | { readonly type: 'ready' }
  | { readonly type: 'listening' }
  /** The worker accepts no more connections, as ordered. */
  | { readonly type: 'stopped-listening'; readonly number: number }
  /** Heartbeat of the event loop, sent every `heartbeatMs` while the worker serves. */
  | { readonly type: 'alive' }
  | { readonly type: 'reloaded'; readonly number: number; readonly problem: string | null }
  /**
   * The worker has read everything that it was sent before `confirm`. The keys of it are in force: no call that they
   * refuse begins any more.
   */
  | { readonly type: 'confirmed'; readonly number: number }
  /** The worker drains on its own, because it received a signal itself. */
  | { readonly type: 'draining' }
  /** The worker cannot start, and exits. */
  | { readonly type: 'failed'; readonly reason: string }
  | WorkerNews;

/** Messages of a worker that do not concern its lifecycle. */
export type WorkerNews = Collected | Inspected | HolderMessage;

/** Metrics of a worker. */
export interface Collected {
  readonly type: 'collected';
  readonly id: number;
  /** Named as in earlier versions: after an update in place, new workers report to the primary that still runs. */
  readonly snapshot: CollectedMetrics;
}

/** State of a worker that operators inspect. */
export interface Inspected {
  readonly type: 'inspected';
  readonly id: number;
  readonly inspection: Inspection;
}

/** Message from the simulator to the primary. */
export interface SimulatorReport {
  readonly type: 'listening';
  readonly port: number;
}

/** Message from the primary to the process that started it with an IPC channel, such as a process manager or a test. */
export interface GatewayReport {
  readonly type: 'listening';
  readonly url: string;
  readonly port: number;
  /** Process ids of the workers that serve now. */
  readonly workers: readonly number[];
}

/**
 * Checks whether an IPC message is one of the other process, unlike those of Node itself and of other programs. Its
 * content is not checked.
 */
export function isMessage<Message extends { readonly type: string }>(message: unknown): message is Message {
  return typeof message === 'object' && message !== null && typeof Reflect.get(message, 'type') === 'string';
}
