import type { Key, Model, Target } from '../config/types.js';
import { GatewayError } from '../errors.js';
import { hashBytes, ownerHash } from '../routing/affinity.js';
import { anyTarget, type RouteRequest } from '../routing/choose.js';
import { parseWishes, type TargetWishes } from '../routing/wishes.js';
import type { Call } from './call.js';
import { Candidates } from './candidates.js';
import type { Services } from './services.js';

/** A shorter body grows at every turn within the part that decides, and has nothing that is worth a prompt cache. */
const leastBytes = 2048;

/**
 * The targets to try for a call, in order, and the first of them.
 * @throws {GatewayError} `overloaded` when none may be asked now, and of status 400 or 403 for what the call says of
 * its targets
 */
export function routeCall(services: Services, call: Call, targets: readonly Target[]): Candidates {
  const wishes = wishesOf(call);
  call.affinity = affinityOf(call, targets);
  // Where there is no choice, what the upstream itself says is worth more than that it has failed before.
  if (targets.length === 1 && wishes === null) return candidatesOf(services, call, targets, call.validatedAt);
  const request: RouteRequest =
    wishes === null && call.affinity === null ? anyTarget : { affinity: call.affinity, wishes };
  const now = performance.now();
  const chosen = services.chooser.choose(targets, request, now);
  if (chosen.length > 0) return candidatesOf(services, call, chosen, now);
  const at = services.chooser.retryAt(targets, request, now);
  if (at === Number.POSITIVE_INFINITY)
    throw new GatewayError(
      'invalid_value',
      'The model has no target that x-gateway-target leaves.',
      atHeader,
    );
  throw new GatewayError('overloaded', 'No upstream of this model can take calls at the moment.', {
    retryAfter: Math.max(1, Math.ceil((at - now) / 1000)),
  });
}

/** A turn of a socket goes where those before it went, if that is among the targets. */
function candidatesOf(services: Services, call: Call, chosen: readonly Target[], now: number): Candidates {
  const { turn } = call;
  if (turn === null) return new Candidates(services, call, chosen, now);
  const candidates = new Candidates(services, call, turn.lane.arrange(chosen), now);
  candidates.key = turn.lane.keyFor(candidates.target) ?? candidates.key;
  return candidates;
}

const atHeader = { param: 'x-gateway-target' };

function wishesOf({ exchange, key }: Call): TargetWishes | null {
  const { gatewayTarget } = exchange.head;
  if (gatewayTarget === '') return null;
  if (!key?.mayRoute)
    throw new GatewayError('permission_denied', 'This key may not choose targets.', atHeader);
  const parsed = parseWishes(gatewayTarget);
  if (!parsed.ok) throw new GatewayError('invalid_value', parsed.problem, atHeader);
  return parsed.wishes;
}

/** Only where there is a choice, of targets or of keys. */
function affinityOf({ body, key, model, running }: Call, targets: readonly Target[]): number | null {
  if (!running.snapshot.routing.affinity || body === null || body.length < leastBytes) return null;
  if (targets.length === 1 && (targets[0]?.upstream.apiKeys.length ?? 0) < 2) return null;
  return hashBytes(ownerHash((key as Key).id, (model as Model).name), body, 0, body.length);
}
