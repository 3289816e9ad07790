import type { VideoFormat } from '../../../src/video/task.js';
import { ask, type Heard, type MediaRequest } from './gateway.js';

/** The state of a task, read from any format. */
export interface Standing {
  readonly state: 'queued' | 'in_progress' | 'completed' | 'failed' | 'missing';
  readonly heard: Heard;
}

/** One of the formats in which clients create and poll tasks. */
export interface ClientFormat {
  readonly format: VideoFormat;
  /** Returns the request that creates a task of a prompt. */
  create(
    gateway: Gateway,
    asked: { readonly model: string; readonly prompt: string },
    more?: MediaRequest,
  ): Promise<Heard>;
  /** Returns the id of a created task. */
  idOf(heard: Heard): string;
  show(gateway: Gateway, id: string, more?: MediaRequest): Promise<Standing>;
}

type Gateway = { readonly url: string };

const words = {
  queued: 'queued',
  submitted: 'queued',
  in_queue: 'queued',
  in_progress: 'in_progress',
  processing: 'in_progress',
  generating: 'in_progress',
  completed: 'completed',
  succeed: 'completed',
  done: 'completed',
  failed: 'failed',
  not_found: 'missing',
} as const;

function standing(heard: Heard, word: unknown): Standing {
  if (heard.status === 404) return { state: 'missing', heard };
  const state = words[word as keyof typeof words];
  if (heard.status !== 200 || state === undefined) throw new Error(`${heard.status} ${heard.text}`);
  return { state, heard };
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

function textOf(heard: Heard, value: unknown): string {
  if (heard.status !== 200 || typeof value !== 'string') throw new Error(`${heard.status} ${heard.text}`);
  return value;
}

/** The format of OpenAI's video API. */
export const compat: ClientFormat = {
  format: 'compat',
  create: (gateway, asked, more = {}) => ask(gateway, 'POST', '/v1/videos', { body: asked, ...more }),
  idOf: (heard) => textOf(heard, heard.json.id),
  async show(gateway, id, more) {
    const heard = await ask(gateway, 'GET', `/v1/videos/${id}`, more);
    return standing(heard, heard.json.status);
  },
};

/** The format without a vendor. */
export const generic: ClientFormat = {
  format: 'generic',
  create: (gateway, asked, more = {}) =>
    ask(gateway, 'POST', '/v1/video/generations', { body: asked, ...more }),
  idOf: (heard) => textOf(heard, heard.json.task_id),
  async show(gateway, id, more) {
    const heard = await ask(gateway, 'GET', `/v1/video/generations/${id}`, more);
    return standing(heard, heard.json.status);
  },
};

/** @param path as the client writes it, such as `/vendork/v1/videos/text2video` */
export function vendorkAt(path: string): ClientFormat {
  return {
    format: 'vendork',
    create: (gateway, { model, prompt }, more = {}) =>
      ask(gateway, 'POST', path, { body: { model_name: model, prompt }, ...more }),
    idOf: (heard) => textOf(heard, member(heard.json.data, 'task_id')),
    async show(gateway, id, more) {
      const heard = await ask(gateway, 'GET', `${path}/${id}`, more);
      return standing(heard, member(heard.json.data, 'task_status'));
    },
  };
}

export const vendork = vendorkAt('/vendork/v1/videos/text2video');

/** Returns the path of one of the vendor's actions. @param prefix such as `/vendorj/` */
export function actionPath(action: string, prefix = '/vendorj/'): string {
  return `${prefix}?Action=${action}&Version=2022-08-31`;
}

/** @param prefix such as `/vendorj/` */
export function vendorjAt(prefix: string): ClientFormat {
  return {
    format: 'vendorj',
    create: (gateway, { model, prompt }, more = {}) =>
      ask(gateway, 'POST', actionPath('CVSync2AsyncSubmitTask', prefix), {
        body: { req_key: model, prompt },
        ...more,
      }),
    idOf: (heard) => textOf(heard, member(heard.json.data, 'task_id')),
    async show(gateway, id, more = {}) {
      const heard = await ask(gateway, 'POST', actionPath('CVSync2AsyncGetResult', prefix), {
        body: { req_key: 'any', task_id: id },
        ...more,
      });
      // A failed task is done, and its code says that it has failed.
      const failed = heard.json.code !== 10_000 && member(heard.json.data, 'status') === 'done';
      return standing(heard, failed ? 'failed' : member(heard.json.data, 'status'));
    },
  };
}

const vendorj = vendorjAt('/vendorj/');

export const clientFormats: readonly ClientFormat[] = [compat, vendork, vendorj, generic];
