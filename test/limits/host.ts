import type { Decision } from '../../src/limits/admission.js';
import type { HeldUnits } from '../../src/limits/held-pool.js';
import { LeaseHolder } from '../../src/limits/lease-holder.js';
import type { HolderMessage, OwnerMessage } from '../../src/limits/lease-messages.js';
import { type Pool, sliceOf } from '../../src/limits/pool.js';
import { type OwnedUnits, PoolOwner } from '../../src/limits/pool-owner.js';
import { type ShareSource, unsharedSource } from '../../src/limits/share-source.js';
import { atOnce } from '../../src/wire/steps.js';
import { SimulatedTime } from './time.js';

/** What the primary knows of its pools; see `PoolOwner.inspectSteps`. */
export function ownedUnits(owner: PoolOwner, names: Iterable<string> = []): OwnedUnits[] {
  return atOnce(owner.inspectSteps(names));
}

/** The pools of which a worker has used anything lately, or has other units than its slice. */
export function heldUnits(holder: LeaseHolder): HeldUnits[] {
  return [...holder.units()].filter(({ isIdle }) => !isIdle);
}

/** A worker of the simulated host. */
export interface SimulatedWorker {
  readonly id: number;
  readonly holder: LeaseHolder;
  /** Of its slices. */
  sliceDivisor: number;
  isAlive: boolean;
  /** Its event loop does not turn: messages wait. */
  stalledUntil: number;
  /** Units that are on the way to it, or come from it, by pool. */
  readonly inFlight: Map<string, number>;
  /** When the last message of each direction arrives: none overtakes another. */
  arrivesThere: number;
  arrivesHere: number;
}

interface HostOptions {
  readonly pools: readonly Pool[];
  /** Milliseconds that the next message is on its way; 1 unless given. */
  readonly delay?: () => number;
  /**
   * False: whether units add up is not looked at after each event. That takes long where there are many pools, and they
   * do not while workers hear of a limit that has changed.
   */
  readonly looks?: boolean;
  /** What else is looked at after each event. */
  readonly afterEach?: () => void;
  readonly maxWaiting?: number;
  /** What becomes of calls that the primary does not answer in time; `closed` unless given. */
  readonly outageRates?: 'open' | 'closed';
  /** That of other hosts, too; one of its own unless given. */
  readonly time?: SimulatedTime;
  /** Where its units come from. */
  readonly shares?: ShareSource;
  /** See the options of `PoolOwner`: workers have slices of their pools. */
  readonly sliceDivisor?: number;
}

/** Starts a host with that many workers. */
export function startHost(
  count: number,
  options: HostOptions,
): { readonly host: SimulatedHost; readonly workers: SimulatedWorker[] } {
  const host = new SimulatedHost(options);
  return { host, workers: Array.from({ length: count }, () => host.start()) };
}

/** Offers a worker so many calls. @returns what becomes of them, with what time that takes */
export function offer(
  host: SimulatedHost,
  { holder }: SimulatedWorker,
  pool: Pool,
  count: number,
): Decision[] {
  const decisions: Decision[] = [];
  for (let i = 0; i < count; i++) {
    const result = holder.acquire([{ pool, amount: 1 }], (decision) => decisions.push(decision));
    if (result.outcome !== 'pending') decisions.push(result);
  }
  host.advance(400);
  return decisions;
}

/** How many calls were admitted. */
export function admitted(decisions: readonly Decision[]): number {
  return decisions.filter(({ outcome }) => outcome === 'admitted').length;
}

/** One primary and its workers in a time of their own: whatever happens, happens in a fixed order. Units that do not add up throw. */
export class SimulatedHost {
  readonly pools: Map<string, Pool>;
  readonly owner: PoolOwner;
  readonly workers: SimulatedWorker[] = [];
  readonly sent: (HolderMessage | OwnerMessage)[] = [];
  /** Units that were overdrawn, with the time. */
  readonly overdrafts: { readonly pool: string; readonly at: number; readonly amount: number }[] = [];
  /** Of the slices of the next worker: see the options of `PoolOwner`. */
  sliceDivisor: number;
  readonly #options: HostOptions;
  readonly #delay: () => number;
  readonly #time: SimulatedTime;
  #isStopped = false;
  #ids = 0;

  constructor(options: HostOptions) {
    this.#options = options;
    this.#delay = options.delay ?? (() => 1);
    this.#time = options.time ?? new SimulatedTime();
    this.pools = new Map(options.pools.map((pool) => [pool.name, pool]));
    const { shares = unsharedSource, sliceDivisor = 0 } = options;
    this.sliceDivisor = sliceDivisor;
    this.owner = new PoolOwner({
      now: () => this.now,
      poolOf: (name) => this.pools.get(name),
      shares,
      sliceDivisor: () => this.sliceDivisor,
    });
    this.#everyTick(() => this.owner.tick());
  }

  start(): SimulatedWorker {
    const id = ++this.#ids;
    const worker: SimulatedWorker = {
      id,
      holder: new LeaseHolder({
        now: () => this.now,
        send: (message) => this.#fromWorker(worker, message),
        defer: (run) => run(),
        maxWaiting: this.#options.maxWaiting,
        outageRates: () => this.#options.outageRates ?? 'closed',
      }),
      sliceDivisor: 0,
      isAlive: true,
      stalledUntil: 0,
      inFlight: new Map(),
      arrivesThere: 0,
      arrivesHere: 0,
    };
    this.workers.push(worker);
    let isJoining = true;
    atOnce(
      this.owner.joinSteps(id, (message) => {
        if (message.slices !== undefined) worker.sliceDivisor = message.slices.sliceDivisor;
        // It knows of its slices, and of the pools in which it has none, before its first call.
        if (isJoining) worker.holder.receive(structuredClone(message));
        else this.#toWorker(worker, message);
      }),
    );
    isJoining = false;
    this.#everyTick(() => worker.holder.tick(), worker);
    return worker;
  }

