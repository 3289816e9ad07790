import type { Key, Model, Protocol } from '../config/types.js';
import { GatewayError } from '../errors.js';
import type { Call } from './call.js';
import type { ValidatedBody } from './validate.js';

/** SDKs of generateContent put the resource's collection before its name. */
const collection = 'models/';

/**
 * Finds the model that a call is for: the one in its path, or in its body, or the config's for calls that name none.
 * @throws {GatewayError} `model_not_found` when the key's groups do not open it or the protocol does not offer it;
 * the two look alike, so that a key learns nothing of models it may not use. `missing_parameter` when none is named.
 */
export function resolveModel(call: Call, protocol: Protocol): Model {
  return findModel(call, protocol, nameOf(call, protocol));
}

/** The same for a name that was read from a body already. */
export function findModel(call: Call, protocol: Protocol, name: string): Model {
  if (name === '')
    throw new GatewayError('missing_parameter', `Missing required parameter: 'model'.`, { param: 'model' });
  const model = (call.key as Key).models.get(name);
  if (model?.protocols.has(protocol)) return model;
  throw new GatewayError(
    'model_not_found',
    `The model '${printable(name)}' does not exist, is not offered in this protocol, or is not open to your key. ` +
      'GET /v1/models lists what is.',
    { param: 'model' },
  );
}

function nameOf({ params, validated, running }: Call, protocol: Protocol): string {
  const { model } = params;
  if (model !== undefined) return model.startsWith(collection) ? model.slice(collection.length) : model;
  const named = (validated as ValidatedBody).model;
  return named === '' ? (running.snapshot.defaultModels[protocol] ?? '') : named;
}

function printable(name: string): string {
  return name.length > 200 ? `${name.slice(0, 200)}…` : name;
}
