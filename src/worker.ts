// One worker process: a gateway that the primary starts, reloads and drains over IPC. The build bundles it into one file:
// to find, read and link several hundred took a worker longer than all the rest of its start.
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
import { createLog } from './supervisor/log.js';
import {
  type Collected,
  graceMs,
  type Inspected,
  isMessage,
  type OrderOf,
  replacedSignal,
  type WorkerOrder,
  type WorkerReport,
} from './supervisor/messages.js';
import { inSlices, type Steps } from './wire/steps.js';

/** A last report to the primary is waited for this long before the process ends without it. */
const lastReportMs = 500;

useCompiler({ Compile });
const log = createLog('worker', process.env.LOG_LEVEL ?? 'info');
/** They are there before the gateway is, and stay through its reloads. */
const managedKeys = createManagedKeySet();
let gateway: Gateway | null = null;
/** As it was told last; null before the start. */
let config: ResolvedConfig | null = null;
/** What was told of the next one so far. */
let parts = new JoinedParts();
/** What the primary says of limits before there is a gateway. */
let earlyLeases: OwnerMessage[] = [];
let listening = false;
/** The primary has said that others listen in its place. */
let isRelieved = false;
let leaving = false;
let finished = false;
let timeouts: Pick<Timeouts, 'drainMs' | 'orphanMs'> = { drainMs: 0, orphanMs: 0 };
/** Orders are carried out one after another: a reload may come while the start still runs. */
let orders: Promise<void> = Promise.resolve();
/** Over when all questions of the primary are answered so far. */
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
  // What the system refuses is no mistake of ours: where one was made is told by a stack, and there is none.
  const told = error instanceof ListenError ? { reason: error.message } : { err: error };
  log.logger.fatal(told, 'the worker ends');
  setTimeout(() => end(1), lastReportMs);
  const reason = error instanceof Error ? error.message : String(error);
  report({ type: 'failed', reason }, () => end(1));
}

/**
 * The last net, for what no callback's owner has heard of: a part that belongs to no call, or a library. What callbacks
 * change belongs to a call, a session or a connection, each of which ends by its own fault, so nothing of them is left
 * half done here; to end the worker would cost every call under way, and give whoever finds such a fault a way to end
 * them all. So it is counted and logged, and the worker lives on: but not one that has yet to serve, which another
 * start may mend, and not where Node says that its own state is broken.
 */
function survive(error: unknown): void {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : null;
  if (gateway === null || !listening || code === 'ERR_INTERNAL_ASSERTION') fail(error);
  else gateway.reportFault('process', error);
}

/** A config with all that its first call would else wait for. */
async function readySnapshot(told: ResolvedConfig, simulatorUrl: string | null): Promise<Snapshot> {
  const snapshot = await inSlices(snapshotSteps(told, { simulatorUrl }));
  if (snapshot.translates) compileTranslationChecks();
  return snapshot;
}

/** The config with the keys that its snapshot has made of its own, which say the same: each is in memory once. */
function* withKeysOf({ keyIds }: Snapshot, told: ResolvedConfig): Steps<ResolvedConfig> {
  const keys: ResolvedKey[] = [];
  for (const key of keyIds.values()) {
    keys.push(key);
    yield;
  }
  return { ...told, keys };
}

/** What was told since this was called last. */
function takeParts(): JoinedParts {
  const told = parts;
  parts = new JoinedParts();
  return told;
}

