import type { VideoFormat } from '../../../src/video/task.js';
import { eventually } from '../eventually.js';
import { loadKey } from '../load/request.js';

/** An answer about a task. */
export interface TaskAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Readonly<Record<string, unknown>>;
}

/** A request about a task. */
export interface TaskRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: unknown;
}

/** How clients of each format create and poll tasks. */
interface TaskClientFormat {
  create(prompt: string): TaskRequest;
  show(id: string): TaskRequest;
  /** @returns the id in the answer to a creation */
  idIn(body: TaskAnswer['body']): unknown;
  /** @returns the state in the gateway's own word, or the unknown word itself */
  stateIn(body: TaskAnswer['body']): unknown;
}

const vendorj = (action: string): string => `/vendorj/?Action=CVSync2Async${action}&Version=2022-08-31`;
const dataIn = (body: TaskAnswer['body']): Readonly<Record<string, unknown>> =>
  (body.data ?? {}) as Readonly<Record<string, unknown>>;
const vendorWords: ReadonlyMap<unknown, string> = new Map([
  ['submitted', 'queued'],
  ['processing', 'in_progress'],
  ['succeed', 'completed'],
  ['in_queue', 'queued'],
  ['generating', 'in_progress'],
  ['done', 'completed'],
]);

/** A size that the simulator paints in a small file. */
export const taskClientFormats: Readonly<Record<VideoFormat, TaskClientFormat>> = {
  compat: {
    create: (prompt) => ({
      method: 'POST',
      path: '/v1/videos',
      body: { model: 'm', prompt, seconds: '1', size: '64x48' },
    }),
    show: (id) => ({ method: 'GET', path: `/v1/videos/${id}` }),
    idIn: (body) => body.id,
    stateIn: (body) => body.status,
  },
  vendork: {
    create: (prompt) => ({
      method: 'POST',
      path: '/vendork/v1/videos/text2video',
      body: { model_name: 'm', prompt, duration: '5' },
    }),
    show: (id) => ({ method: 'GET', path: `/vendork/v1/videos/text2video/${id}` }),
    idIn: (body) => dataIn(body).task_id,
    stateIn: (body) => wordOf(dataIn(body).task_status),
  },
  vendorj: {
    create: (prompt) => ({ method: 'POST', path: vendorj('SubmitTask'), body: { req_key: 'm', prompt } }),
    show: (id) => ({
      method: 'POST',
      path: vendorj('GetResult'),
      body: { req_key: 'm', task_id: id },
    }),
    idIn: (body) => dataIn(body).task_id,
    stateIn: (body) => (body.code === 10_000 ? wordOf(dataIn(body).status) : 'failed'),
  },
  generic: {
    create: (prompt) => ({
      method: 'POST',
      path: '/v1/video/generations',
      body: { model: 'm', prompt, duration: 1, width: 64, height: 48 },
    }),
    show: (id) => ({ method: 'GET', path: `/v1/video/generations/${id}` }),
    idIn: (body) => body.task_id,
    stateIn: (body) => body.status,
  },
};

function wordOf(word: unknown): unknown {
  return vendorWords.get(word) ?? word;
}

/** Sends a request about tasks. @throws TypeError like `fetch` if the connection breaks */
export async function askTask(
  baseUrl: string,
  request: TaskRequest,
  options: { readonly key?: string; readonly idempotencyKey?: string } = {},
): Promise<TaskAnswer> {
  const { method, path, body } = request;
  const response = await fetch(baseUrl + path, {
    method,
    headers: {
      authorization: `Bearer ${options.key ?? loadKey}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(options.idempotencyKey === undefined ? {} : { 'idempotency-key': options.idempotencyKey }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const { status, headers } = response;
  return { status, headers, body: (await response.json()) as TaskAnswer['body'] };
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
export async function contentOf(
  baseUrl: string,
  id: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ readonly status: number; readonly headers: Headers; readonly bytes: Buffer }> {
  const response = await fetch(`${baseUrl}/v1/videos/${id}/content`, {
    headers: { authorization: `Bearer ${loadKey}`, ...headers },
  });
  const bytes = Buffer.from(await response.arrayBuffer());
  return { status: response.status, headers: response.headers, bytes };
}
