import { GatewayError } from '../../errors.js';
import { withoutMembers } from '../../wire/json-members.js';

/** They belong to the message alone, or are given by it: an answer over a WebSocket is always a stream. */
const ofTheMessage = new Set(['type', 'stream']);
const wanted = '"response.create"';

/**
 * The body of the POST that asks for the same as a message of a client does.
 * @param message JSON text; copied
 * @returns the error for a message that asks for no response
 */
export function turnBody(message: Buffer): Buffer | GatewayError {
  const found = withoutMembers(message, ofTheMessage);
  if (found === null) return new GatewayError('invalid_json', 'The message is not a JSON object.');
  const type = found.taken.get('type');
  if (type !== wanted)
    return new GatewayError(
      type === undefined ? 'missing_parameter' : 'invalid_value',
      `A message has the type 'response.create'${type === undefined ? '' : `, and not ${type.slice(0, 100)}`}.`,
      { param: 'type' },
    );
  return Buffer.concat(found.rest.length === 0 ? [alone] : [begin, ...found.rest, close]);
}

const alone = Buffer.from('{"stream":true}');
const begin = Buffer.from('{"stream":true,');
const close = Buffer.from('}');
