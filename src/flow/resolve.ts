import { performance } from 'node:perf_hooks';
import { affinityBytes, hashBytes, ownerHash } from '../attempts/affinity.js';
import { AttemptPlan } from '../attempts/attempts.js';
import { anyTarget, parseTargetFilter, type RouteRequest, type TargetFilter } from '../attempts/choose.js';
import type { Protocol, Target } from '../config/types.js';
import { GatewayError, retrySeconds, shortened } from '../errors.js';
import { findBillingLine } from '../protocols/messages/billing-line.js';
import { bareName } from '../protocols/model-path.js';
import { parseJson } from '../wire/json.js';
import { scanBody } from '../wire/json-scan.js';
import type { SteeringMember } from '../wire/routed-members.js';
import { spliceBody } from '../wire/splice.js';
import type { AuthenticatedCall, Call, ResolvedCall, RoutedCall } from './call.js';
import { keepsTurns } from './conversation/keep.js';
import type { Services } from './services.js';
import { keyMark } from './upstream/key-mark.js';

/**
 * Finds the model of a call: the one in its path or body, or the config's model for calls that name none.
 * @throws {GatewayError} `model_not_found` if the key's groups do not open the model or the protocol does not offer it. Both
 * look the same, so that a key learns nothing about models that it may not use. `missing_parameter` if no model is named
 */
export function resolveModel(call: AuthenticatedCall, protocol: Protocol): ResolvedCall {
  return findModel(call, protocol, nameOf(call, protocol));
}

/** Finds the model of a name that was read from a body already. */
export function findModel(call: AuthenticatedCall, protocol: Protocol, name: string): ResolvedCall {
  if (name === '')
    throw new GatewayError('missing_parameter', `Missing required parameter: 'model'.`, { param: 'model' });
  const model = call.key.models.get(name);
  if (model?.protocols.has(protocol)) {
    // Throws if the call may be sent to no target.
    targetsAllowing(call, model.targets);
    const found: Call = call;
    found.model = model;
    return found as ResolvedCall;
  }
  throw new GatewayError(
    'model_not_found',
    `The model '${shortened(name, 200)}' does not exist, is not offered in this protocol, or is not open to your key. ` +
      'GET /v1/models lists what is.',
    { param: 'model' },
  );
}

/**
 * Writes the model in the path into a body, in place of any model that the body names.
 * @throws {GatewayError} with status 400 if the body is no JSON object
 */
export function writePathModel(call: Call): void {
  const { model = null } = call.params;
  if (model === null) return;
  const body = call.wholeBody();
  const scan = scanBody(body);
  const named = scan.model && body.toString('utf8', scan.model.start, scan.model.end);
  if (named === JSON.stringify(model)) return;
  // Invalid JSON in this place is left to the validation.
  if (named !== null && parseJson(named) === undefined) return;
  call.body = Buffer.concat(spliceBody(body, scan, { model, includeUsage: false }));
}

/** Refuses a body that names another model than its path, if the body is passed on unchanged: an upstream may use either. */
export function requirePathModel(call: Call): void {
  const { params } = call;
  const body = call.wholeBody();
  const { model, members } = call.checkedBody();
  const inner = members.noted.map(({ start, end, path }) => ({ name: textAt(body, start, end), at: path }));
  for (const { name, at } of [{ name: model, at: 'model' }, ...inner]) {
    if (name === '' || bareName(name) === bareName(params.model ?? '')) continue;
    throw new GatewayError(
      'invalid_request_body',
      `The path names the model '${shortened(params.model ?? '', 200)}' and '${at}' of the body '${shortened(name, 200)}', ` +
        'and upstreams differ on which one counts: leave out that of the body.',
      { param: at },
    );
  }
}

/** Returns a string of the body; empty for null, which names no model. */
function textAt(body: Buffer, start: number, end: number): string {
  const value: unknown = JSON.parse(body.toString('utf8', start, end));
  return typeof value === 'string' ? value : '';
}

function nameOf(call: Call, protocol: Protocol): string {
  const { model } = call.params;
  if (model !== undefined) return bareName(model);
  const named = call.checkedBody().model;
  return named === '' ? (call.running.snapshot.defaultModels[protocol] ?? '') : named;
}

/**
 * Shorter bodies gain nothing from a prompt cache. They also grow within the hashed part with each turn, so that each turn
 * would reach another target.
 */
const leastBytes = 2048;

/**
 * Chooses and orders the targets to try for a call, and adds the call to those that may become long (`openCalls`).
 * @throws {GatewayError} `overloaded` if no target may be tried now; status 400 or 403 if the call's demands exclude all
 * targets
 */
export function routeCall(services: Services, call: ResolvedCall, all: readonly Target[]): AttemptPlan {
  services.openCalls.add(call);
  const targets = targetsThatKnow(call, targetsAllowing(call, all));
  const targetFilter = targetFilterOf(call);
  call.affinity = affinityOf(call, targets);
  // A single target is tried whatever its health: its own answer tells the client more.
  if (targets.length === 1 && targetFilter === null) return planAt(services, call, targets, call.validatedAt);
  const request: RouteRequest =
    targetFilter === null && call.affinity === null ? anyTarget : { affinity: call.affinity, targetFilter };
  const now = performance.now();
  const chosen = services.chooser.choose(targets, request, now);
  if (chosen.length > 0) return planAt(services, call, chosen, now);
  const at = services.chooser.retryAt(targets, request, now);
  if (at === Number.POSITIVE_INFINITY)
    throw new GatewayError(
      'invalid_value',
      'The model has no target that matches x-gateway-target.',
      atHeader,
    );
  throw new GatewayError('overloaded', 'No upstream of this model is available at the moment.', {
    retryAfter: retrySeconds(at - now),
  });
}

