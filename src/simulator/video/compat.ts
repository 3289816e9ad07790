import { createHash } from 'node:crypto';
import { laterFaults, promptWishes } from '../faults/directives.js';
import { isObject } from '../http/json.js';
import type { Reply, Route } from '../http/reply.js';
import { RequestError } from '../http/request-error.js';
import { jsonReply, type RouteRequest, routes } from '../http/route.js';
import { jpegSheet, webpThumbnail } from '../media/assets.js';
import { generatedFile, type MediaFile, serveFile } from '../media/file.js';
import { videoFile } from '../media/result.js';
import { type Fields, oneFile, readFields } from '../openai/form.js';
import {
  invalid,
  modelOf,
  readSize,
  refuseNoImage,
  refuseNoImageUrl,
  refuseUnknown,
  requiredText,
  textOrNull,
} from '../openai/values.js';
import {
  failureMessage,
  findTask,
  firstStatus,
  makeTask,
  noteQuestion,
  statusOf,
  taskOfKey,
  type VideoBook,
  type VideoStatus,
  type VideoTask,
  type VideoWish,
} from './task.js';

const maxCharacters = 32_000;
const maxSeconds = 60;
const edges = { least: 16, most: 1920 };
const fps = 24;
const keptMs = 24 * 60 * 60 * 1000;

const known: ReadonlySet<string> = new Set(['model', 'prompt', 'seconds', 'size', 'input_reference']);

/** OpenAI's routes under `/v1/videos`. */
export function compatVideoRoutes(book: VideoBook): Route[] {
  return [
    ...routes({ path: '/v1/videos', answer: (asked) => create(asked, book) }),
    ...routes({
      methods: ['GET'],
      path: /^\/v1\/videos\/[^/]+$/,
      answer: (asked) => retrieve(asked, book),
    }),
    ...routes({
      methods: ['GET', 'HEAD'],
      path: /^\/v1\/videos\/[^/]+\/content$/,
      answer: download,
    }),
  ];
}

async function create(asked: RouteRequest, book: VideoBook): Promise<Reply> {
  const wish = readWish(await readFields(asked, ['form', 'json']));
  const key = asked.header('idempotency-key');
  const keyed =
    key === undefined
      ? { id: makeTask(wish, book).id, counted: false }
      : taskOfKey(book, key, () => makeTask(wish, book).id);
  return {
    ...jsonReply(asked, shown(taskOf(keyed.id), firstStatus), wish.wishes.faults),
    effect() {
      book.made += keyed.counted ? 0 : 1;
      keyed.counted = true;
    },
  };
}

function readWish(fields: Fields): VideoWish {
  const { body } = fields;
  refuseUnknown({ ...body, ...Object.fromEntries(fields.files) }, known);
  const model = modelOf(body, 'sim-video', false);
  const wishes = promptWishes(requiredText(body, 'prompt', maxCharacters));
  const seconds = textOrNull(body, 'seconds') ?? '4';
  if (!/^[1-9]\d?$/.test(seconds) || Number(seconds) > maxSeconds) {
    throw invalid('seconds', `a string with an integer from 1 to ${maxSeconds}`);
  }
  const { width, height } = readSize(textOrNull(body, 'size') ?? '720x1280', 'size', edges);
  const reference = readReference(fields);
  return {
    format: 'compat',
    operation: reference === null ? 'text' : 'image',
    model,
    wishes,
    width,
    height,
    seconds: Number(seconds),
    fps,
    seed: null,
    images: [reference],
    externalId: null,
  };
}

/** Identifier of the reference image, or null without one. */
function readReference(fields: Fields): string | null {
  const file = oneFile(fields, 'input_reference');
  const value = fields.body.input_reference ?? null;
  if (file !== null) {
    refuseNoImage(file.type, 'input_reference');
    return createHash('sha256').update(file.bytes).digest('hex');
  }
  if (value === null) {
    return null;
  }
  if (!isObject(value)) {
    throw invalid('input_reference', 'a file, or an object with image_url or file_id');
  }
  if (typeof value.file_id === 'string' && value.image_url === undefined) {
    return value.file_id;
  }
  return refuseNoImageUrl(value.image_url, 'input_reference.image_url');
}

function retrieve(asked: RouteRequest, book: VideoBook): Reply {
  const task = taskOf(asked.path.split('/')[3] ?? '');
  return jsonReply(asked, shown(task, statusOf(task, Date.now())), noteQuestion(task, book));
}

function taskOf(id: string): VideoTask {
  const task = findTask(id, 'compat');
  if (task === null) {
    throw new RequestError(404, `Video with id '${id}' not found.`, null, 'video_not_found');
  }
  return task;
}

function shown(task: VideoTask, status: VideoStatus): object {
  const { state, progress, endedAt } = status;
  const { width, height, seconds } = task.video;
  const inSeconds = (ms: number): number => Math.floor(ms / 1000);
  return {
    id: task.id,
    object: 'video',
    created_at: inSeconds(task.createdAt),
    status: state,
    completed_at: state === 'completed' && endedAt !== null ? inSeconds(endedAt) : null,
    expires_at: state === 'completed' && endedAt !== null ? inSeconds(endedAt + keptMs) : null,
    error:
      state === 'failed' && task.failure !== null
        ? { code: task.failure, message: failureMessage(task.failure) }
        : null,
    model: task.model,
    progress,
    remixed_from_video_id: null,
    seconds: String(seconds),
    size: `${width}x${height}`,
  };
}

function download(asked: RouteRequest): Reply {
  const task = taskOf(asked.path.split('/')[3] ?? '');
  const variant = asked.query.get('variant') ?? 'video';
  if (!['video', 'thumbnail', 'spritesheet'].includes(variant)) {
    throw invalid('variant', 'video, thumbnail or spritesheet');
  }
  const { state } = statusOf(task, Date.now());
  if (state !== 'completed') {
    const message =
      state === 'failed'
        ? 'Video generation failed, there is no content to download.'
        : 'Video is not ready yet, use GET /v1/videos/{video_id} to check status.';
    throw new RequestError(404, message, null, 'video_not_ready');
  }
  const directives = [...asked.directives, ...laterFaults(task.contentFaults, `${task.id} content`)];
  return serveFile(asked, fileOf(task, variant), directives);
}

function fileOf(task: VideoTask, variant: string): MediaFile {
  const { width, height, seed } = task.video;
  if (variant === 'video') {
    return videoFile(task.video);
  }
  const isThumbnail = variant === 'thumbnail';
  const type = isThumbnail ? 'image/webp' : 'image/jpeg';
  return generatedFile(JSON.stringify([type, width, height, seed]), type, () =>
    isThumbnail ? webpThumbnail({ width, height }) : jpegSheet({ width, height }),
  );
}