  /** Ends a worker without a word; the primary learns of it a little later. */
  kill(worker: SimulatedWorker): void {
    worker.isAlive = false;
    this.workers.splice(this.workers.indexOf(worker), 1);
    this.at(this.now + this.#delay(), () => atOnce(this.owner.goneSteps(worker.id)));
  }

  /** Ends the host and all of its workers without a word. */
  stop(): void {
    this.#isStopped = true;
    for (const worker of this.workers.splice(0)) worker.isAlive = false;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  get now(): number {
    return this.#time.now;
  }

  at(at: number, run: () => void): void {
    this.#time.at(at, () => {
      if (this.#isStopped) return;
      run();
      const fault = this.#options.looks === false ? null : this.fault();
      if (fault !== null) throw new Error(fault);
      this.#options.afterEach?.();
    });
  }

  /** Lets time pass. */
  advance(ms: number): void {
    this.#time.advance(ms);
  }

  /** What does not add up at this moment, or null. */
  fault(): string | null {
    const owned = new Map<string, OwnedUnits>();
    for (const units of ownedUnits(this.owner)) {
      const { name, kind, free, inWindow, leased, share } = units;
      owned.set(name, units);
      if (share < 0 && kind !== 'budget') return `${name}: the share is ${share}`;
      let sum = free + inWindow;
      for (const amount of leased.values()) {
        if (amount <= 0) return `${name}: leases nothing`;
        sum += amount;
      }
      if (sum !== share)
        return `${name}: free, in the window ${inWindow} and leased make ${sum}, not ${share}`;
    }
    for (const { id, holder, inFlight, sliceDivisor } of this.workers) {
      const held = new Map<string, HeldUnits>();
      for (const units of holder.units()) if (!units.isIdle) held.set(units.name, units);
      for (const [name, pool] of this.pools) {
        const units = held.get(name);
        const ownedUnits = owned.get(name);
        const slice = sliceOf(pool, sliceDivisor);
        const leased = ownedUnits === undefined ? slice : (ownedUnits.leased.get(id) ?? 0);
        const known = (units?.leased ?? slice) + (inFlight.get(name) ?? 0);
        if (leased !== known) return `${name}: worker ${id} is leased ${leased}, and has ${known}`;
        if (units === undefined) continue;
        const { available, inUse, spent, inWindow } = units;
        if (available < 0 || inUse < 0 || inWindow < 0) return `${name}: worker ${id} has less than nothing`;
        if (available + inUse + spent + inWindow !== units.leased) return `${name}: worker ${id} lost some`;
      }
    }
    return null;
  }

  #everyTick(tick: () => void, worker?: SimulatedWorker): void {
    this.at(this.now + 100, () => {
      if (worker?.isAlive === false) return;
      if (worker === undefined || this.now >= worker.stalledUntil) tick();
      this.#everyTick(tick, worker);
    });
  }

  #fromWorker(worker: SimulatedWorker, message: HolderMessage): void {
    this.sent.push(message);
    const units = unitsFrom(message);
    for (const each of message.overdrafts ?? []) this.overdrafts.push({ ...each, at: this.now });
    for (const { pool, amount } of units) {
      add(worker.inFlight, pool, amount);
    }
    worker.arrivesHere = Math.max(worker.arrivesHere, this.now + this.#delay());
    this.at(worker.arrivesHere, () => {
      for (const { pool, amount } of units) add(worker.inFlight, pool, -amount);
      this.owner.receive(worker.id, structuredClone(message));
    });
  }

  #toWorker(worker: SimulatedWorker, message: OwnerMessage): void {
    this.sent.push(message);
    const granted = message.answers ?? [];
    for (const answer of granted) add(worker.inFlight, answer.pool, answer.granted);
    const arrive = () => {
      if (!worker.isAlive) return;
      if (this.now < worker.stalledUntil) {
        worker.arrivesThere = Math.max(worker.arrivesThere, worker.stalledUntil);
        this.at(worker.stalledUntil, arrive);
        return;
      }
      for (const answer of granted) add(worker.inFlight, answer.pool, -answer.granted);
      worker.holder.receive(structuredClone(message));
    };
    worker.arrivesThere = Math.max(worker.arrivesThere, this.now + this.#delay(), worker.stalledUntil);
    this.at(worker.arrivesThere, arrive);
  }
}

/** Units that leave a worker with a message; below zero for those that it takes. */
function unitsFrom({ returns = [], spent = [], recalled = [], overdrafts = [] }: HolderMessage): {
  readonly pool: string;
  readonly amount: number;
}[] {
  return [
    ...returns,
    ...spent,
    ...recalled,
    ...overdrafts.map(({ pool, amount }) => ({ pool, amount: -amount })),
  ];
}

function add(sums: Map<string, number>, name: string, amount: number): void {
  sums.set(name, (sums.get(name) ?? 0) + amount);
}