async function start(order: OrderOf<'start'>, told: JoinedParts): Promise<void> {
  config = await inSlices(changedConfig(null, told.change()));
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

async function reload(order: OrderOf<'reload'>, told: JoinedParts): Promise<void> {
  let problem: string | null = null;
  try {
    if (config === null) throw new Error('it was not told to start');
    // Also where it cannot be put in force: the next change is from this one.
    config = await inSlices(changedConfig(config, told.change()));
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

async function tellMetrics(id: number): Promise<void> {
  const nothing: Collected['snapshot'] = { counters: [], gauges: [], histograms: [] };
  const parts = gateway === null ? [nothing] : await inSlices(gateway.takeMetricsSteps());
  await inSlices(reportMetrics(parts, id));
}

/** The last part answers the question. */
function* reportMetrics(parts: readonly Collected['snapshot'][], id: number): Steps<void> {
  for (const [index, snapshot] of parts.entries()) {
    report({ type: 'collected', id: index === parts.length - 1 ? id : 0, snapshot });
    yield;
  }
}

async function tellInspection(id: number): Promise<void> {
  const nothing: Inspected['inspection'] = { requests: [], targets: [], limits: [] };
  const inspection = gateway === null ? nothing : await inSlices(gateway.inspectSteps());
  report({ type: 'inspected', id, inspection });
}

/** Answers a question once those before it are answered. */
function answer(tellIt: (id: number) => Promise<void>, id: number): void {
  answers = answers.then(() => tellIt(id)).catch((fault) => gateway?.reportFault('ipc', fault));
}

/**
 * Ends once the requests in flight have, or at the limit: the primary keeps time too, but may be gone. A second call
 * sets another time for idle connections.
 */
async function leave(graceMs?: number): Promise<void> {
  if (gateway === null || !listening) return end(0);
  if (!leaving) setTimeout(cut, timeouts.drainMs);
  leaving = true;
  await gateway.drain(graceMs);
  await finish(gateway);
}

function cut(): void {
  log.logger.warn('drain limit reached, requests are cut');
  if (gateway === null) end(0);
  else finish(gateway).catch(fail);
}

async function finish(served: Gateway): Promise<void> {
  if (finished) return;
  finished = true;
  // Writes the lines of the last requests, too.
  await served.close();
  await answers;
  // What was counted since the primary last asked.
  setTimeout(() => end(0), lastReportMs);
  report({ type: 'collected', id: 0, snapshot: served.takeMetrics() }, () => end(0));
}

async function stopListening(number: number): Promise<void> {
  isRelieved = true;
  await gateway?.stopListening();
  report({ type: 'stopped-listening', number });
}

/** Not behind the orders before it where it has begun to leave: that is over only with the last call. */
function stop({ number }: OrderOf<'stop-listening'>): void {
  if (leaving) stopListening(number).catch(fail);
  else orders = orders.then(() => stopListening(number)).catch(fail);
}

function drain({ graceMs }: OrderOf<'drain'>): void {
  if (leaving) leave(graceMs).catch(fail);
  else orders = orders.then(() => leave(graceMs)).catch(fail);
}

/** It leaves of its own accord, or as somebody else than the primary has told it to. */
function leaveAlone(forMs: number): void {
  report({ type: 'draining' });
  orders = orders.then(() => leave(forMs)).catch(fail);
}

/**
 * The primary has died. Whoever starts a gateway on this port next finds the workers that still listen (`take-over.ts`),
 * and tells them to leave when its own serve; until then they serve on by what they know.
 */
function onOrphaned(): void {
  gateway?.loseLeases();
  if (gateway === null || !listening) end(0);
  if (leaving) return;
  const { orphanMs } = timeouts;
  // Elsewhere nobody could find it.
  if (isRelieved || orphanMs === 0 || process.platform !== 'linux') {
    leaveAlone(graceMs.replaced);
    return;
  }
  log.logger.error(
    { limitMs: orphanMs },
    'the primary has died, the worker serves until a gateway takes over',
  );
  setTimeout(() => {
    if (leaving) return;
    log.logger.warn('no gateway has taken over, the worker drains');
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
      const told = takeParts();
      orders = orders.then(() => start(order, told)).catch(fail);
      break;
    }
    case 'reload': {
      const told = takeParts();
      orders = orders.then(() => reload(order, told));
      break;
    }
    case 'keys':
      takeKeys(order);
      break;
    case 'confirm-keys':
      report({ type: 'keys-confirmed', number: order.number });
      break;
    case 'collect':
      answer(tellMetrics, order.id);
      break;
    case 'inspect':
      answer(tellInspection, order.id);
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
// The terminal sends these to the whole group: they are for the primary, which gives its orders over IPC.
process.on('SIGINT', () => {});
process.on('SIGHUP', () => {});
process.on('uncaughtException', survive);
process.on('unhandledRejection', survive);

report({ type: 'ready' });
