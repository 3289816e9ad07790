import type { Key, Model, Price, Snapshot, Target, Upstream } from '../config/types.js';
import { GatewayError, shortened } from '../errors.js';
import { entryOf } from '../wire/entry-of.js';

/*
 * A call may name another model for a part of its work: one that transcribes the input of a session, writes an SVG, or runs a
 * tool. A key cannot use a model of the config in this way that it could not call. Names that the config does not have are the
 * upstream's own.
 */

/** The models that a name may stand for. */
interface Named {
  /** Those whose targets at an upstream have the name, by the name of the upstream. */
  readonly there: Map<string, Set<Model>>;
  /** Those that have it in the config. */
  readonly here: Set<Model>;
}

interface KnownNames {
  readonly exact: ReadonlyMap<string, Named>;
  /** The same by `folded` names. */
  readonly folded: ReadonlyMap<string, Named>;
}

const knownNames = new WeakMap<Snapshot, KnownNames>();

function namesOf(snapshot: Snapshot): KnownNames {
  const known = knownNames.get(snapshot);
  if (known !== undefined) return known;
  const exact = new Map<string, Named>();
  const alike = new Map<string, Named>();
  const add = (name: string, model: Model, upstream: Upstream | null): void => {
    for (const { there, here } of [entryOf(exact, name, noneNamed), entryOf(alike, folded(name), noneNamed)])
      (upstream === null ? here : entryOf(there, upstream.name, () => new Set<Model>())).add(model);
  };
  for (const model of snapshot.models.values()) {
    add(model.name, model, null);
    for (const target of model.targets) add(target.model, model, target.upstream);
  }
  const names = { exact, folded: alike };
  knownNames.set(snapshot, names);
  return names;
}

function noneNamed(): Named {
  return { there: new Map(), here: new Set() };
}

/**
 * Returns a form in which names that may stand for the same model are alike: without case, and without the `~` of
 * OpenRouter's aliases (https://openrouter.ai/docs/guides/routing/model-variants/overview).
 */
function folded(name: string): string {
  return (name.startsWith('~') ? name.slice(1) : name).toLowerCase();
}

/** Returns a folded name without a variant. OpenRouter takes one after any name, such as `:nitro`. */
function withoutVariant(name: string): string {
  const colon = name.lastIndexOf(':');
  return colon === -1 ? name : name.slice(0, colon);
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
  call: NamingCall,
): string | GatewayError {
  const { key, upstream } = call;
  const own = key.models.get(name)?.targets.find((target) => target.upstream.name === upstream.name);
  return own?.model ?? closedModelError(name, at, part, call) ?? name;
}

/**
 * Judges a name that is sent on as it is.
 * @returns the error for a model that the key may not use; null if it may, or if the name is the upstream's own
 */
export function closedModelError(
  name: string,
  at: string,
  part: InnerPart,
  { snapshot, key, upstream }: NamingCall,
): GatewayError | null {
  const names = namesOf(snapshot);
  const isOpen = (model: Model): boolean => key.models.has(model.name);
  const same = calledSo(names.exact.get(name), upstream);
  if (same.length > 0) return same.some(isOpen) ? null : notOpen(name, at, part);
  // The upstream may take the spelling for any of these.
  const spelling = folded(name);
  const alike = [spelling, withoutVariant(spelling)].flatMap((each) =>
    calledSo(names.folded.get(each), upstream),
  );
  return alike.every(isOpen) ? null : notOpen(name, at, part);
}

/**
 * Returns the models that a name stands for at an upstream: those that it has by this name, else those of the config. What
 * a target at another upstream is called there says nothing of this one.
 */
function calledSo(named: Named | undefined, upstream: Upstream): readonly Model[] {
  return named === undefined ? [] : [...(named.there.get(upstream.name) ?? named.here)];
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
  for (const model of namesOf(snapshot).exact.get(name)?.there.get(upstream.name) ?? []) {
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
