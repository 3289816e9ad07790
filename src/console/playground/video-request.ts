import { type GatewayRequest, get, post } from './gateway-request.js';
import { numberOf, objectOf, textOf } from './json.js';

export type VideoFormat = 'compat' | 'generic' | 'vendork' | 'vendorj';

export interface VideoSettings {
  readonly model: string;
  /** `1280x720` */
  readonly size: string;
  readonly seconds: number;
}

/** The sizes offered, with the aspect ratios that two formats use instead. */
export const videoSizes: Readonly<Record<string, string>> = {
  '1280x720': '16:9',
  '720x1280': '9:16',
  '720x720': '1:1',
};

/** Frame rate of the format that counts frames. */
const framesPerSecond = 24;
const vendorjPath = '/vendorj/?Action=';
const vendorjVersion = '&Version=2022-08-31';

/** The request that creates a task. */
export function videoRequest(format: VideoFormat, settings: VideoSettings, prompt: string): GatewayRequest {
  const { model, size, seconds } = settings;
  const shape = videoSizes[size] ?? '16:9';
  switch (format) {
    case 'compat':
      return post('/v1/videos', { model, prompt, seconds: `${seconds}`, size });
    case 'generic': {
      const [width = 0, height = 0] = size.split('x').map(Number);
      return post('/v1/video/generations', { model, prompt, duration: seconds, width, height });
    }
    case 'vendork':
      return post('/vendork/v1/videos/text2video', {
        model_name: model,
        prompt,
        duration: `${seconds}`,
        aspect_ratio: shape,
      });
    case 'vendorj':
      return post(`${vendorjPath}CVSync2AsyncSubmitTask${vendorjVersion}`, {
        req_key: model,
        prompt,
        frames: seconds * framesPerSecond + 1,
        aspect_ratio: shape,
      });
  }
}

/** The request that polls a task. */
export function videoPoll(format: VideoFormat, model: string, id: string): GatewayRequest {
  switch (format) {
    case 'compat':
      return get(`/v1/videos/${encodeURIComponent(id)}`);
    case 'generic':
      return get(`/v1/video/generations/${encodeURIComponent(id)}`);
    case 'vendork':
      return get(`/vendork/v1/videos/text2video/${encodeURIComponent(id)}`);
    case 'vendorj':
      return post(`${vendorjPath}CVSync2AsyncGetResult${vendorjVersion}`, { req_key: model, task_id: id });
  }
}

/** The request for the video of a finished task, the same for all formats. */
export function videoContent(id: string): GatewayRequest {
  return get(`/v1/videos/${encodeURIComponent(id)}/content`);
}

/** The state of a task, independent of the format. */
export interface VideoState {
  /** Empty if the answer names none. */
  readonly id: string;
  readonly state: 'queued' | 'in_progress' | 'completed' | 'failed';
  /** Percent; null if the format has none. */
  readonly progress: number | null;
  /** Why it failed. */
  readonly error: string | null;
}

const states: Readonly<Record<string, VideoState['state']>> = {
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
};

const vendorjSuccess = 10_000;

/**
 * Reads the answer to the creation or a poll of a task.
 * @param body the parsed body
 */
export function readVideoState(format: VideoFormat, body: unknown): VideoState {
  const top = objectOf(body);
  const data = objectOf(top.data);
  switch (format) {
    case 'compat':
      return {
        id: textOf(top.id),
        state: stateOf(top.status),
        progress: typeof top.progress === 'number' ? top.progress : null,
        error: textOf(objectOf(top.error).message) || null,
      };
    case 'generic':
      return {
        id: textOf(top.task_id),
        state: stateOf(top.status),
        progress: null,
        error: textOf(objectOf(top.error).message) || null,
      };
    case 'vendork':
      return {
        id: textOf(data.task_id),
        state: stateOf(data.task_status),
        progress: null,
        error: textOf(data.task_status_msg) || null,
      };
    case 'vendorj': {
      // A failed task is `done`, too; the code shows the difference.
      const isWell = numberOf(top.code) === vendorjSuccess && data.status !== 'not_found';
      return {
        id: textOf(data.task_id),
        state: isWell ? stateOf(data.status) : 'failed',
        progress: null,
        error: isWell ? null : textOf(top.message),
      };
    }
  }
}

/** Unknown and absent states count as queued: a new task of the last format has none. */
function stateOf(word: unknown): VideoState['state'] {
  return states[textOf(word)] ?? 'queued';
}
