import type { Logger } from 'pino';
import { createKeyShares } from './config/key-shares.js';
import type { Snapshot, Target } from './config/types.js';
import { createSealer } from './conversation/seal.js';
import { createDialectForPath } from './dialects/select.js';
import { createAccessLog } from './flow/access-log.js';
import { factsOf } from './flow/call-facts.js';
import { costOfCall, isMetered } from './flow/consumption.js';
import { EndedCalls } from './flow/ended-calls.js';
import { SessionList } from './flow/realtime/sessions.js';
import { createRecentCalls } from './flow/recent-calls.js';
import { serve } from './flow/serve.js';
import type { Running, Services } from './flow/services.js';
import { createUnattended } from './flow/unattended.js';
import { WatchList } from './flow/watch.js';
import { trustedProxies } from './http/client-address.js';
import { createRouter } from './http/router.js';
import { createServer } from './http/server.js';
import type { SocketLimits } from './http/socket.js';
import { createKeyResolver, type ManagedKeySet } from './keys/key-set.js';
import { createKeyTable } from './keys/table.js';
import { createLedger } from './ledger.js';
import { HostClock } from './limits/clock.js';
import { createLeaseHolder } from './limits/lease-holder.js';
import type { HolderMessage, OwnerMessage } from './limits/messages.js';
import { PoolTable } from './limits/pools.js';
import { type Inspection, inspectTargets } from './metrics/inspection.js';
import { watchProcess } from './metrics/process-gauges.js';
import { createRecorder } from './metrics/recorder.js';
import type { MetricsSnapshot } from './metrics/snapshot.js';
import { UnixTime } from './metrics/unix-time.js';
import { buildRoutes, socketPaths } from './routes.js';
import { TargetChooser } from './routing/choose.js';
import { HealthTable } from './routing/health-table.js';
import { HedgeBudgets } from './routing/hedge-budget.js';
import { createStore } from './store/create.js';
import { createTidy } from './tidy.js';
import { startUpkeep } from './upkeep.js';
import { createUpstreamClient } from './upstream/client.js';
import { createSecureProfiles } from './upstream/secure.js';
import { createTaskBook } from './video/book.js';

/** One worker's gateway. */
export interface Gateway {
  /** @returns the port, which differs from the one asked for when that was 0. */
  listen(host: string, port: number): Promise<number>;
  /** Puts another config in force for the calls to come; calls under way keep theirs. */
  swap(snapshot: Snapshot): void;
  /** The managed keys are not what they were: sessions end whose key is none any more. */
  onKeysChanged(): void;
  /**
   * Stops accepting and resolves when every call has ended.
   * @param graceMs for so long what still comes on idle connections is served; a moment unless given
   */
  drain(graceMs?: number): Promise<void>;
  /** Hears of the limits of this host. */
  receiveLease(message: OwnerMessage): void;
  /** Nobody owns the limits any more: what is leased may be used up. */
  loseLeases(): void;
  /** What was counted since the start, and the numbers of the moment. */
  metrics(): MetricsSnapshot;
  /** The last calls, and how the targets are. */
  inspect(): Inspection;
  /** Cuts what is left, and resolves when what was noted of it is in the store, or after two seconds without that. */
  close(): Promise<void>;
}

export interface GatewayOptions {
  readonly snapshot: Snapshot;
  readonly log: Logger;
  /** Tells whoever owns the limits of this host. Must not throw. */
  readonly sendLease: (message: HolderMessage) => void;
  /** Keys that come and go beside those of the config; none unless given. */
  readonly managedKeys?: ManagedKeySet;
}

const tickMs = 1000;
const leaseTickMs = 100;
/** Longest wait for the last entries of the ledger. */
const lastEntriesMs = 2000;

