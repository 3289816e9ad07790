// One worker process: a gateway that the primary starts, reloads and drains over IPC. The build bundles it into one file,
// since loading several hundred modules takes longer than the rest of its start.
import { performance } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { Compile } from 'typebox/schema';
import { changedConfig, JoinedParts } from './config/change.js';
import type { ResolvedConfig, ResolvedKey } from './config/resolve.js';
import { snapshotSteps } from './config/snapshot.js';
import type { Snapshot, Timeouts } from './config/types.js';
import { guard } from './errors.js';
import { Gateway } from './gateway.js';
import { ListenError } from './http/server.js';
import { createManagedKeySet } from './keys/key-set.js';
import { fromWire } from './keys/key-wire.js';
import type { OwnerMessage } from './limits/lease-messages.js';
import { compileTranslationChecks } from './protocols/text.js';
import { useCompiler } from './schema/validator.js';
import { heartbeatMs } from './supervisor/heartbeat.js';
import { createLog, ignoreDebugSignal } from './supervisor/log.js';
import {
  type Collected,
  graceMs,
  type Inspected,
  isMessage,
  lastLedgerMs,
  type OrderOf,
  replacedSignal,
  type WorkerOrder,
  type WorkerReport,
} from './supervisor/messages.js';
import { inSlices, type Steps } from './wire/steps.js';

/** How long the process waits for its last report to reach the primary before it exits anyway. */
const lastReportMs = 500;

// By default V8 marks a heap again once it has grown by as little as a tenth. With 100,000 keys that is half a second of
// work, for which calls wait. So a worker's heap may become twice as large as what is in use.
setFlagsFromString('--heap-growing-percent=100');

useCompiler({ Compile });
const log = createLog('worker', process.env.LOG_LEVEL ?? 'info');
ignoreDebugSignal(log.logger);
/** Created before the gateway, since the primary sends keys earlier; reloads keep them. */
const managedKeys = createManagedKeySet();
let gateway: Gateway | null = null;
/** The config that the primary has sent last; null before the start. */
let config: ResolvedConfig | null = null;
/** The parts of the next config that have arrived. */
let parts = new JoinedParts();
/** Messages about limits that arrive before the gateway exists. */
let earlyLeases: OwnerMessage[] = [];
let listening = false;
/** The primary has replaced this worker: it no longer accepts connections. */
let isRelieved = false;
let leaving = false;
let finished = false;
/** The time of `performance.now()` at which the drain ends. */
let drainsUntil = 0;
let timeouts: Pick<Timeouts, 'drainMs' | 'orphanMs'> = { drainMs: 0, orphanMs: 0 };
/** Orders run one after another: a reload may arrive while the start is still running. */
let orders: Promise<void> = Promise.resolve();
/** Resolves when all requests of the primary so far have been answered. */
let answers: Promise<void> = Promise.resolve();

const ignore = (): void => {};

function report(message: WorkerReport, onSent: () => void = ignore): void {
  if (process.connected) process.send?.(message, undefined, undefined, onSent);
  else onSent();
}

function end(code: number): void {
  log.lines.written().finally(() => process.exit(code));
}

function fail(error: unknown): void {
  // An address that the system refuses is not a bug, so the log gets the reason and no stack.
  const fields = error instanceof ListenError ? { reason: error.message } : { err: error };
  log.logger.fatal(fields, 'worker failed: exiting');
  setTimeout(() => end(1), lastReportMs);
  const reason = error instanceof Error ? error.message : String(error);
  report({ type: 'failed', reason }, () => end(1));
}

/**
 * Handles an error that nothing has caught, from code that belongs to no call or from a library. Callbacks run in a `guard`,
 * which ends the call, session or connection that they belong to, so no half-finished state of those is left here. Ending
 * the worker would fail every call in flight, and a client that can cause such an error could end them all. The error is
 * therefore counted and logged, and the worker continues. It exits only if it does not serve yet, since a fresh start may
 * help, and if Node reports that its own state is broken.
 */
function survive(error: unknown): void {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : null;
  if (gateway === null || !listening || code === 'ERR_INTERNAL_ASSERTION') fail(error);
  else gateway.reportFault('process', error);
}

