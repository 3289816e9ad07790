import type { GatewayError } from '../../errors.js';
import type { ErrorFormat } from './error-format.js';
import { openai, openaiError } from './openai.js';

/**
 * The error event of a responses stream. The members stand in the event itself, as the protocol has them, and once
 * more under `error`: without that one version of the SDK takes it for an event like any other and does not raise it.
 * @param sequence number of the event in its stream
 */
export function responsesErrorEvent(error: GatewayError, sequence: number): string {
  const param = JSON.stringify(error.param);
  return (
    `event: error\ndata: {"type":"error","sequence_number":${sequence},"code":${JSON.stringify(error.code)},` +
    `"message":${JSON.stringify(error.message)},"param":${param},"error":${openaiError(error)}}\n\n`
  );
}

/** The responses endpoints: bodies as all of OpenAI's, and streams with named events. */
export const responses: ErrorFormat = {
  ...openai,
  errorEvent: (error) => responsesErrorEvent(error, 0),
};
