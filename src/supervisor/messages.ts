import type { ConfigPart } from '../config/change.js';
import type { WireKeys } from '../keys/key-wire.js';
import type { HolderMessage, OwnerMessage } from '../limits/lease-messages.js';
import type { Inspection } from '../metrics/inspection.js';
import type { MetricsSnapshot } from '../metrics/snapshot.js';

/**
 * What a gateway that has taken the port over sends to the primary before it, or to workers whose primary has died: to
 * stop to listen, and to drain.
 */
export const replacedSignal = 'SIGUSR2';

/**
 * Stands among the arguments of a worker, with the process id of its primary behind it: so that it is told from any
 * other program that listens on the port, and whether its primary lives from who its parent is.
 */
export const workerMark = 'worker-of-model-gateway';

/** How long what comes on idle connections is still served: to the end of a gateway, and where there is another worker. */
export const graceMs = { atEnd: 300, replaced: 5000 } as const;

/** What the primary tells a worker. */
export type WorkerOrder =
  /**
   * What makes its config of the one that it was told last, whether it could put that in force or not; of none before the
   * start. All parts come before the order that they belong to.
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
  /** It is to take no more connections, and serves on those that it has. */
  | { readonly type: 'stop-listening'; readonly number: number }
  /** `graceMs`: for so long what still comes on idle connections is served. */
  | { readonly type: 'drain'; readonly graceMs: number }
  /** It is to end at once. */
  | { readonly type: 'cut' }
  /** How the managed keys have changed; the first one, which comes before the start, holds all of them. */
  | { readonly type: 'keys'; readonly keys: WireKeys }
  /** It is to say that the keys which it was told of are in force. */
  | { readonly type: 'confirm-keys'; readonly number: number }
  /** It is to tell what it has counted. */
  | { readonly type: 'collect'; readonly id: number }
  /** It is to tell what somebody who looks sees of it. */
  | { readonly type: 'inspect'; readonly id: number }
  | OwnerMessage;

/** An order by its type. */
export type OrderOf<Type extends WorkerOrder['type']> = Extract<WorkerOrder, { readonly type: Type }>;

/** What a worker tells the primary. */
export type WorkerReport =
  /** Its code is loaded and it takes orders. */
  | { readonly type: 'ready' }
  | { readonly type: 'listening' }
  /** It takes no more connections, as it was told. */
  | { readonly type: 'stopped-listening'; readonly number: number }
  /** Its event loop turns: told every `heartbeatMs` while it serves. */
  | { readonly type: 'alive' }
  | { readonly type: 'reloaded'; readonly number: number; readonly problem: string | null }
  /** It leaves of its own accord: it was signalled directly. */
  | { readonly type: 'draining' }
  /** It cannot start, and ends. */
  | { readonly type: 'failed'; readonly reason: string }
  | WorkerNews;

/** What a worker tells while it serves. */
export type WorkerNews = Collected | Inspected | KeysConfirmed | HolderMessage;

/** What a worker has counted. */
export interface Collected {
  readonly type: 'collected';
  readonly id: number;
  readonly snapshot: MetricsSnapshot;
}

/** What somebody who looks sees of a worker. */
export interface Inspected {
  readonly type: 'inspected';
  readonly id: number;
  readonly inspection: Inspection;
}

/** From now on no call begins that the keys refuse which the worker was sent before `confirm-keys`. */
interface KeysConfirmed {
  readonly type: 'keys-confirmed';
  readonly number: number;
}

/** What the simulator's process tells the primary. */
export interface SimulatorReport {
  readonly type: 'listening';
  readonly port: number;
}

/** What the primary tells a process that started it with an IPC channel: a process manager, or a test. */
export interface GatewayReport {
  readonly type: 'listening';
  readonly url: string;
  readonly port: number;
  /** Process ids of the workers that serve at this moment. */
  readonly workers: readonly number[];
}

/**
 * Whether what came over IPC is a message of the other process: Node's own and strangers' are passed over. What is in it
 * is not checked.
 */
export function isMessage<Message extends { readonly type: string }>(message: unknown): message is Message {
  return typeof message === 'object' && message !== null && typeof Reflect.get(message, 'type') === 'string';
}
