import type { Protocol } from '../config/types.js';
import { GatewayError } from '../errors.js';
import type { AuthenticatedCall, Call, ResolvedCall } from './call.js';
import { steerable } from './route.js';

/** SDKs of generateContent put the resource's collection before its name. */
const collection = 'models/';

/**
 * Finds the model that a call is for: the one in its path, or in its body, or the config's for calls that name none.
 * @throws {GatewayError} `model_not_found` when the key's groups do not open it or the protocol does not offer it;
 * the two look alike, so that a key learns nothing of models it may not use. `missing_parameter` when none is named.
 */
export function resolveModel(call: AuthenticatedCall, protocol: Protocol): ResolvedCall {
  return findModel(call, protocol, nameOf(call, protocol));
}

/** The same for a name that was read from a body already. */
export function findModel(call: AuthenticatedCall, protocol: Protocol, name: string): ResolvedCall {
  if (name === '')
    throw new GatewayError('missing_parameter', `Missing required parameter: 'model'.`, { param: 'model' });
  const model = call.key.models.get(name);
  if (model?.protocols.has(protocol)) {
    steerable(call.steering, model.targets);
    const found: Call = call;
    found.model = model;
    return found as ResolvedCall;
  }
  throw new GatewayError(
    'model_not_found',
    `The model '${printable(name)}' does not exist, is not offered in this protocol, or is not open to your key. ` +
      'GET /v1/models lists what is.',
    { param: 'model' },
  );
}

/** A model's name without the collection that it is in. */
export function bareName(name: string): string {
  return name.startsWith(collection) ? name.slice(collection.length) : name;
}

/**
 * Refuses a body that names another model than its path where the body is passed on as it is: an upstream may go by
 * either.
 */
export function requirePathModel(call: Call): void {
  const { params } = call;
  const body = call.wholeBody();
  const { model, members } = call.checkedBody();
  const inner = members.noted.map(({ start, end }) => textAt(body, start, end));
  for (const [index, name] of [model, ...inner].entries()) {
    if (name === '' || bareName(name) === bareName(params.model ?? '')) continue;
    const at = index === 0 ? 'model' : 'generateContentRequest.model';
    throw new GatewayError(
      'invalid_request_body',
      `The path names the model '${printable(params.model ?? '')}' and '${at}' of the body '${printable(name)}', ` +
        'and upstreams differ on which one counts: leave out that of the body.',
      { param: at },
    );
  }
}

/** A text of the body; empty for null, which names nothing. */
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

function printable(name: string): string {
  return name.length > 200 ? `${name.slice(0, 200)}…` : name;
}
