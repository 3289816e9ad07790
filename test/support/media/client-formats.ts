import type { VideoFormat } from '../../../src/video/task.js';
import { ask, type Heard, type MediaRequest } from './gateway.js';

/** The state of a task, read from any format. */
export interface Standing {
  readonly state: 'queued' | 'in_progress' | 'completed' | 'failed' | 'missing';
  readonly heard: Heard;
}

/** A request about a task. */
export interface TaskRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: object;
}

type Json = Heard['json'];

/** What a model is asked for. */
interface Asked {
  readonly model: string;
  readonly prompt: string;
}

/** How a format writes the requests about tasks, and where its answers have what is read of them. */
export interface TaskForm {
  creation(asked: Asked): TaskRequest;
  poll(id: string): TaskRequest;
  idIn(json: Json): unknown;
  /** Returns the state in the gateway's own word, or the unknown word itself. */
  stateIn(json: Json): unknown;
}

/** One of the formats in which clients create and poll tasks. */
export interface ClientFormat extends TaskForm {
  readonly format: VideoFormat;
  /** Returns the request that creates a task of a prompt. */
  create(gateway: Gateway, asked: Asked, more?: MediaRequest): Promise<Heard>;
  /** Returns the id of a created task. */
  idOf(heard: Heard): string;
  show(gateway: Gateway, id: string, more?: MediaRequest): Promise<Standing>;
}

type Gateway = { readonly url: string };

const words = new Map<unknown, string>([
  ['submitted', 'queued'],
  ['in_queue', 'queued'],
  ['processing', 'in_progress'],
  ['generating', 'in_progress'],
  ['succeed', 'completed'],
  ['done', 'completed'],
]);
const wordOf = (word: unknown): unknown => words.get(word) ?? word;
const states: ReadonlySet<unknown> = new Set(['queued', 'in_progress', 'completed', 'failed']);
const dataIn = ({ data }: Json): Json => (typeof data === 'object' && data !== null ? (data as Json) : {});

function clientFormat(format: VideoFormat, form: TaskForm): ClientFormat {
  const send = (gateway: Gateway, { method, path, body }: TaskRequest, more: MediaRequest = {}) =>
    ask(gateway, method, path, { ...(body === undefined ? {} : { body }), ...more });
  return {
    format,
    ...form,
    create: (gateway, asked, more) => send(gateway, form.creation(asked), more),
    idOf(heard) {
      const id = form.idIn(heard.json);
      if (heard.status !== 200 || typeof id !== 'string') throw new Error(`${heard.status} ${heard.text}`);
      return id;
    },
    async show(gateway, id, more) {
      const heard = await send(gateway, form.poll(id), more);
      const state = form.stateIn(heard.json);
      if (heard.status === 404 || state === 'not_found') return { state: 'missing', heard };
      if (heard.status !== 200 || !states.has(state)) throw new Error(`${heard.status} ${heard.text}`);
      return { state: state as Standing['state'], heard };
    },
  };
}

/** The format of OpenAI's video API. */
export const compat = clientFormat('compat', {
  creation: (body) => ({ method: 'POST', path: '/v1/videos', body }),
  poll: (id) => ({ method: 'GET', path: `/v1/videos/${id}` }),
  idIn: ({ id }) => id,
  stateIn: ({ status }) => status,
});

/** The format without a vendor. */
export const generic = clientFormat('generic', {
  creation: (body) => ({ method: 'POST', path: '/v1/video/generations', body }),
  poll: (id) => ({ method: 'GET', path: `/v1/video/generations/${id}` }),
  idIn: (json) => json.task_id,
  stateIn: ({ status }) => status,
});

/** @param path as the client writes it, such as `/vendork/v1/videos/text2video` */
export function vendorkAt(path: string): ClientFormat {
  return clientFormat('vendork', {
    creation: ({ model, ...more }) => ({ method: 'POST', path, body: { model_name: model, ...more } }),
    poll: (id) => ({ method: 'GET', path: `${path}/${id}` }),
    idIn: (json) => dataIn(json).task_id,
    stateIn: (json) => wordOf(dataIn(json).task_status),
  });
}

export const vendork = vendorkAt('/vendork/v1/videos/text2video');

/** Returns the path of one of the vendor's actions. @param prefix such as `/vendorj/` */
export function actionPath(action: string, prefix = '/vendorj/'): string {
  return `${prefix}?Action=${action}&Version=2022-08-31`;
}

/** @param prefix such as `/vendorj/` */
export function vendorjAt(prefix: string): ClientFormat {
  const action = (name: string, body: object): TaskRequest => ({
    method: 'POST',
    path: actionPath(`CVSync2Async${name}`, prefix),
    body,
  });
  return clientFormat('vendorj', {
    creation: ({ model, ...more }) => action('SubmitTask', { req_key: model, ...more }),
    poll: (id) => action('GetResult', { req_key: 'any', task_id: id }),
    idIn: (json) => dataIn(json).task_id,
    stateIn(json) {
      // A failed task is done, and its code says that it has failed.
      const { status } = dataIn(json);
      return json.code !== 10_000 && status === 'done' ? 'failed' : wordOf(status);
    },
  });
}

export const clientFormats: readonly ClientFormat[] = [compat, vendork, vendorjAt('/vendorj/'), generic];
