import type { Key, Model, Price, Snapshot, Target, Upstream } from '../config/types.js';
import { GatewayError, shortened } from '../errors.js';

/*
 * A call may name another model for a part of its work: one that transcribes the input of a session, writes an SVG, or runs a
 * tool. A key cannot use a model of the config in this way that it could not call. Names that the config does not have are the
 * upstream's own.
 */

/** The models of a config by their names and those of their targets. */
const knownNames = new WeakMap<Snapshot, ReadonlyMap<string, ReadonlySet<Model>>>();

function namesOf(snapshot: Snapshot): ReadonlyMap<string, ReadonlySet<Model>> {
  const known = knownNames.get(snapshot);
  if (known !== undefined) return known;
  const names = new Map<string, Set<Model>>();
  const add = (name: string, model: Model): void => {
    const models = names.get(name);
    if (models === undefined) names.set(name, new Set([model]));
    else models.add(model);
  };
  for (const model of snapshot.models.values()) {
    add(model.name, model);
    for (const target of model.targets) add(target.model, model);
  }
  knownNames.set(snapshot, names);
  return names;
}

interface NamingCall {
  readonly snapshot: Snapshot;
  readonly key: Key;
  /** The upstream of the call. */
  readonly upstream: Upstream;
}

type InnerPart = 'transcribe the input' | 'write the SVG' | 'run a tool';

/**
 * Judges the name of the model for a part of a call.
 * @param at path of the name in the body or event
 * @param part what the model is to do, for the message
 * @returns the upstream's name of it, or the error for a model that the key may not use
 */
export function innerModel(
  name: string,
  at: string,
  part: InnerPart,
  { snapshot, key, upstream }: NamingCall,
): string | GatewayError {
  const own = key.models.get(name)?.targets.find((target) => target.upstream.name === upstream.name);
  if (own !== undefined) return own.model;
  const alike = [...(namesOf(snapshot).get(name) ?? [])];
  const here = alike.filter(({ targets }) =>
    targets.some((target) => target.upstream.name === upstream.name && target.model === name),
  );
  // What a target at another upstream is called there says nothing of this one.
  const models = here.length > 0 ? here : alike.filter((model) => model.name === name);
  return models.length === 0 || models.some((model) => key.models.has(model.name))
    ? name
    : notOpen(name, at, part);
}

interface PricedModel {
  readonly model: Model;
  readonly target: Target;
  readonly price: Price;
}

/**
 * Finds the model of the config whose price a transcript has.
 * @param name the upstream's name of the model that has made it
 * @returns null if the config has no such model at the upstream of the session, or no price of it: the transcript then
 * costs as much as the session's own model
 */
export function pricedModel(name: string, { snapshot, key, upstream }: NamingCall): PricedModel | null {
  let found: PricedModel | null = null;
  for (const model of namesOf(snapshot).get(name) ?? []) {
    const target = model.targets.find((each) => each.upstream.name === upstream.name && each.model === name);
    const { price } = model;
    if (target === undefined || price === null) continue;
    // Of several, the one by which the key may have named it.
    if (key.models.has(model.name)) return { model, target, price };
    found ??= { model, target, price };
  }
  return found;
}

function notOpen(name: string, at: string, part: string): GatewayError {
  return new GatewayError(
    'model_not_found',
    `The model '${shortened(name, 200)}', which is to ${part}, is not open to your key: name one that GET /v1/models lists.`,
    { param: at },
  );
}