/**
 * Returns the targets that can know the turn that a call continues from: the target that holds it, or all that keep turns if
 * the holder is unknown.
 * @throws {GatewayError} if none of them is left
 */
function targetsThatKnow(call: ResolvedCall, targets: readonly Target[]): readonly Target[] {
  const { recalled, route } = call;
  if (recalled === null || recalled.unfound === null) return targets;
  const { holder, isBeside } = recalled;
  const { endpoint } = route;
  const left = targets.filter(
    (target) =>
      endpoint !== null &&
      (isBeside ? target.native.has(endpoint.protocol) : keepsTurns(target, endpoint)) &&
      (holder === null || (target.upstream.name === holder.upstream && target.model === holder.model)),
  );
  if (left.length === 0) throw recalled.unfound;
  return left;
}

/** Returns the index of the upstream's key that made the turn that the call continues from; null if any key will do. */
function holdingKeyIndex({ recalled }: ResolvedCall, { upstream }: Target): number | null {
  const mark = recalled?.holder?.key ?? null;
  const index = mark === null ? -1 : upstream.apiKeys.findIndex((key) => keyMark(key) === mark);
  return index === -1 ? null : index;
}

/**
 * Makes the plan for the targets. The first is tried with the key that knows the turn that the call continues from. A call
 * over a WebSocket tries the target first to which its socket is open.
 */
function planAt(services: Services, call: ResolvedCall, chosen: readonly Target[], now: number): AttemptPlan {
  const session = call.socketCall?.upstreamSession;
  const plan = new AttemptPlan(services, call, session?.arrange(chosen) ?? chosen, now);
  plan.keyIndex = session?.keyIndexFor(plan.target) ?? holdingKeyIndex(call, plan.target) ?? plan.keyIndex;
  return plan;
}

const atHeader = { param: 'x-gateway-target' };

function targetFilterOf({ exchange, key }: ResolvedCall): TargetFilter | null {
  const { gatewayTarget } = exchange.head;
  if (gatewayTarget === '') return null;
  if (!key.mayRoute)
    throw new GatewayError('permission_denied', 'This key may not choose targets.', atHeader);
  const parsed = parseTargetFilter(gatewayTarget);
  if (!parsed.ok) throw new GatewayError('invalid_value', parsed.problem, atHeader);
  return parsed.targetFilter;
}

/** Sets the target that a call is about to be sent to. */
export function setTarget<Of extends ResolvedCall>(call: Of, target: Target): Of & RoutedCall {
  call.target = target;
  return call as Of & RoutedCall;
}

/** Returns a hash that sends the calls of one conversation to the same target and key; null if there is only one choice. */
function affinityOf({ body, key, model, running }: ResolvedCall, targets: readonly Target[]): number | null {
  if (!running.snapshot.routing.affinity || body === null || body.length < leastBytes) return null;
  if (targets.length === 1 && (targets[0]?.upstream.apiKeys.length ?? 0) < 2) return null;
  const owner = ownerHash(key.id, model.name);
  // Parts that change with every call would spread the calls of one conversation over all targets.
  const billing = findBillingLine(body, affinityBytes);
  if (billing === null) return hashBytes(owner, body, 0, body.length);
  return hashBytes(hashBytes(owner, body, 0, billing.start), body, billing.end, body.length);
}

/** Whether a target gets the members of a call's body that the gateway does not know: a translated body has none of them. */
export function getsUnknown({ route: { endpoint } }: AuthenticatedCall, { native }: Target): boolean {
  return endpoint === null || endpoint.translation === null || native.has(endpoint.protocol);
}

/**
 * Returns the targets to which a call may be sent with its members that could lead an upstream elsewhere: those whose
 * upstream's config allows all of these members, and those that do not get them.
 * @throws {GatewayError} with status 400 if there is none
 */
export function targetsAllowing(call: AuthenticatedCall, targets: readonly Target[]): readonly Target[] {
  const { steering } = call;
  if (steering.length === 0) return targets;
  const allowed = targets.filter((target) => !getsUnknown(call, target) || mayBeSteered(steering, target));
  if (allowed.length === 0 && targets.length > 0) throw steered(steering, targets);
  return allowed;
}

function mayBeSteered(steering: readonly SteeringMember[], { upstream }: Target): boolean {
  return steering.every((name) => upstream.allowMembers.has(name));
}

function steered(steering: readonly SteeringMember[], targets: readonly Target[]): GatewayError {
  // Names the members that no upstream allows, or all of them if each is allowed by some upstream but no upstream allows
  // all.
  const forbidden = steering.filter((name) => !targets.some((target) => mayBeSteered([name], target)));
  const named = forbidden.length === 0 ? steering : forbidden;
  const [first = ''] = named;
  return new GatewayError(
    'unsupported_parameter',
    `The request has ${named.map((name) => `'${name}'`).join(' and ')}, which could lead an upstream elsewhere than ` +
      `the gateway's routing says: leave it out. An operator can allow it with "allowMembers": ` +
      `${JSON.stringify(named)} in the config of the model's upstreams.`,
    { param: first },
  );
}
