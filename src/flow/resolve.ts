import type { Key, Model, Protocol } from '../config/types.js';
import { GatewayError } from '../errors.js';

/**
 * Finds a model by the name that a caller used.
 * @throws {GatewayError} `model_not_found` when the key's groups do not open it or the protocol does not offer it;
 * the two look alike, so that a key learns nothing of models it may not use.
 */
export function resolveModel(key: Key, name: string, protocol: Protocol): Model {
  const model = key.models.get(name);
  if (model?.protocols.has(protocol)) return model;
  throw new GatewayError(
    'model_not_found',
    `The model '${printable(name)}' does not exist, is not offered in this protocol, or is not open to your key. ` +
      'GET /v1/models lists what is.',
    { param: 'model' },
  );
}

function printable(name: string): string {
  return name.length > 200 ? `${name.slice(0, 200)}…` : name;
}
