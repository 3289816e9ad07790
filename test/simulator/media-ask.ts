import type { Simulator } from '../../src/simulator/server.js';

export interface Given {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;
  readonly text: string;
  /** `data:` of each SSE event, parsed, in order. */
  readonly events: readonly { readonly type?: string; readonly [member: string]: unknown }[];
}

/** Reads an answer of `fetch` to its end. */
async function given(answer: Response): Promise<Given> {
  const bytes = Buffer.from(await answer.arrayBuffer());
  const isText = /json|text|event-stream/.test(answer.headers.get('content-type') ?? '');
  const text = isText ? bytes.toString() : '';
  const events = [...text.matchAll(/^data: (.*)$/gm)].map((match) => JSON.parse(match[1] ?? ''));
  return { status: answer.status, headers: answer.headers, bytes, text, events };
}

/** The simulator's address without the `/v1` that its `url` has. */
export function originOf(simulator: Simulator): string {
  return `http://127.0.0.1:${simulator.port}`;
}

/** Asks for a path under the origin, or for a whole URL. */
export async function get(
  simulator: Simulator,
  path: string,
  options: { readonly method?: string; readonly headers?: Record<string, string> } = {},
): Promise<Given> {
  return given(await fetch(path.startsWith('http') ? path : originOf(simulator) + path, options));
}

/** Posts JSON to a path under the origin. */
export async function postJson(
  simulator: Simulator,
  path: string,
  body: object | string,
  headers: Record<string, string> = {},
): Promise<Given> {
  return given(
    await fetch(originOf(simulator) + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    }),
  );
}

/** One field of a form; a repeated name is a repeated field. */
export type Field = readonly [name: string, value: string | File];

/** Posts a form to a path under the origin. */
export async function postForm(
  simulator: Simulator,
  path: string,
  fields: readonly Field[],
  headers: Record<string, string> = {},
): Promise<Given> {
  const body = new FormData();
  for (const [name, value] of fields) {
    body.append(name, value);
  }
  return given(await fetch(originOf(simulator) + path, { method: 'POST', headers, body }));
}

/** A file for a form. */
export function file(name: string, type: string, bytes: Buffer = Buffer.from('some bytes')): File {
  return new File([new Uint8Array(bytes)], name, { type });
}
