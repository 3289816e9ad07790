import { performance } from 'node:perf_hooks';
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { TargetChooser } from './attempts/choose.js';
import { HealthTable } from './attempts/health.js';
import { HedgeBudgets } from './attempts/hedge-budget.js';
import { LackingEndpoints } from './attempts/lacking-endpoints.js';
import { usualConnections } from './config/descriptors.js';
import { createKeyShares } from './config/snapshot.js';
import type { Snapshot, Target } from './config/types.js';
import { type FaultPlace, guard } from './errors.js';
import { DetachedList } from './flow/answer/detached-list.js';
import { watchedResponses } from './flow/background/settle.js';
import { createUnattended } from './flow/background/unattended.js';
import { UpstreamWatch } from './flow/background/watch.js';
import { DecodeQueue } from './flow/body/decode-queue.js';
import { FindQueue } from './flow/conversation/find-queue.js';
import { MemoryBudget } from './flow/memory-budget.js';
import { type AccessLog, createAccessLog, type LineSink, refusalLine } from './flow/record/access-log.js';
import { RecordQueue, recordSoFar } from './flow/record/account.js';
import type { ImplausibleUsage } from './flow/record/consumption.js';
import { createRecentCalls } from './flow/record/recent-calls.js';
import { endThrown } from './flow/refuse.js';
import type { Running } from './flow/running.js';
import { serve } from './flow/serve.js';
import type { Services, StoreWait } from './flow/services.js';
import { SessionMemory } from './flow/sockets/session-memory.js';
import { SessionList } from './flow/sockets/sessions.js';
import { watchUnseen } from './flow/sockets/unseen.js';
import { Downloads } from './flow/video/downloads.js';
import { VideoKeeper } from './flow/video/keep.js';
import { watchedTasks } from './flow/video/poll.js';
import { settleTask } from './flow/video/settle.js';
import { trustedProxies } from './http/client-address.js';
import type { CorsSettings } from './http/cors.js';
import { DescriptorWatch } from './http/descriptors.js';
import { createMemorySweep } from './http/memory-sweep.js';
import type { HeaderWords } from './http/request-head.js';
import { createRouter } from './http/router.js';
import { Server } from './http/server.js';
import type { SocketLimits } from './http/socket.js';
import { SweepList } from './http/sweep.js';
import { createKeyResolver, type ManagedKeySet } from './keys/key-set.js';
import { createKeyTable } from './keys/table.js';
import { HostClock } from './limits/clock.js';
import { LeaseHolder } from './limits/lease-holder.js';
import type { HolderMessage, OwnerMessage } from './limits/lease-messages.js';
import { rateHeaderNames, rateWord } from './limits/rate-headers.js';
import { attemptRecord, type CallRecord } from './metrics/call-record.js';
import { type CollectedMetrics, metricsParts } from './metrics/collected.js';
import { type GaugeReadings, watchProcess } from './metrics/gauges.js';
import { type Inspection, inspectLimits, inspectTargets, type TargetFacts } from './metrics/inspection.js';
import { createRecorder, type Recorder, uncounted } from './metrics/recorder.js';
import { UnixTime } from './metrics/unix-time.js';
import { createErrorFormatForPath } from './protocols/error-formats/formats.js';
import { buildRoutes, servedPaths, socketPaths } from './routes.js';
import { createStore, mayHoldAnything } from './store/create.js';
import { hasEnded, thisProcess } from './store/process-mark.js';
import type { WholeStore } from './store/store.js';
import { createUpstreamClient } from './upstream/client.js';
import { createDialer, type Dialer } from './upstream/dial.js';
import type { StaleNames } from './upstream/names.js';
import type { UpstreamClient } from './upstream/types.js';
import { BackgroundCalls } from './usage/background-calls.js';
import { startInterruptedSearch } from './usage/interrupted.js';
import { OpenCalls } from './usage/open-calls.js';
import { appendOnce, createUsageWriter, retentionOf, type UsageWriter } from './usage/writer.js';
import { TaskBook } from './video/book.js';
import { startStoreSweep } from './video/store-sweep.js';
import { requestSeries } from './wire/head.js';
import { atOnce, type Steps, TurnQueue } from './wire/steps.js';

