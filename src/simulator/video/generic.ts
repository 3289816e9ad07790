import { promptWishes } from '../faults/directives.js';
import { isObject, type JsonObject } from '../http/json.js';
import type { Reply, Route } from '../http/reply.js';
import { RequestError } from '../http/request-error.js';
import { jsonReply, type RouteRequest, routes } from '../http/route.js';
import { videoUrl } from '../media/result.js';
import { readFields } from '../openai/form.js';
import {
  integer,
  invalid,
  isBase64,
  isImageUrl,
  modelOf,
  numberWithin,
  oneOf,
  requiredText,
  textOrNull,
} from '../openai/values.js';
import {
  failureMessage,
  findTask,
  firstStatus,
  isPolicy,
  makeTask,
  noteQuestion,
  statusOf,
  type VideoBook,
  type VideoTask,
  type VideoWish,
} from './task.js';

const maxCharacters = 32_000;
const leastEdge = 16;
const maxEdge = 1920;
const maxSeconds = 60;
const maxFrameRate = 60;

/** The routes under `/v1/video/generations`. */
export function genericVideoRoutes(book: VideoBook): Route[] {
  const path = '/v1/video/generations';
  return [
    ...routes({ path, answer: (asked) => create(asked, book) }),
    ...routes({
      methods: ['GET'],
      path: /^\/v1\/video\/generations\/[^/]+$/,
      answer: (asked) => query(asked, book),
    }),
  ];
}

async function create(asked: RouteRequest, book: VideoBook): Promise<Reply> {
  const wish = readWish((await readFields(asked, ['json'])).body);
  const task = makeTask(wish, book);
  return {
    ...jsonReply(asked, { task_id: task.id, status: firstStatus.state }, wish.wishes.faults),
    effect() {
      book.made += 1;
    },
  };
}

function readWish(body: JsonObject): VideoWish {
  const model = modelOf(body, 'sim-video', false);
  const wishes = promptWishes(requiredText(body, 'prompt', maxCharacters));
  const image = textOrNull(body, 'image');
  if (image !== null && !isImageUrl(image) && !isBase64(image)) {
    throw invalid('image', 'an http(s) URL or an image in base64');
  }
  const chosen = integer(body, 'seed', -1, Infinity);
  integer(body, 'n', 1, 1);
  oneOf(body, 'response_format', ['url']);
  if (body.metadata !== undefined && body.metadata !== null && !isObject(body.metadata)) {
    throw invalid('metadata', 'an object');
  }
  return {
    format: 'generic',
    operation: image === null ? 'text' : 'image',
    model,
    wishes,
    width: integer(body, 'width', leastEdge, maxEdge) ?? 1280,
    height: integer(body, 'height', leastEdge, maxEdge) ?? 720,
    seconds: numberWithin(body, 'duration', 1, maxSeconds) ?? 5,
    fps: integer(body, 'fps', 1, maxFrameRate) ?? 24,
    seed: chosen === -1 ? null : chosen,
    images: [image],
    externalId: null,
  };
}

function query(asked: RouteRequest, book: VideoBook): Reply {
  const id = asked.path.split('/')[4] ?? '';
  const task = findTask(id, 'generic');
  if (task === null) {
    throw new RequestError(404, `Task '${id}' not found.`, null, 'task_not_found');
  }
  return jsonReply(asked, shown(asked, task), noteQuestion(task, book));
}

function shown(asked: RouteRequest, task: VideoTask): object {
  const { state } = statusOf(task, Date.now());
  const base = { task_id: task.id, status: state };
  if (state === 'completed') {
    const { width, height, seconds, fps } = task.video;
    return {
      ...base,
      url: videoUrl(asked.origin, task.video, task.contentFaults),
      format: 'mp4',
      metadata: { duration: seconds, fps, width, height, seed: task.seed },
    };
  }
  if (state === 'failed' && task.failure !== null) {
    const code = isPolicy(task.failure) ? 400 : 500;
    return { ...base, error: { code, message: failureMessage(task.failure) } };
  }
  return base;
}
