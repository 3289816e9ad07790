import { chatFormat } from '../chat/route.js';
import { laterFaults, promptWishes } from '../faults/directives.js';
import { isObject, type JsonObject } from '../http/json.js';
import { type AnswerFormat, askedForStatus, bodyReply, type Reply, type Route } from '../http/reply.js';
import { videoUrl } from '../media/result.js';
import { type MediaRequest, mediaRoutes, requestIdOf, VendorError, vendorBody } from '../media/route.js';
import { isAddress, isBase64 } from '../openai/values.js';
import {
  failureMessage,
  findTask,
  makeTask,
  rememberExternalId,
  statusOf,
  type VideoLedger,
  type VideoTask,
  type VideoWish,
} from './task.js';
import { vendorNumber, vendorText, vendorWord } from './vendor-values.js';

/** The vendor's number for a parameter with a wrong value. */
const wrongValue = 1201;

const mostCharacters = 2500;
const mostExternalId = 64;
const cameraTypes = ['simple', 'down_back', 'forward_up', 'right_turn_forward', 'left_turn_forward'];
const cameraMoves = ['horizontal', 'vertical', 'pan', 'tilt', 'roll', 'zoom'];
const mostCameraMove = 10;
const shapes = { '16:9': [16, 9], '9:16': [9, 16], '1:1': [1, 1] } as const;
/** Pixels of the shorter edge. */
const shortEdges = { std: 720, pro: 1080 } as const;
const fps = 24;

/**
 * Reads and checks a native body.
 * @throws VendorError with what a caller did wrong.
 */
function readVendorkWish(body: JsonObject, operation: 'text' | 'image'): VideoWish {
  const model = vendorText(body, 'model_name', mostCharacters, refused);
  if (model !== 'sim-video') {
    throw refused(`model_name value '${String(model)}' is invalid`);
  }
  const prompt = vendorText(body, 'prompt', mostCharacters, refused);
  const images = operation === 'image' ? [image(body, 'image'), image(body, 'image_tail')] : [];
  if (operation === 'text' && (prompt === null || prompt === '')) {
    throw refused('prompt must not be empty');
  }
  if (operation === 'image' && images.every((one) => one === null)) {
    throw refused('image and image_tail cannot be empty at the same time');
  }
  vendorText(body, 'negative_prompt', mostCharacters, refused);
  vendorNumber(body, 'cfg_scale', { least: 0, most: 1, whole: false }, refused);
  vendorWord(body, 'sound', ['off', 'on'], refused);
  readCamera(body);
  const callback = vendorText(body, 'callback_url', mostCharacters, refused);
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
    externalId: vendorText(body, 'external_task_id', mostExternalId, refused) || null,
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
  const bounds = { least: -mostCameraMove, most: mostCameraMove, whole: false };
  vendorNumber(config, moves[0] ?? '', bounds, refused);
}

function refused(message: string): VendorError {
  return new VendorError(400, wrongValue, message);
}

const wrongBody = 1200;
const missing = 1203;
const codes: Readonly<Record<number, number>> = {
  400: wrongBody,
  401: 1000,
  402: 1102,
  403: 1103,
  404: missing,
  405: 1202,
  429: 1302,
  503: 5001,
  504: 5002,
};

const statuses = { queued: 'submitted', in_progress: 'processing', completed: 'succeed', failed: 'failed' };

/** How the vendor words errors. */
export function vendorkFormat(digest: string): AnswerFormat {
  const errorBody: AnswerFormat['errorBody'] = (status, message, code) =>
    JSON.stringify({
      // A code of another family is none of its numbers.
      code: /^\d+$/.test(code ?? '') ? Number(code) : (codes[status] ?? (status < 500 ? wrongBody : 5000)),
      message: message ?? askedForStatus(status),
      request_id: requestIdOf(digest),
    });
  return { ...chatFormat, errorBody, errorEvent: () => errorBody(500) };
}

/** The native routes of the vendor under `/vendork`. */
export function vendorkRoutes(ledger: VideoLedger): Route[] {
  return (['text', 'image'] as const).flatMap((operation) => {
    const path = `/vendork/v1/videos/${operation}2video`;
    return [
      ...mediaRoutes({
        methods: ['POST'],
        path,
        answerFormat: vendorkFormat,
        answer: (asked) => create(asked, operation, ledger),
      }),
      ...mediaRoutes({
        methods: ['GET'],
        path: new RegExp(`^${path}/[^/]+$`),
        answerFormat: vendorkFormat,
        answer: (asked) => query(asked, operation, ledger),
      }),
    ];
  });
}

function create(asked: MediaRequest, operation: 'text' | 'image', ledger: VideoLedger): Reply {
  const wish = readVendorkWish(vendorBody(asked, wrongBody), operation);
  const { externalId } = wish;
  if (externalId !== null && ledger.byExternalId.has(externalId)) {
    throw new VendorError(400, wrongValue, `external_task_id '${externalId}' is in use already`);
  }
  const task = makeTask(wish, ledger);
  const { id, createdAt } = task;
  const data = {
    task_id: id,
    task_status: 'submitted',
    task_info: externalId === null ? {} : { external_task_id: externalId },
    created_at: createdAt,
    updated_at: createdAt,
  };
  return {
    ...enveloped(asked, data),
    directives: [...asked.directives, ...wish.wishes.faults],
    effect() {
      ledger.made += 1;
      if (externalId !== null) {
        rememberExternalId(ledger, externalId, id);
      }
    },
  };
}

function query(asked: MediaRequest, operation: 'text' | 'image', ledger: VideoLedger): Reply {
  const name = decoded(asked.path.split('/').at(-1) ?? '');
  const task = findTask(ledger.byExternalId.get(name) ?? name, 'vendork');
  if (task === null || task.operation !== operation) {
    throw new VendorError(404, missing, `task '${name}' not found`);
  }
  ledger.polls += 1;
  const directives = [...asked.directives, ...laterFaults(task.pollFaults, task.id)];
  return { ...enveloped(asked, shown(asked, task)), directives };
}

/** Of a path segment with a percent sign that means nothing, the segment itself. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function shown(asked: MediaRequest, task: VideoTask): object {
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

function enveloped(asked: MediaRequest, data: object): Reply {
  const body = JSON.stringify({
    code: 0,
    message: 'SUCCEED',
    request_id: requestIdOf(asked.digest),
    data,
  });
  return bodyReply({ status: 200, body, answerFormat: asked.answerFormat });
}
