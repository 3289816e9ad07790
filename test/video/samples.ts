import { newTask } from '../../src/video/advance.js';
import { readCompatBody } from '../../src/video/client-formats/compat.js';
import type {
  ShowContext,
  TaskUpdate,
  VideoCall,
  VideoFormat,
  VideoRequest,
  VideoResult,
  VideoTask,
} from '../../src/video/task.js';
import type { JsonObject } from '../../src/wire/json.js';
import { type FormPart, readForm } from '../../src/wire/multipart.js';
import { boundaryOf } from '../../src/wire/multipart-type.js';

/** A request as an upstream of another format is asked it. @throws {GatewayError} for what cannot be said there */
export function sayable(request: VideoRequest): VideoRequest {
  if (request.fault !== null) throw request.fault;
  return request;
}

/** Unix milliseconds at which the sample tasks begin. */
export const start = 1_700_000_000_123;

export const context: ShowContext = {
  requestId: 'req_1',
  elapsedMs: 12.34,
  contentUrl: 'https://gateway/v1/videos/video_1/content',
};

export const result: VideoResult = {
  url: 'https://upstream/v.mp4',
  duration: 8,
  fps: 24,
  width: 1280,
  height: 720,
  seed: 7,
};

export const noResult: VideoResult = {
  url: null,
  duration: null,
  fps: null,
  width: null,
  height: null,
  seed: null,
};

/** A task that was asked for in the compat format and is being submitted. */
export function sampleTask(changes: Partial<VideoTask> = {}): VideoTask {
  const task = newTask({
    id: 'video_1',
    keyId: 'key-1',
    groups: ['default'],
    request: readCompatBody({ model: 'film', prompt: 'A cat', seconds: '8', size: '1280x720' }),
    upstream: { name: 'studio', format: 'compat', model: 'film-1', credential: null },
    now: start,
    ttlMs: 3_600_000,
  });
  return { ...task, ...changes };
}

/** The same at an upstream of a format that knows it as `up-1`. */
export function taskAt(format: VideoFormat, changes: Partial<VideoTask> = {}): VideoTask {
  const upstream = { name: 'studio', format, model: 'film-1', id: 'up-1', credential: null };
  return sampleTask({ state: 'queued', upstream, ...changes });
}

export function update(state: TaskUpdate['state'], more: Partial<TaskUpdate> = {}): TaskUpdate {
  return { progress: null, completedAt: null, result: null, error: null, ...more, state };
}

/** A PNG as far as its first bytes tell. */
export const png = Buffer.from('\x89PNG\r\n\x1a\nrest', 'latin1');
export const pngText = png.toString('base64');
export const jpeg = Buffer.from('\xff\xd8\xff\xe0rest', 'latin1');
export const jpegText = jpeg.toString('base64');

export function part(
  name: string,
  data: string | Buffer,
  file: { readonly filename?: string; readonly contentType?: string } = {},
): FormPart {
  return {
    name,
    filename: file.filename ?? null,
    contentType: file.contentType ?? null,
    data: Buffer.from(data),
  };
}

export function jsonBody({ body }: VideoCall): JsonObject {
  return JSON.parse(Buffer.concat(body).toString()) as JsonObject;
}

/** The parts of a form, each as its text or, for a file, as an object. */
export function formBody({ contentType, body }: VideoCall): Record<string, unknown> {
  const bytes = Buffer.concat(body);
  const limits = { parts: 50, headerBytes: 4096, fieldBytes: 1e6, fileBytes: 1e6 };
  const parts = readForm(bytes, boundaryOf(contentType ?? ''), limits);
  return Object.fromEntries(
    parts.map(({ name, filename, contentType: type, data }) => [
      name,
      filename === null ? data.toString() : { filename, contentType: type, data: data.toString('base64') },
    ]),
  );
}

export function answer(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}
