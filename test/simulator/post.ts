import type { Simulator } from '../../src/simulator/server.js';

export interface Posted {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** `data:` of each SSE event, in order. */
  readonly events: readonly string[];
}

/** Posts a JSON body to a path under `/v1`. */
export async function post(
  simulator: Simulator,
  path: string,
  body: object | string,
  headers: Record<string, string> = {},
): Promise<Posted> {
  const answer = await fetch(simulator.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const text = await answer.text();
  const events = [...text.matchAll(/^data: (.*)$/gm)].map((match) => match[1] ?? '');
  return { status: answer.status, headers: answer.headers, text, events };
}
