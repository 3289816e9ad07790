import type { Target } from '../config/types.js';
import { GatewayError } from '../errors.js';
import type { SteeringMember } from '../wire/steering-members.js';

/**
 * The targets that may be asked with members which could lead an upstream elsewhere: those whose upstream's config
 * allows all of them.
 * @throws {GatewayError} of status 400 when there is none
 */
export function steerable(
  steering: readonly SteeringMember[],
  targets: readonly Target[],
): readonly Target[] {
  if (steering.length === 0) return targets;
  const allowed = targets.filter((target) => mayBeSteered(steering, target));
  if (allowed.length === 0 && targets.length > 0) throw steered(steering, targets);
  return allowed;
}

function mayBeSteered(steering: readonly SteeringMember[], { upstream }: Target): boolean {
  return steering.every((name) => upstream.allowMembers.has(name));
}

function steered(steering: readonly SteeringMember[], targets: readonly Target[]): GatewayError {
  // What no upstream allows is named; where each allows something else, all of it.
  const refused = steering.filter((name) => !targets.some((target) => mayBeSteered([name], target)));
  const named = refused.length === 0 ? steering : refused;
  const [first = ''] = named;
  return new GatewayError(
    'unsupported_parameter',
    `The request has ${named.map((name) => `'${name}'`).join(' and ')}, which could lead an upstream elsewhere than ` +
      `the gateway's routing says: leave it out. An operator can allow it with "allowMembers": ` +
      `${JSON.stringify(named)} in the config of the model's upstreams.`,
    { param: first },
  );
}
