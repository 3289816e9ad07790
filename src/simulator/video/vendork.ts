import { type Directive, promptWishes } from '../faults/directives.js';
import { isObject, type JsonObject } from '../http/json.js';
import type { AnswerFormat, Reply, Route } from '../http/reply.js';
import { RequestError } from '../http/request-error.js';
import { jsonReply, type RouteRequest, routes } from '../http/route.js';
import { videoUrl } from '../media/result.js';
import { requestIdOf, vendorBody, vendorFormat } from '../media/route.js';
import { isAddress, isBase64 } from '../openai/values.js';
import {
  failureMessage,
  findTask,
  makeTask,
  noteQuestion,
  rememberExternalId,
  statusOf,
  type VideoBook,
  type VideoTask,
  type VideoWish,
} from './task.js';
import { vendorNumber, vendorText, vendorWord } from './vendor-values.js';

/** The vendor's code for a parameter with an invalid value. */
const wrongValue = '1201';

const maxCharacters = 2500;
const maxExternalId = 64;
const cameraTypes = ['simple', 'down_back', 'forward_up', 'right_turn_forward', 'left_turn_forward'];
const cameraMoves = ['horizontal', 'vertical', 'pan', 'tilt', 'roll', 'zoom'];
const maxCameraMove = 10;
const shapes = { '16:9': [16, 9], '9:16': [9, 16], '1:1': [1, 1] } as const;
/** Pixels of the shorter edge. */
const shortEdges = { std: 720, pro: 1080 } as const;
const fps = 24;

/**
 * Reads and checks a native body.
 * @throws RequestError with what a caller did wrong.
 */
function readVendorkWish(body: JsonObject, operation: 'text' | 'image'): VideoWish {
  const model = vendorText(body, 'model_name', maxCharacters, refused);
  if (model !== 'sim-video') {
    throw refused(`model_name value '${String(model)}' is invalid`);
  }
  const prompt = vendorText(body, 'prompt', maxCharacters, refused);
  const images = operation === 'image' ? [image(body, 'image'), image(body, 'image_tail')] : [];
  if (operation === 'text' && (prompt === null || prompt === '')) {
    throw refused('prompt must not be empty');
  }
  if (operation === 'image' && images.every((one) => one === null)) {
    throw refused('image and image_tail cannot be empty at the same time');
  }
  vendorText(body, 'negative_prompt', maxCharacters, refused);
  vendorNumber(body, 'cfg_scale', { least: 0, most: 1, whole: false }, refused);
  vendorWord(body, 'sound', ['off', 'on'], refused);
  readCamera(body);
  const callback = vendorText(body, 'callback_url', maxCharacters, refused);
  if (callback !== null && callback !== '' && !isAddress(callback)) {
    throw refused('callback_url must be an http(s) URL');
  }
  const short = shortEdges[vendorWord(body, 'mode', ['std', 'pro'], refused)];
  const [across, down] = shapes[vendorWord(body, 'aspect_ratio', ['16:9', '9:16', '1:1'], refused)];
  const unit = short / Math.min(across, down);
  return {
    format: 'vendork',
    operation,
    model,
    wishes: promptWishes(prompt ?? ''),
    width: across * unit,
    height: down * unit,
    seconds: Number(vendorWord(body, 'duration', ['5', '10'], refused)),
    fps,
    seed: null,
    images,
    externalId: vendorText(body, 'external_task_id', maxExternalId, refused) || null,
  };
}

function image(body: JsonObject, name: string): string | null {
  const value = body[name] ?? null;
  if (value === null || value === '') {
    return null;
  }
  if (typeof value !== 'string' || !(isAddress(value) || isBase64(value))) {
    throw refused(`${name} must be an http(s) URL or base64 without a prefix such as data:image/png;base64,`);
  }
  return value;
}