/** Composes a gateway: the only place that knows every part. */
export function createGateway(options: GatewayOptions): Gateway {
  const { log, managedKeys = null } = options;
  const accessLog = createAccessLog(log);
  const unixTime = new UnixTime();
  const recentCalls = createRecentCalls(unixTime);
  const ownProcess = watchProcess();
  const upstream = createUpstreamClient();
  const store = createStore(options.snapshot.store);
  const book = createTaskBook(store);
  const health = new HealthTable(options.snapshot.routing);
  health.retain(targetsOf(options.snapshot));
  const recorder = createRecorder({
    openRequests: () => server.open() - services.sessions.size,
    openSockets: () => services.sessions.size,
    bufferedBytes: () => services.bufferedBytes,
    ledgerWaiting: () => ledger.waiting(),
    upstream: () => upstream.stats(),
    targets: () => health.status(performance.now()),
    process: () => ownProcess.read(),
  });
  const hostClock = new HostClock();
  const limits = createLeaseHolder({ now: () => hostClock.now(), send: options.sendLease });
  const ledger = createLedger({ store, settings: () => services.running.snapshot.usage, recorder, log });
  const ended = new EndedCalls((call) => {
    recentCalls.add(call);
    // What goes to the ledger is counted from there, many calls at once: that takes a fraction of the time.
    if (!isMetered(call) || !ledger.add(call, unixTime.at(call.endedAt), costOfCall(call))) {
      recorder.record(factsOf(call));
    }
  });
  const services: Services = {
    running: runningFrom(options.snapshot, managedKeys),
    upstream,
    secureProfiles: createSecureProfiles(),
    sessions: new SessionList(),
    book,
    report: (call) => {
      accessLog.add(call);
      ended.add(call);
    },
    reportFault: (call, fault) =>
      log.error({ id: call.exchange.id, err: fault }, 'a call failed by our own fault'),
    health,
    chooser: new TargetChooser(health, Math.random),
    hedges: new HedgeBudgets(),
    attempts: recorder,
    limits,
    hostClock,
    reportLimit: recorder.recordLimitRefusal,
    watched: new WatchList(),
    bufferedBytes: 0,
    unattended: createUnattended(),
  };
  const server = createServer({
    words: options.snapshot.vendors,
    cors: options.snapshot.listen.cors,
    readsPeers: options.snapshot.listen.trustedProxies !== null,
    tls: options.snapshot.listen.tls,
    sockets: { paths: socketPaths, limits: socketLimits(options.snapshot) },
    onRequest: (exchange) => serve(services, exchange),
  });
  const tidy = createTidy(() => server.served());
  const ticker = setInterval(() => {
    tidy();
    unixTime.check();
    const now = performance.now();
    services.watched.tick(now);
  }, tickMs);
  ticker.unref();
  const leaseTicker = setInterval(() => {
    limits.tick();
    ended.flush();
  }, leaseTickMs).unref();
  const upkeep = startUpkeep({
    settings: options.snapshot.store,
    store,
    book,
    log,
  });

  return {
    listen: (host, port) => server.listen(host, port),
    swap: (snapshot) => {
      services.running = runningFrom(snapshot, managedKeys);
      health.setSettings(snapshot.routing);
      health.retain(targetsOf(snapshot));
      const { cors, trustedProxies: proxies } = snapshot.listen;
      server.set({ words: snapshot.vendors, cors, readsPeers: proxies !== null });
    },
    onKeysChanged: () => services.sessions.onKeysChanged(),
    drain: async (graceMs) => {
      services.sessions.drain();
      await server.drain(graceMs);
      await services.unattended.ended();
    },
    receiveLease: (message) => limits.receive(message),
    loseLeases: () => limits.disconnect(),
    metrics: () => {
      ended.flush();
      ledger.count();
      return recorder.snapshot();
    },
    inspect: () => {
      ended.flush();
      unixTime.check();
      const now = performance.now();
      return {
        requests: recentCalls.list(),
        targets: inspectTargets(health.status(now), (agoMs) => unixTime.at(now - agoMs)),
      };
    },
    close: async () => {
      clearInterval(ticker);
      clearInterval(leaseTicker);
      ownProcess.close();
      upkeep.stop();
      services.sessions.shutDown();
      server.close();
      limits.close();
      upstream.close();
      // With the lines of the calls that were cut just now.
      accessLog.close();
      ended.flush();
      await ledger.close(lastEntriesMs);
      await store.close().catch((error: unknown) => log.error({ err: error }, 'the store did not close'));
    },
  };
}

/** Messages beyond the limit are told so up to twice its size; uWS cuts the connection at larger ones without a word. */
function socketLimits({ sockets }: Snapshot): SocketLimits {
  return { messageBytes: 2 * sockets.messageBytes, idleSeconds: Math.round(sockets.idleMs / 1000) };
}

function targetsOf({ models }: Snapshot): readonly Target[] {
  return [...models.values()].flatMap((model) => model.targets);
}

function runningFrom(snapshot: Snapshot, managedKeys: ManagedKeySet | null): Running {
  const { keys, groups, models } = snapshot;
  const managed = managedKeys && {
    set: managedKeys,
    resolve: createKeyResolver(createKeyShares(groups, models)),
  };
  const routes = buildRoutes(snapshot.vendors);
  const { trustedProxies: proxies } = snapshot.listen;
  return {
    snapshot,
    keys: createKeyTable(keys, managed),
    router: createRouter(routes.map((route) => ({ method: route.method, path: route.path, value: route }))),
    proxies: proxies === null ? null : trustedProxies(proxies),
    sealer: createSealer(snapshot.secret),
    pools: new PoolTable(),
    dialectForPath: createDialectForPath(snapshot.vendors),
  };
}