/** Builds the snapshot of a config, and compiles what its first call would otherwise wait for. */
async function readySnapshot(next: ResolvedConfig, simulatorUrl: string | null): Promise<Snapshot> {
  const snapshot = await inSlices(snapshotSteps(next, { simulatorUrl }));
  if (snapshot.translates) compileTranslationChecks();
  return snapshot;
}

/** The config with its keys replaced by the equal objects of its snapshot, so that each key is in memory once. */
function* withKeysOf({ keyIds }: Snapshot, next: ResolvedConfig): Steps<ResolvedConfig> {
  const keys: ResolvedKey[] = [];
  for (const key of keyIds.values()) {
    keys.push(key);
    yield;
  }
  return { ...next, keys };
}

/** Returns the config parts that have arrived since the last call. */
function takeParts(): JoinedParts {
  const received = parts;
  parts = new JoinedParts();
  return received;
}

async function start(order: OrderOf<'start'>, received: JoinedParts): Promise<void> {
  config = await inSlices(changedConfig(null, received.change()));
  const snapshot = await readySnapshot(config, order.simulatorUrl);
  config = await inSlices(withKeysOf(snapshot, config));
  timeouts = snapshot.timeouts;
  gateway = new Gateway({
    snapshot,
    log: log.logger,
    lines: log.lines,
    sendLease: report,
    managedKeys,
  });
  for (const message of earlyLeases) gateway.receiveLease(message);
  earlyLeases = [];
  await gateway.listen(order.host, order.port);
  listening = true;
  report({ type: 'listening' });
  setInterval(report, heartbeatMs, { type: 'alive' } satisfies WorkerReport).unref();
}

async function reload(order: OrderOf<'reload'>, received: JoinedParts): Promise<void> {
  let problem: string | null = null;
  try {
    if (config === null) throw new Error('it was not told to start');
    // Kept even if it cannot be applied, since the primary sends the next change relative to it.
    config = await inSlices(changedConfig(config, received.change()));
    const snapshot = await readySnapshot(config, order.simulatorUrl);
    config = await inSlices(withKeysOf(snapshot, config));
    if (gateway !== null) await inSlices(gateway.swapSteps(snapshot));
    timeouts = snapshot.timeouts;
  } catch (error) {
    problem = error instanceof Error ? error.message : String(error);
  }
  report({ type: 'reloaded', number: order.number, problem });
}

function takeKeys({ keys }: OrderOf<'keys'>): void {
  managedKeys.apply(fromWire(keys));
  gateway?.onKeysChanged();
}

async function sendMetrics(id: number): Promise<void> {
  const nothing: Collected['snapshot'] = { counters: [], gauges: [], histograms: [] };
  const parts = gateway === null ? [nothing] : await inSlices(gateway.takeMetricsSteps());
  await inSlices(reportMetrics(parts, id));
}

/** Sends metrics in parts. The last part carries the id of the request and thereby answers it. */
function* reportMetrics(parts: readonly Collected['snapshot'][], id: number): Steps<void> {
  for (const [index, snapshot] of parts.entries()) {
    report({ type: 'collected', id: index === parts.length - 1 ? id : 0, snapshot });
    yield;
  }
}

async function sendInspection(id: number): Promise<void> {
  const nothing: Inspected['inspection'] = { requests: [], targets: [], limits: [] };
  const inspection = gateway === null ? nothing : await inSlices(gateway.inspectSteps());
  report({ type: 'inspected', id, inspection });
}

/** Answers a request of the primary after the earlier ones. */
function answer(send: (id: number) => Promise<void>, id: number): void {
  answers = answers.then(() => send(id)).catch((fault) => gateway?.reportFault('ipc', fault));
}

/**
 * Drains and exits when the requests in flight have ended, or at the drain limit. The primary enforces the limit too, but it
 * may have died. A second call changes how long idle connections stay open.
 */
async function leave(graceMs?: number): Promise<void> {
  if (gateway === null || !listening) return end(0);
  if (!leaving) {
    setTimeout(endDrain, timeouts.drainMs);
    drainsUntil = performance.now() + timeouts.drainMs;
  }
  leaving = true;
  await gateway.drain(graceMs);
  await finish(gateway, ledgerMs());
}

/** How long the ledger may take after the last request: the rest of the drain, within bounds. */
function ledgerMs(): number {
  return Math.min(Math.max(drainsUntil - performance.now(), lastLedgerMs.least), lastLedgerMs.most);
}

