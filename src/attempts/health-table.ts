import type { RoutingSettings, Target, Upstream } from '../config/types.js';
import { TargetHealth, type TargetStatus } from './health.js';

interface Entry {
  readonly health: TargetHealth;
  /** As the config had it that named the target last. */
  upstream: Upstream;
}

/**
 * The health of all targets at one worker. Targets that different models share, and those of a config before and after
 * its reload, are one when their upstream has the same name and place and their model is the same.
 */
export class HealthTable {
  /** Spares the names' concatenation at every call; targets of a config that is gone go with it. */
  readonly #byTarget = new WeakMap<Target, TargetHealth>();
  readonly #byName = new Map<string, Entry>();
  #settings: RoutingSettings;

  constructor(settings: RoutingSettings) {
    this.#settings = settings;
  }

  /** How targets are chosen now. */
  get settings(): RoutingSettings {
    return this.#settings;
  }

  /** The health of a target, the same until `retain` is told otherwise. Allocates only at the first time. */
  of(target: Target): TargetHealth {
    return this.#byTarget.get(target) ?? this.#meet(target);
  }

  #meet(target: Target): TargetHealth {
    const { upstream } = target;
    const name = nameOf(target);
    const entry = this.#byName.get(name);
    const isKnown = entry !== undefined && isSamePlace(entry.upstream, upstream);
    const health = isKnown ? entry.health : this.#make(target);
    this.#byTarget.set(target, health);
    // A call of the config before may ask for a target whose name means another place by now: it stays by itself.
    if (entry === undefined) this.#byName.set(name, { health, upstream });
    return health;
  }

  #make({ upstream, model }: Target): TargetHealth {
    return new TargetHealth(upstream.name, model, this.#settings, upstream.apiKeys);
  }

  /**
   * Forgets all targets but these, and knows these from now on: call it with the targets of every model when a config
   * becomes the running one. A target whose upstream has moved, or has other keys, starts as well, so that a mistake
   * that was put right is not held against it. Calls under way end at the health that they began with.
   */
  retain(targets: Iterable<Target>): void {
    const kept = new Set<string>();
    for (const target of targets) {
      const { upstream } = target;
      const name = nameOf(target);
      kept.add(name);
      let entry = this.#byName.get(name);
      if (entry === undefined || !isSamePlace(entry.upstream, upstream)) {
        entry = { health: this.#make(target), upstream };
        this.#byName.set(name, entry);
      }
      entry.upstream = upstream;
      this.#byTarget.set(target, entry.health);
    }
    for (const name of this.#byName.keys()) if (!kept.has(name)) this.#byName.delete(name);
  }

  /** Other settings hold for every target from now on. */
  setSettings(settings: RoutingSettings): void {
    this.#settings = settings;
    for (const { health } of this.#byName.values()) health.setSettings(settings);
  }

  /**
   * The state of all targets, in the order in which they became known.
   * @param now milliseconds of `performance.now()`
   */
  status(now: number): TargetStatus[] {
    return Array.from(this.#byName.values(), ({ health }) => health.status(now));
  }
}

/** Names of upstreams have no control characters, so no two targets have the same text; with a slash two could. */
function nameOf({ upstream, model }: Target): string {
  return `${upstream.name}\n${model}`;
}

function isSamePlace(a: Upstream, b: Upstream): boolean {
  return (
    a === b ||
    (a.origin.identity === b.origin.identity &&
      a.basePath === b.basePath &&
      a.apiKeys.length === b.apiKeys.length &&
      a.apiKeys.every((key, index) => key === b.apiKeys[index]))
  );
}