export interface GatewayOptions {
  readonly snapshot: Snapshot;
  readonly log: Logger;
  /** Sends a message to the owner of the host's limits, the primary. Must not throw. */
  readonly sendLease: (message: HolderMessage) => void;
  /** Keys that operators create and revoke, beside those of the config. */
  readonly managedKeys: ManagedKeySet;
  /** Receives the lines of `log` and of the access log. */
  readonly lines: LineSink;
  /** Time limit for downloading a video to keep, in milliseconds. Default: ten minutes. */
  readonly keepVideoMs?: number | undefined;
  /** How long calls wait for the store of conversations. Default: five seconds for ends, two for turns. */
  readonly storeWait?: StoreWait | undefined;
}

const tickMs = 1000;
const leaseTickMs = 100;
/**
 * Milliseconds after which a process of another host or container counts as dead if it has not renewed the record of
 * its long calls. With several hosts it is long, since a host that is cut off from the database continues to serve.
 */
const silentMs = { embedded: 60_000, postgres: 15 * 60_000 } as const;
/** How long closing waits for the store at least: for the last ledger entries, then for the records of calls in flight. */
const lastEntriesMs = 2000;

const usualStoreWait: StoreWait = { endMs: 5000, turnsMs: 2000 };

/** The gateway of one worker: creates every part and connects them. */
export class Gateway {
  readonly #log: Logger;
  readonly #managedKeys: ManagedKeySet;
  readonly #unixTime = new UnixTime();
  readonly #recentCalls = createRecentCalls(this.#unixTime);
  readonly #ownProcess = watchProcess();
  readonly #store: WholeStore;
  readonly #health: HealthTable;
  readonly #recorder: Recorder;
  readonly #accessLog: AccessLog;
  readonly #usageWriter: UsageWriter;
  /** Ended calls that wait to be recorded together. */
  readonly #recordQueue: RecordQueue;
  readonly #services: Services;
  readonly #server: Server;
  readonly #tickers: readonly NodeJS.Timeout[];
  readonly #unseen: { close(): void };
  readonly #storeSweep: { stop(): void };
  readonly #interruptedSearch: { stop(): void };
  readonly #watches: readonly UpstreamWatch[];
  readonly #videoKeeper: VideoKeeper;

