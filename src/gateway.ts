import type { Logger } from 'pino';
import type { Snapshot, Target } from './config/types.js';
import { createSealer } from './conversation/seal.js';
import { createDialectForPath } from './dialects/select.js';
import { createAccessLog } from './flow/access-log.js';
import { factsOf } from './flow/call-facts.js';
import { SessionList } from './flow/realtime/sessions.js';
import { serve } from './flow/serve.js';
import type { Running, Services } from './flow/services.js';
import { createUnattended } from './flow/unattended.js';
import { WatchList } from './flow/watch.js';
import { trustedProxies } from './http/client-address.js';
import { createRouter } from './http/router.js';
import { createServer } from './http/server.js';
import type { SocketLimits } from './http/socket.js';
import { createKeyTable } from './keys/table.js';
import { watchProcess } from './metrics/process-gauges.js';
import { createRecorder } from './metrics/recorder.js';
import type { MetricsSnapshot } from './metrics/snapshot.js';
import { buildRoutes, socketPaths } from './routes.js';
import { TargetChooser } from './routing/choose.js';
import { HealthTable } from './routing/health-table.js';
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
  /**
   * Stops accepting and resolves when every call has ended.
   * @param graceMs for so long what still comes on idle connections is served; a moment unless given
   */
  drain(graceMs?: number): Promise<void>;
  /** What was counted since the start, and the numbers of the moment. */
  metrics(): MetricsSnapshot;
  /** Cuts what is left. */
  close(): void;
}

const tickMs = 1000;

/** Composes a gateway: the only place that knows every part. */
export function createGateway(options: { readonly snapshot: Snapshot; readonly log: Logger }): Gateway {
  const { log } = options;
  const accessLog = createAccessLog(log);
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
    upstream: () => upstream.stats(),
    targets: () => health.status(performance.now()),
    process: () => ownProcess.read(),
  });
  const services: Services = {
    running: runningFrom(options.snapshot),
    upstream,
    secureProfiles: createSecureProfiles(),
    sessions: new SessionList(),
    book,
    report: (call) => {
      accessLog.add(call);
      recorder.record(factsOf(call));
    },
    reportFault: (call, fault) =>
      log.error({ id: call.exchange.id, err: fault }, 'a call failed by our own fault'),
    health,
    chooser: new TargetChooser(health, Math.random),
    attempts: recorder,
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
    const now = performance.now();
    services.watched.tick(now);
  }, tickMs);
  ticker.unref();
  const upkeep = startUpkeep({
    settings: options.snapshot.store,
    store,
    book,
    log,
  });

  return {
    listen: (host, port) => server.listen(host, port),
    swap: (snapshot) => {
      services.running = runningFrom(snapshot);
      health.setSettings(snapshot.routing);
      health.retain(targetsOf(snapshot));
      const { cors, trustedProxies: proxies } = snapshot.listen;
      server.set({ words: snapshot.vendors, cors, readsPeers: proxies !== null });
    },
    drain: async (graceMs) => {
      services.sessions.drain();
      await server.drain(graceMs);
      await services.unattended.ended();
    },
    metrics: () => recorder.snapshot(),
    close: () => {
      clearInterval(ticker);
      ownProcess.close();
      upkeep.stop();
      services.sessions.shutDown();
      server.close();
      upstream.close();
      store.close().catch((error: unknown) => log.error({ err: error }, 'the store did not close'));
      // Last, for the lines of the calls that were cut just now.
      accessLog.close();
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

function runningFrom(snapshot: Snapshot): Running {
  const routes = buildRoutes(snapshot.vendors);
  const { trustedProxies: proxies } = snapshot.listen;
  return {
    snapshot,
    keys: createKeyTable(snapshot.keys),
    router: createRouter(routes.map((route) => ({ method: route.method, path: route.path, value: route }))),
    proxies: proxies === null ? null : trustedProxies(proxies),
    sealer: createSealer(snapshot.secret),
    dialectForPath: createDialectForPath(snapshot.vendors),
  };
}
