import type { GatewayRequest } from '../gateway-request.js';
import { shellQuote } from './quoting.js';

/** Stands in a request for the id of a task that does not exist yet. */
export const taskId = 'TASK-ID';

/** How a request says whose it is. */
export type Credential = 'bearer' | 'x-api-key' | 'x-goog-api-key';

const credentials: Readonly<Record<Credential, string>> = {
  bearer: 'authorization: Bearer',
  'x-api-key': 'x-api-key:',
  'x-goog-api-key': 'x-goog-api-key:',
};

interface CurlOptions {
  readonly credential: Credential;
  /** The answer is shown as it streams. */
  readonly stream?: boolean;
  /** The file that the answer goes to. */
  readonly output?: string;
  /** The request has `taskId` in it, which the shell has in `$ID`. */
  readonly ofTask?: boolean;
}

/**
 * Writes a request as a curl command. The key is taken from `$GATEWAY_KEY`.
 * @param baseUrl of the gateway: scheme and authority
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

/** Ends the quotes around the task's id, for the shell to fill it in. */
function withTask(quoted: string): string {
  return quoted.replaceAll(taskId, `'"$ID"'`);
}
