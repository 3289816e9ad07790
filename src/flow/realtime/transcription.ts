import type { Model, Price, Snapshot } from '../../config/types.js';
import type { Usage } from '../../conversation/usage.js';
import { addUsage } from '../../conversation/usage.js';
import type { GatewayError } from '../../errors.js';
import { costOf, isFree } from '../../usage/cost.js';
import { memberError } from '../../wire/reading.js';
import type { RoutedCall } from '../call.js';
import { type Consumption, factorOf } from '../record/consumption.js';

/*
 * The input of a session is transcribed by another model, which the client names in `session.update`. If the config has
 * that model, the key must be allowed to use it, and its price is charged for the transcripts. Any other name is the
 * upstream's own, whose transcripts are charged at the price of the session's model.
 */

/** The models of a config by an upstream and a name there, with a NUL between them. */
const knownNames = new WeakMap<Snapshot, ReadonlyMap<string, readonly Model[]>>();

function namesOf(snapshot: Snapshot): ReadonlyMap<string, readonly Model[]> {
  const known = knownNames.get(snapshot);
  if (known !== undefined) return known;
  const names = new Map<string, Model[]>();
  for (const model of snapshot.models.values()) {
    for (const { upstream, model: name } of model.targets) {
      const place = `${upstream.name}\0${name}`;
      const models = names.get(place);
      if (models === undefined) names.set(place, [model]);
      else models.push(model);
    }
  }
  knownNames.set(snapshot, names);
  return names;
}

/** The model that transcribes the input of a session. */
export class Transcription {
  readonly #call: RoutedCall;
  /** Null if the client has named none, or one that is not in the config. */
  #model: Model | null = null;

  constructor(call: RoutedCall) {
    this.#call = call;
  }

  /** The model whose tokens a transcript counts. */
  get model(): Model {
    return this.#model ?? this.#call.model;
  }

  /**
   * Called with the name in a client's event.
   * @returns the upstream's name of the model, or the error for a model that the key may not use
   */
  name(name: string): string | GatewayError {
    const { key, running, target } = this.#call;
    const { upstream } = target;
    const named = running.snapshot.models.get(name);
    const alike = namesOf(running.snapshot).get(`${upstream.name}\0${name}`) ?? [];
    const models = named === undefined ? alike : [named, ...alike];
    const allowed = models.find((model) => key.models.has(model.name)) ?? null;
    if (models.length > 0 && allowed === null) return notOpen(name);
    this.#model = allowed;
    const there = allowed?.targets.find((each) => each.upstream.name === upstream.name);
    return allowed?.name === name && there !== undefined ? there.model : name;
  }

  /**
   * Charges a transcript at the price of its model.
   * @returns false if that has no price for it: the transcript counts as a part of the session
   */
  charge(usage: Usage | null, seconds: number): boolean {
    const model = this.#model;
    if (model === null || model.price === null) return false;
    const call: Consumption = this.#call;
    const consumption = { usage, seconds, calls: 1 };
    const cost = costOf(model.price, consumption, factorOf(call));
    if (cost === 0 && !isFree(model.price) && factorOf(call) > 0) return false;
    const { upstream } = this.#call.target;
    const paid = paidFor(
      model.targets.find((each) => each.upstream.name === upstream.name)?.cost,
      consumption,
    );
    const before = call.beside;
    call.beside = {
      usage: usage === null ? (before?.usage ?? null) : addUsage(before?.usage ?? null, usage),
      seconds: (before?.seconds ?? 0) + seconds,
      costNanos: (before?.costNanos ?? 0) + cost,
      paidNanos: paid === null || before?.paidNanos === null ? null : (before?.paidNanos ?? 0) + paid,
    };
    return true;
  }
}

function paidFor(cost: Price | null | undefined, consumption: Parameters<typeof costOf>[1]): number | null {
  return cost == null ? null : costOf(cost, consumption);
}

function notOpen(name: string): GatewayError {
  const shown = name.length > 200 ? `${name.slice(0, 200)}…` : name;
  return memberError(
    'invalid_value',
    'session.audio.input.transcription.model',
    `The model '${shown}', which is to transcribe the input, is not open to your key: name one that GET /v1/models lists.`,
  );
}