  constructor(options: GatewayOptions) {
    const { snapshot, log, lines, managedKeys } = options;
    this.#log = log;
    this.#managedKeys = managedKeys;
    this.#store = createStore(snapshot.store);
    this.#health = new HealthTable(snapshot.routing, ({ upstream, model }, { isOpen, lastError, openMs }) => {
      if (isOpen) {
        const words = { upstream, model, error: lastError, openMs };
        log.warn(words, 'breaker open: the target keeps failing and is skipped for a while');
      } else log.warn({ upstream, model }, 'breaker closed: the target answers again');
    });
    atOnce(this.#health.retainSteps(targetsOf(snapshot), snapshot.routing));
    const dialer = createDialer(undefined, staleNamesTo(log));
    const upstream = createUpstreamClient(dialer, {
      mostConnections: usualConnections,
      onFirstWaiting: ({ authority, maxConnections }) =>
        log.warn(
          { upstream: authority, maxConnections },
          'requests are waiting: all connections to this upstream are in use',
        ),
    });
    this.#recorder = createRecorder(() => this.#readGauges(upstream));
    const onReportFault = (fault: unknown, call: CallRecord): void =>
      this.#noteFault('report', fault, call.id);
    this.#accessLog = createAccessLog(lines, log, (dropped) =>
      this.#recorder.count('gateway_log_dropped_total', dropped),
    );
    this.#usageWriter = createUsageWriter({
      store: this.#store,
      settings: () => this.#services.running.snapshot.usage,
      recorder: this.#recorder,
      log,
    });
    this.#recordQueue = new RecordQueue((call) => this.#note(call), onReportFault);
    this.#services = this.#createServices(options, dialer, upstream);
    const mayFindAny = (): boolean => mayHoldAnything(snapshot.store);
    this.#watches = [watchedTasks(this.#services), watchedResponses(this.#services, mayFindAny)].map(
      (watched) => new UpstreamWatch(this.#services, watched),
    );
    this.#videoKeeper = new VideoKeeper(this.#services, log, options.keepVideoMs);
    const descriptors = new DescriptorWatch();
    this.#server = new Server({
      words: headerWords(snapshot),
      cors: corsSettings(snapshot),
      readsPeers: snapshot.listen.trustedProxies !== null,
      tls: snapshot.listen.tls,
      sockets: { paths: socketPaths, limits: socketLimits(snapshot) },
      onRequest: (exchange) => serve(this.#services, exchange),
      isShort: () => descriptors.isShort(),
      onListening: (isListening) => {
        if (isListening) this.#log.warn('file descriptors are available again: accepting connections');
        else
          this.#log.warn(
            'out of file descriptors: accepting no connections until some are closed. Raise the limit of open files (ulimit -n, LimitNOFILE)',
          );
      },
      onDraining: () => this.#services.sessions.drain(),
      onFault: (where, fault) => this.reportFault(where, fault),
    });
    this.#tickers = this.#startTickers();
    this.#unseen = watchUnseen(this.#services.sessions, log);
    const { book } = this.#services;
    this.#storeSweep = startStoreSweep({
      settings: snapshot.store,
      store: this.#store,
      book,
      log,
      settle: (id) => settleTask(this.#services, id),
    });
    this.#interruptedSearch = startInterruptedSearch({
      store: this.#store,
      hasEnded,
      silentMs: silentMs[this.#store.kind],
      retention: () => retentionOf(this.#services.running.snapshot.usage),
      record: this.#recorder.recordSums,
      log,
      mayFindAny,
    });
  }

  #createServices(
    { snapshot, sendLease, storeWait = usualStoreWait }: GatewayOptions,
    dialer: Dialer,
    upstream: UpstreamClient,
  ): Services {
    const hostClock = new HostClock();
    return {
      running: runningFrom(snapshot, this.#managedKeys),
      upstream,
      dialer,
      sessions: new SessionList(new SessionMemory(() => this.#services.running.snapshot.sockets)),
      book: new TaskBook(this.#store),
      downloads: new Downloads(),
      keepVideo: (task) => this.#videoKeeper.keep(task),
      owned: this.#store.owned,
      keeping: { underWay: 0, notes: 0, isFailing: false, silentUntil: 0 },
      storeWait,
      reportKeeping: (fault) => this.#reportKeeping(fault),
      finding: new FindQueue(),
      report: (call) => this.#recordQueue.add(call),
      background: new BackgroundCalls(this.#store),
      meter: (call) => this.#meter(call),
      correct: (correction) => this.#correct(correction),
      budgets: this.#store.accounts,
      reportFault: (where, fault, call) => this.#noteFault(where, fault, call?.exchange.id),
      endThrown: (call, where, fault) => endThrown(this.#services, call, where, fault),
      reportVendorAccount: (call, refusal) =>
        this.#log.warn(refusalLine(call, refusal), "an upstream refused the gateway's API key or account"),
      reportImplausible: (call, reported) => this.#noteImplausible(call?.exchange.id, reported),
      health: this.#health,
      chooser: new TargetChooser(this.#health, Math.random),
      hedges: new HedgeBudgets(),
      lacking: new LackingEndpoints(),
      recorder: this.#recorder,
      limits: new LeaseHolder({
        now: () => hostClock.now(),
        send: sendLease,
        defer: setImmediate,
        outageRates: () => this.#services.running.snapshot.outage.rates,
      }),
      hostClock,
      reportLimit: (limit) => this.#recorder.count('gateway_limit_refusals_total', 1, limit),
      sweepList: new SweepList(),
      openCalls: new OpenCalls({
        store: this.#store,
        series: requestSeries,
        writer: thisProcess(),
        soFar: recordSoFar,
        unixTime: (time) => this.#unixTime.at(time),
        lagMs: () => this.#usageWriter.lagMs(this.#unixTime.at(performance.now())),
        onFault: (fault) => this.reportFault('timer', fault),
      }),
      memory: new MemoryBudget(),
      decoding: new DecodeQueue(),
      largeBodies: new TurnQueue(),
      detached: new DetachedList(),
      unattended: createUnattended(),
    };
  }

  #startTickers(): readonly NodeJS.Timeout[] {
    const sweepMemory = createMemorySweep(() => this.#server.served());
    // Guarded one by one, so that an exception in one does not skip the others.
    const every = (ms: number, ...works: (() => void)[]): NodeJS.Timeout => {
      const own = { onFault: (where: FaultPlace, fault: unknown) => this.reportFault(where, fault) };
      const guarded = works.map((work) => guard('timer', own, work));
      return setInterval(() => {
        for (const work of guarded) work();
      }, ms).unref();
    };
    const { limits, sessions, sweepList, openCalls, background } = this.#services;
    return [
      every(
        tickMs,
        sweepMemory,
        () => this.#unixTime.check(),
        ...this.#watches.map((watch) => () => void watch.tick()),
        () => void background.catchUp(),
        () => sweepList.sweep(performance.now()),
      ),
      every(
        leaseTickMs,
        () => limits.tick(),
        () => sessions.tick(this.#services.running),
        () => this.#recordQueue.flush(),
        () => openCalls.tick(performance.now()),
      ),
    ];
  }

  /** Reads the current values of the gauges. */
  #readGauges(client: UpstreamClient): GaugeReadings {
    const { sessions, memory } = this.#services;
    const now = performance.now();
    const { residentBytes, heapBytes, loopDelay } = this.#ownProcess.read();
    const { open, idle, busy, waiting } = client.stats();
    const sockets = sessions.memory;
    return {
      numbers: {
        gateway_open_requests: this.#server.open() - sessions.size,
        gateway_open_sockets: sessions.size,
        gateway_upstream_connections_open: open,
        gateway_upstream_connections_idle: idle,
        gateway_upstream_connections_busy: busy,
        gateway_upstream_requests_waiting: waiting,
        gateway_buffered_bytes: memory.bytes,
        gateway_socket_counted_bytes: sockets.bytes,
        gateway_socket_unseen_bytes: sockets.unseenBytes,
        gateway_ledger_waiting_entries: this.#usageWriter.waiting(),
        gateway_ledger_waiting_bytes: this.#usageWriter.waitingBytes(),
        gateway_ledger_lag_seconds: this.#usageWriter.lagMs(this.#unixTime.at(now)) / 1000,
        gateway_log_waiting_lines: this.#accessLog.waiting(),
        gateway_resident_memory_bytes: residentBytes,
        gateway_heap_used_bytes: heapBytes,
      },
      loopDelay,
      targets: this.#health.status(now),
    };
  }

  /** Records an ended call, some time after its end. */
  #note(call: CallRecord): void {
    this.#logCall(call);
    this.#recentCalls.add(call);
    if (call.leftOut.length > 0) this.#recorder.recordLeftOut(call.leftOut, 'request');
    if (call.lostInAnswer.length > 0) this.#recorder.recordLeftOut(call.lostInAnswer, 'answer');
    this.#meter(call);
    if (call.isMetered)
      for (const attempt of call.otherAttempts ?? []) this.#meter(attemptRecord(call, attempt));
  }

  /** Logs a call. A failure to do so must not keep the call out of the ledger. */
  #logCall(call: CallRecord): void {
    try {
      this.#accessLog.add(call, this.#unixTime.at(call.endedAt));
    } catch (fault) {
      this.#noteFault('report', fault, call.id);
    }
  }

  #meter(call: CallRecord): void {
    if (call.endsLater) return;
    // Calls in the ledger are counted in the metrics when their batch is written, which costs a fraction of the time.
    if (!call.isMetered || !this.#usageWriter.add(call, this.#unixTime.at(call.endedAt)))
      this.#recorder.record(call);
  }

  /**
   * Records a correction. It bypasses the writer, whose waiting entries are lost if the process is killed: the caller
   * repeats a correction until it is stored.
   */
  async #correct(correction: CallRecord): Promise<void> {
    const calls = [{ call: correction, at: this.#unixTime.at(correction.endedAt) }];
    const retention = retentionOf(this.#services.running.snapshot.usage);
    const isNew =
      !correction.isMetered ||
      (await appendOnce(this.#store, `correction ${correction.id}`, { calls, record: uncounted, retention }));
    if (isNew) this.#recorder.record(correction);
  }

  #reportKeeping(fault: unknown): void {
    if (fault === null) this.#log.info('the store keeps conversations again');
    else this.#log.warn({ err: fault }, 'the store keeps no conversations: calls are answered without');
  }

  #noteImplausible(id: string | undefined, { target, usage, seconds }: ImplausibleUsage): void {
    this.#recorder.count('gateway_implausible_usage_total', 1, target);
    this.#log.warn(
      { id, target, usage, seconds: seconds === 0 ? undefined : seconds },
      'an upstream reported more than a call can have used: it is not charged, an estimate is',
    );
  }

  /** Counts and logs an unexpected exception. Never throws, so that its caller can continue. */
  #noteFault(where: FaultPlace, fault: unknown, id: string | undefined): void {
    try {
      this.#recorder.count('gateway_faults_total', 1, where);
      this.#log.error(
        { id, where, err: fault },
        id === undefined ? 'internal error' : 'internal error in a call',
      );
    } catch {
      // The exception is counted. Nothing more can be done if the log itself throws.
    }
  }

  /** @returns the port, which matters if 0 was requested */
  listen(host: string, port: number): Promise<number> {
    return this.#server.listen(host, port);
  }

  /**
   * Applies a new config to calls from now on; calls in flight keep theirs. The switch happens as a whole in the last
   * step.
   */
  *swapSteps(snapshot: Snapshot): Steps<void> {
    yield* this.#health.retainSteps(targetsOf(snapshot), snapshot.routing);
    this.#recorder.renewTargets();
    this.#services.running = runningFrom(snapshot, this.#managedKeys, this.#services.running);
    const { trustedProxies: proxies } = snapshot.listen;
    const [words, cors] = [headerWords(snapshot), corsSettings(snapshot)];
    this.#server.set({ words, cors, readsPeers: proxies !== null });
    this.onKeysChanged();
  }

  /** Called when managed keys have changed. Ends the sessions of keys that were revoked. */
  onKeysChanged(): void {
    this.#services.sessions.review(this.#services.running);
  }

  /** Stops accepting connections, and continues to serve those that are open. */
  stopListening(): Promise<void> {
    return this.#server.stopListening();
  }

  /**
   * Stops accepting and resolves when every call has ended.
   * @param graceMs how long requests on idle connections are still served. Default: a moment
   */
  async drain(graceMs?: number): Promise<void> {
    await this.#server.drain(graceMs);
    await this.#services.unattended.ended();
  }

  /** Handles a message from the owner of the host's limits. */
  receiveLease(message: OwnerMessage): void {
    this.#services.limits.receive(message);
  }

  /** Counts and logs an unexpected exception that belongs to no call. Never throws. */
  reportFault(where: FaultPlace, fault: unknown): void {
    this.#noteFault(where, fault, undefined);
  }

  /** Called when the owner of the limits is gone. What is leased may still be used. */
  loseLeases(): void {
    this.#services.limits.disconnect();
  }

  /** Returns the counts since the last `takeMetrics`, and the current gauges. */
  metrics(): CollectedMetrics {
    this.#countAll();
    return this.#recorder.collect();
  }

  /** Returns the same and resets the counts, for a caller that adds them up. */
  takeMetrics(): CollectedMetrics {
    this.#countAll();
    return this.#recorder.take();
  }

  /** Does the same in steps. @returns the metrics in parts that are sent one after the other: see `metricsParts` */
  *takeMetricsSteps(): Steps<readonly CollectedMetrics[]> {
    this.#countAll();
    yield;
    return [...metricsParts(yield* this.#recorder.takeSteps())];
  }

  #countAll(): void {
    this.#recordQueue.flush();
    this.#usageWriter.count();
  }

  /** Lists recent calls, the health of targets and the use of limits. */
  *inspectSteps(): Steps<Inspection> {
    this.#recordQueue.flush();
    this.#unixTime.check();
    const now = performance.now();
    const targets: TargetFacts[] = [];
    for (const target of this.#health.status(now)) {
      targets.push(target);
      yield;
    }
    const inspected = inspectTargets(targets, (agoMs) => this.#unixTime.at(now - agoMs));
    yield;
    const limits = yield* inspectLimits(usedOf(this.#services.limits));
    yield;
    const requests = this.#recentCalls.list();
    // Writing it as a message takes about as long as a slice.
    yield 'end of slice';
    return { requests, targets: inspected, limits };
  }

  /**
   * Ends all calls that are left. Resolves when their records are in the store, or when the ledger has taken `ledgerMs`
   * and the calls in flight `lastEntriesMs`.
   */
  async close(ledgerMs: number = lastEntriesMs): Promise<void> {
    for (const ticker of this.#tickers) clearInterval(ticker);
    this.#ownProcess.close();
    this.#unseen.close();
    this.#storeSweep.stop();
    this.#interruptedSearch.stop();
    this.#services.sessions.shutDown();
    this.#services.detached.close();
    for (const watch of this.#watches) watch.close();
    this.#videoKeeper.close();
    this.#server.close();
    this.#services.limits.close();
    this.#services.upstream.close();
    // Includes the calls that were ended just now.
    this.#recordQueue.flush();
    for (const { record } of this.#services.background.close()) this.#meter(record);
    const lines = this.#accessLog.close();
    const waits = setTimeout(() => {
      const words = { waiting: this.#usageWriter.waiting(), limitMs: ledgerMs };
      this.#log.warn(words, 'waiting until the store accepts the last ledger entries');
    }, lastEntriesMs);
    await this.#usageWriter.close(ledgerMs);
    clearTimeout(waits);
    await this.#services.openCalls.close(lastEntriesMs);
    await this.#store
      .close()
      .catch((error: unknown) => this.#log.error({ err: error }, 'could not close the store'));
    await lines;
  }

  /** Shortens a `close` under way: the ledger may take `lastEntriesMs` from now. */
  hasten(): void {
    void this.#usageWriter.close(lastEntriesMs);
  }
}

function socketLimits({ sockets }: Snapshot): SocketLimits {
  return { messageBytes: sockets.messageBytes, idleSeconds: Math.round(sockets.idleMs / 1000) };
}

function* targetsOf({ models }: Snapshot): Generator<Target, void, undefined> {
  for (const { targets } of models.values()) yield* targets;
}

function* usedOf(limits: LeaseHolder) {
  for (const { name, inUse, inWindow } of limits.units()) yield { name, used: inUse + inWindow };
}

/**
 * Derives what calls need from a config.
 * @param before what was in force until now. Its router is reused if the vendors' words are the same, since building
 * one takes a millisecond
 */
function runningFrom(snapshot: Snapshot, managedKeys: ManagedKeySet, before: Running | null = null): Running {
  const { keys, keyIds, groups, models, vendors } = snapshot;
  const managed = {
    set: managedKeys,
    resolve: createKeyResolver(createKeyShares(groups, models)),
    configIds: keyIds,
  };
  const isServedAlike = before !== null && isDeepStrictEqual(before.snapshot.vendors, vendors);
  const { trustedProxies: proxies } = snapshot.listen;
  return {
    snapshot,
    keys: createKeyTable(keys, managed),
    proxies: proxies === null ? null : trustedProxies(proxies),
    router: isServedAlike ? before.router : routerFor(vendors),
    errorFormatForPath: isServedAlike ? before.errorFormatForPath : createErrorFormatForPath(vendors),
  };
}

function routerFor(vendors: Snapshot['vendors']): Running['router'] {
  return createRouter(
    buildRoutes(vendors).flatMap((route) =>
      servedPaths(route).map((path) => ({ method: route.method, path, value: route })),
    ),
  );
}

/** Returns the settings with which the server reads the heads of requests. */
function headerWords({ vendors, passedHeaders }: Snapshot): HeaderWords {
  return { vendorc: vendors.vendorc, vendorg: vendors.vendorg, passed: passedHeaders };
}

/** Returns null if the config allows no calls from pages of other origins. */
function corsSettings({ listen, vendors, returnedHeaders }: Snapshot): CorsSettings | null {
  if (listen.cors === null) return null;
  return { ...listen.cors, exposed: [...rateHeaderNames(rateWord(vendors)), ...returnedHeaders] };
}

function staleNamesTo(log: Logger): StaleNames {
  return {
    onStale: (name, code) =>
      log.warn({ name, code }, 'cannot resolve the name of an upstream: using its last known addresses'),
    onResolved: (name) => log.info({ name }, 'the name of an upstream resolves again'),
  };
}
