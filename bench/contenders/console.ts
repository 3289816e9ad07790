import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';

/** A viewer of a gateway's console, like a page that is left open. */
export interface Viewer {
  /**
   * Stops viewing.
   * @throws Error if the stream had ended before, so that the measured gateway had no open console
   */
  leave(): void;
}

/**
 * Follows the live stream of the console.
 * @param port of the operators' listener
 * @returns once the first bytes of the stream have arrived
 */
export async function watchConsole(port: number, token: string): Promise<Viewer> {
  const asked = get({
    host: '127.0.0.1',
    port,
    path: '/console/live',
    headers: { authorization: `Bearer ${token}` },
    agent: false,
  });
  const [stream] = (await once(asked, 'response')) as [IncomingMessage];
  if (stream.statusCode !== 200) {
    asked.destroy();
    throw new Error(`the console's stream is answered with ${stream.statusCode}`);
  }
  let hasEnded = false;
  const end = (): void => {
    hasEnded = true;
  };
  stream.once('close', end).once('error', end);
  await once(stream, 'data');
  stream.resume();
  return {
    leave() {
      const tooEarly = hasEnded;
      asked.destroy();
      if (tooEarly) throw new Error("the console's stream ended before the run did");
    },
  };
}
