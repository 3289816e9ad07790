import type { GatewayError } from '../../errors.js';

/**
 * The server event that tells a client of an error of the gateway's own.
 * @param id unique within the session
 */
export function errorEvent({ status, code, message }: GatewayError, id: string): string {
  return JSON.stringify({
    type: 'error',
    event_id: `event_${id}`,
    error: {
      type: status < 500 ? 'invalid_request_error' : 'server_error',
      code,
      message,
      param: null,
      event_id: null,
    },
  });
}