function readCamera(body: JsonObject): void {
  const camera = body.camera_control ?? null;
  if (camera === null) {
    return;
  }
  const type = isObject(camera) ? camera.type : null;
  if (!isObject(camera) || typeof type !== 'string' || !cameraTypes.includes(type)) {
    throw refused(`camera_control.type must be one of ${cameraTypes.join(', ')}`);
  }
  if (type !== 'simple') {
    return;
  }
  const config = camera.config;
  const moves = isObject(config) ? cameraMoves.filter((name) => (config[name] ?? 0) !== 0) : [];
  if (!isObject(config) || moves.length !== 1) {
    throw refused('camera_control.config must have exactly one value that is not zero');
  }
  const bounds = { least: -maxCameraMove, most: maxCameraMove, whole: false };
  vendorNumber(config, moves[0] ?? '', bounds, refused);
}

function refused(message: string): RequestError {
  return new RequestError(400, message, null, wrongValue);
}

const wrongBody = '1200';
const missing = '1203';
const codes: Readonly<Record<number, string>> = {
  400: wrongBody,
  401: '1000',
  402: '1102',
  403: '1103',
  404: missing,
  405: '1202',
  429: '1302',
  503: '5001',
  504: '5002',
};

const statuses = { queued: 'submitted', in_progress: 'processing', completed: 'succeed', failed: 'failed' };

/** The vendor's answer format. */
export function vendorkFormat(digest: string): AnswerFormat {
  return vendorFormat(
    (status) => codes[status] ?? (status < 500 ? wrongBody : '5000'),
    /^\d+$/,
    (code, message) => JSON.stringify({ code: Number(code), message, request_id: requestIdOf(digest) }),
  );
}

/** The native routes of the vendor under `/vendork`. */
export function vendorkRoutes(book: VideoBook): Route[] {
  return (['text', 'image'] as const).flatMap((operation) => {
    const path = `/vendork/v1/videos/${operation}2video`;
    return [
      ...routes({
        path,
        answerFormat: vendorkFormat,
        answer: (asked) => create(asked, operation, book),
      }),
      ...routes({
        methods: ['GET'],
        path: new RegExp(`^${path}/[^/]+$`),
        answerFormat: vendorkFormat,
        answer: (asked) => query(asked, operation, book),
      }),
    ];
  });
}

function create(asked: RouteRequest, operation: 'text' | 'image', book: VideoBook): Reply {
  const wish = readVendorkWish(vendorBody(asked, wrongBody), operation);
  const { externalId } = wish;
  if (externalId !== null && book.byExternalId.has(externalId)) {
    throw refused(`external_task_id '${externalId}' is in use already`);
  }
  const task = makeTask(wish, book);
  const { id, createdAt } = task;
  const data = {
    task_id: id,
    task_status: 'submitted',
    task_info: externalId === null ? {} : { external_task_id: externalId },
    created_at: createdAt,
    updated_at: createdAt,
  };
  return {
    ...enveloped(asked, data, wish.wishes.faults),
    effect() {
      book.made += 1;
      if (externalId !== null) {
        rememberExternalId(book, externalId, id);
      }
    },
  };
}

function query(asked: RouteRequest, operation: 'text' | 'image', book: VideoBook): Reply {
  const name = decoded(asked.path.split('/').at(-1) ?? '');
  const task = findTask(book.byExternalId.get(name) ?? name, 'vendork');
  if (task === null || task.operation !== operation) {
    throw new RequestError(404, `task '${name}' not found`, null, missing);
  }
  return enveloped(asked, shown(asked, task), noteQuestion(task, book));
}

/** Decodes a path segment; one with an invalid escape is returned unchanged. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function shown(asked: RouteRequest, task: VideoTask): object {
  const now = Date.now();
  const { state, endedAt } = statusOf(task, now);
  const url = videoUrl(asked.origin, task.video, task.contentFaults);
  const videos = [{ id: `${task.id}-1`, url, duration: task.video.seconds.toFixed(1) }];
  return {
    task_id: task.id,
    task_status: statuses[state],
    task_status_msg: state === 'failed' && task.failure !== null ? failureMessage(task.failure) : '',
    task_info: task.externalId === null ? {} : { external_task_id: task.externalId },
    task_result: state === 'completed' ? { videos } : {},
    created_at: task.createdAt,
    updated_at: endedAt ?? now,
  };
}

function enveloped(asked: RouteRequest, data: object, faults: readonly Directive[]): Reply {
  const request_id = requestIdOf(asked.digest);
  return jsonReply(asked, { code: 0, message: 'SUCCEED', request_id, data }, faults);
}