/** Called at the drain limit. */
function endDrain(): void {
  if (finished) return;
  log.logger.warn('ending the remaining requests');
  if (gateway !== null) finish(gateway, ledgerMs()).catch(fail);
}

/** Called when the worker has little time left. */
function cut(): void {
  if (finished) {
    gateway?.hasten();
    return;
  }
  log.logger.warn('ending the remaining requests');
  if (gateway === null) end(0);
  else finish(gateway).catch(fail);
}

/** @param ledgerMs how long the ledger may take; default: that of `Gateway.close` */
async function finish(served: Gateway, ledgerMs?: number): Promise<void> {
  if (finished) return;
  finished = true;
  // Also writes the log and ledger lines of the last requests.
  await served.close(ledgerMs);
  await answers;
  // The counts since the primary's last request.
  setTimeout(() => end(0), lastReportMs);
  report({ type: 'collected', id: 0, snapshot: served.takeMetrics() }, () => end(0));
}

async function stopListening(number: number): Promise<void> {
  isRelieved = true;
  await gateway?.stopListening();
  report({ type: 'stopped-listening', number });
}

/** While the worker drains, the order does not wait for those before it: the drain ends only with the last call. */
function stop({ number }: OrderOf<'stop-listening'>): void {
  if (leaving) stopListening(number).catch(fail);
  else orders = orders.then(() => stopListening(number)).catch(fail);
}

function drain({ graceMs }: OrderOf<'drain'>): void {
  if (leaving) leave(graceMs).catch(fail);
  else orders = orders.then(() => leave(graceMs)).catch(fail);
}

/** Drains without an order of the primary: on a signal, or because the primary has died. */
function leaveAlone(forMs: number): void {
  report({ type: 'draining' });
  orders = orders.then(() => leave(forMs)).catch(fail);
}

/**
 * Called when the primary has died. The worker continues to serve with the config it has. The next gateway on this port finds
 * the workers that still listen (`take-over.ts`), and signals them to drain when its own workers serve.
 */
function onOrphaned(): void {
  gateway?.loseLeases();
  if (gateway === null || !listening) end(0);
  if (leaving) return;
  const { orphanMs } = timeouts;
  // On other systems the next gateway has no way to find it.
  if (isRelieved || orphanMs === 0 || process.platform !== 'linux') {
    leaveAlone(graceMs.replaced);
    return;
  }
  log.logger.error({ limitMs: orphanMs }, 'the primary has died: serving until another gateway takes over');
  setTimeout(() => {
    if (leaving) return;
    log.logger.warn('no gateway has taken over: draining');
    leaveAlone(graceMs.atEnd);
  }, orphanMs);
}

function onMessage(order: unknown): void {
  if (!isMessage<WorkerOrder>(order)) return;
  switch (order.type) {
    case 'lease-order':
      if (gateway === null) earlyLeases.push(order);
      else gateway.receiveLease(order);
      break;
    case 'config-part':
      parts.add(order.part);
      break;
    case 'start': {
      const received = takeParts();
      orders = orders.then(() => start(order, received)).catch(fail);
      break;
    }
    case 'reload': {
      const received = takeParts();
      orders = orders.then(() => reload(order, received));
      break;
    }
    case 'keys':
      takeKeys(order);
      break;
    case 'confirm':
      report({ type: 'confirmed', number: order.number });
      break;
    case 'collect':
      answer(sendMetrics, order.id);
      break;
    case 'inspect':
      answer(sendInspection, order.id);
      break;
    case 'stop-listening':
      stop(order);
      break;
    case 'drain':
      drain(order);
      break;
    case 'cut':
      cut();
      break;
  }
}

const onOrder = guard(
  'ipc',
  { onFault: (where, fault) => (gateway === null ? fail(fault) : gateway.reportFault(where, fault)) },
  onMessage,
);
process.on('message', onOrder);
process.on('disconnect', onOrphaned);
process.on('SIGTERM', () => leaveAlone(graceMs.atEnd));
process.on(replacedSignal, () => leaveAlone(graceMs.replaced));
// A terminal sends these to the whole process group. The primary handles them, and sends orders over IPC.
process.on('SIGINT', () => {});
process.on('SIGHUP', () => {});
process.on('uncaughtException', survive);
process.on('unhandledRejection', survive);

report({ type: 'ready' });
