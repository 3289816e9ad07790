import { openaiError } from '../../dialects/openai.js';
import type { GatewayError } from '../../errors.js';

/**
 * The server event that tells a client of an error of the gateway's own.
 * @param id unique within the session
 */
export function errorEvent(error: GatewayError, id: string): string {
  const members = openaiError(error).slice(0, -1);
  return `{"type":"error","event_id":"event_${id}","error":${members},"event_id":null}}`;
}
