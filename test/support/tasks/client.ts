import type { VideoFormat } from '../../../src/video/task.js';
import { eventually } from '../eventually.js';
import { loadKey } from '../load/request.js';
import { clientFormats, type TaskForm, type TaskRequest } from '../media/client-formats.js';
import { ask, type Heard } from '../media/gateway.js';

export type { TaskRequest } from '../media/client-formats.js';

/** An answer about a task. */
export interface TaskAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Heard['json'];
}

/** How clients of each format create and poll tasks. */
interface TaskClientFormat extends Pick<TaskForm, 'idIn' | 'stateIn'> {
  create(prompt: string): TaskRequest;
  show(id: string): TaskRequest;
}

/** A size that the simulator paints in a small file. */
const small: Readonly<Record<VideoFormat, object>> = {
  compat: { seconds: '1', size: '64x48' },
  vendork: { duration: '5' },
  vendorj: {},
  generic: { duration: 1, width: 64, height: 48 },
};

export const taskClientFormats = Object.fromEntries(
  clientFormats.map(({ format, creation, poll, idIn, stateIn }): [VideoFormat, TaskClientFormat] => [
    format,
    { create: (prompt) => creation({ model: 'm', prompt, ...small[format] }), show: poll, idIn, stateIn },
  ]),
) as Readonly<Record<VideoFormat, TaskClientFormat>>;

/** Sends a request about tasks. @throws TypeError like `fetch` if the connection breaks */
export async function askTask(
  baseUrl: string,
  { method, path, body }: TaskRequest,
  { key = loadKey, idempotencyKey }: { readonly key?: string; readonly idempotencyKey?: string } = {},
): Promise<TaskAnswer> {
  const { status, headers, json } = await ask({ url: baseUrl }, method, path, {
    key,
    ...(body === undefined ? {} : { body }),
    headers: idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey },
  });
  return { status, headers, body: json };
}

const askAgainMs = 100;

/** Polls a task until it has ended. @returns the last answer */
export function untilEnded(
  baseUrl: string,
  id: string,
  clientFormat = taskClientFormats.compat,
): Promise<TaskAnswer> {
  const fits = ({ status, body }: TaskAnswer): boolean =>
    status !== 200 || ['completed', 'failed'].includes(String(clientFormat.stateIn(body)));
  return eventually(() => askTask(baseUrl, clientFormat.show(id)), {
    fits,
    everyMs: askAgainMs,
    withinMs: 600_000,
  });
}

/** Downloads the whole content of a task. */
export function contentOf(
  baseUrl: string,
  id: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Heard> {
  return ask({ url: baseUrl }, 'GET', `/v1/videos/${id}/content`, { key: loadKey, headers });
}
