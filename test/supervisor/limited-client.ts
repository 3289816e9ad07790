import { Agent, request } from 'node:http';

/** The key of those who are limited. */
export const limitedKey = 'sk-limited';

/** What a limited client looks at. */
interface LimitedAnswer {
  readonly status: number;
  readonly retryAfter: string | undefined;
}

const body = JSON.stringify({
  model: 'm',
  messages: [{ role: 'user', content: '[[fault:latency=0 rate=0]] hi' }],
});

/** Sends one call for the model `m` of the simulator. */
export function askLimited(baseUrl: string, agent?: Agent): Promise<LimitedAnswer> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${limitedKey}`, 'content-type': 'application/json' };
    const asked = request(`${baseUrl}/v1/chat/completions`, { method: 'POST', agent, headers });
    asked.on('error', reject);
    asked.on('response', (answer) => {
      answer.resume();
      answer.on('error', reject);
      answer.on('end', () =>
        resolve({ status: answer.statusCode ?? 0, retryAfter: answer.headers['retry-after'] }),
      );
    });
    asked.end(body);
  });
}

/** Hammers until `isOver`, each client over connections of its own that it opens anew now and then. */
export async function hammer(
  baseUrl: string,
  clients: number,
  isOver: () => boolean,
): Promise<LimitedAnswer[]> {
  const answers: LimitedAnswer[] = [];
  const client = async (): Promise<void> => {
    while (!isOver()) {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      for (let i = 0; i < 25 && !isOver(); i++) answers.push(await askLimited(baseUrl, agent));
      agent.destroy();
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  return answers;
}
