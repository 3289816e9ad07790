import type { GatewayRequest } from '../gateway-request.js';
import { shellQuote } from './quoting.js';

/** Placeholder in a request for the id of a task that does not exist yet. */
export const taskId = 'TASK-ID';

/** The header that carries the key. */
export type Credential = 'bearer' | 'x-api-key' | 'x-goog-api-key';

const credentials: Readonly<Record<Credential, string>> = {
  bearer: 'authorization: Bearer',
  'x-api-key': 'x-api-key:',
  'x-goog-api-key': 'x-goog-api-key:',
};

interface CurlOptions {
  readonly credential: Credential;
  /** Whether the answer is shown while it streams. */
  readonly stream?: boolean;
  /** Output file of the answer. */
  readonly output?: string;
  /** Whether the request contains `taskId`, for which the shell has `$ID`. */
  readonly ofTask?: boolean;
}

/**
 * Writes a request as a curl command. The key is read from `$GATEWAY_KEY`.
 * @param baseUrl scheme and authority of the gateway
 */
export function curl(baseUrl: string, request: GatewayRequest, options: CurlOptions): string {
  const { credential, stream = false, output, ofTask = false } = options;
  const quote = (text: string): string => (ofTask ? withTask(shellQuote(text)) : shellQuote(text));
  const lines = [
    `curl ${stream ? '-N ' : ''}${quote(baseUrl + request.path)}`,
    `-H "${credentials[credential]} $GATEWAY_KEY"`,
    ...Object.entries(request.headers).map(([name, value]) => `-H ${shellQuote(`${name}: ${value}`)}`),
  ];
  if (request.body !== null) {
    const body = quote(JSON.stringify(request.body, null, 2));
    lines.push("-H 'content-type: application/json'", `-d ${body}`);
  }
  if (output !== undefined) lines.push(`-o ${shellQuote(output)}`);
  return lines.join(' \\\n  ');
}

/** Closes the quotes around the task's id, so that the shell expands it. */
function withTask(quoted: string): string {
  return quoted.replaceAll(taskId, `'"$ID"'`);
}
