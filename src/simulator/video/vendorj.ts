import { type Directive, promptWishes } from '../faults/directives.js';
import type { JsonObject } from '../http/json.js';
import { type AnswerFormat, bodyReply, type Reply, type Route } from '../http/reply.js';
import { RequestError } from '../http/request-error.js';
import { jsonReply, type RouteRequest, refusal, routes } from '../http/route.js';
import { videoUrl } from '../media/result.js';
import { requestIdOf, vendorBody, vendorFormat } from '../media/route.js';
import { isAddress, isBase64 } from '../openai/values.js';
import {
  findTask,
  makeTask,
  noteQuestion,
  statusOf,
  type VideoBook,
  type VideoTask,
  type VideoWish,
} from './task.js';
import { vendorNumber, vendorText, vendorWord } from './vendor-values.js';

/** The vendor's code for an invalid request. */
const wrongRequest = '50400';

const maxCharacters = 4000;
const maxSeed = 2_147_483_647;
const fps = 24;
/** Seconds by frames: those of the seconds plus one. */
const frames = { 121: 5, 241: 10 } as const;
const shapes = {
  '16:9': [1280, 720],
  '4:3': [960, 720],
  '1:1': [720, 720],
  '3:4': [720, 960],
  '9:16': [720, 1280],
  '21:9': [1680, 720],
} as const;

/** The `req_key` of a request, its model, which every action requires. */
function readReqKey(body: JsonObject): string {
  const key = body.req_key;
  if (key === undefined || key === null || key === '') {
    throw refused('req_key is required');
  }
  if (key !== 'sim-video') {
    throw refused(`req_key ${JSON.stringify(key)} does not exist`);
  }
  return key;
}

/**
 * Reads and checks the body that creates a task.
 * @throws RequestError with what a caller did wrong.
 */
function readVendorjWish(body: JsonObject): VideoWish {
  const model = readReqKey(body);
  const prompt = vendorText(body, 'prompt', maxCharacters, refused) ?? '';
  const images = [
    ...list(body, 'binary_data_base64', isBase64, 'base64 without a prefix such as data:image/png;base64,'),
    ...list(body, 'image_urls', isAddress, 'http(s) URLs'),
  ];
  if (prompt === '' && images.length === 0) {
    throw refused('prompt is required where no image is given');
  }
  const seed = vendorNumber(body, 'seed', { least: -1, most: maxSeed, whole: true }, refused);
  const shape = vendorWord(body, 'aspect_ratio', ['16:9', '4:3', '1:1', '3:4', '9:16', '21:9'], refused);
  const [width, height] = shapes[shape];
  const wanted = body.frames ?? 121;
  if (wanted !== 121 && wanted !== 241) {
    throw refused('frames must be 121 or 241');
  }
  return {
    format: 'vendorj',
    operation: images.length === 0 ? 'text' : 'image',
    model,
    wishes: promptWishes(prompt),
    width,
    height,
    seconds: frames[wanted],
    fps,
    seed: seed === -1 ? null : seed,
    images,
    externalId: null,
  };
}

function list(
  body: JsonObject,
  name: string,
  holds: (text: string) => boolean,
  what: string,
): readonly string[] {
  const value: unknown = body[name] ?? [];
  if (!Array.isArray(value) || !value.every((one) => typeof one === 'string' && holds(one))) {
    throw refused(`${name} must be an array of ${what}`);
  }
  return value;
}

function refused(message: string): RequestError {
  return new RequestError(400, message, null, wrongRequest);
}

const version = '2022-08-31';
const done = 10_000;
const codes: Readonly<Record<number, string>> = { 400: wrongRequest, 401: '50401', 429: '50429' };
const internal = '50500';
const statuses = { queued: 'in_queue', in_progress: 'generating', completed: 'done' };

/** Code, message and HTTP status of failed tasks, by the word of the directive. */
const failures: Readonly<Record<string, readonly [code: string, message: string, status: number]>> = {
  content_policy: ['50511', 'Post Img Risk Not Pass', 400],
  input_policy: ['50412', 'Text Risk Not Pass', 400],
};

/** The vendor's answer format. */
export function vendorjFormat(digest: string): AnswerFormat {
  return vendorFormat(
    (status) => codes[status] ?? (status < 500 ? wrongRequest : internal),
    /^\d+$/,
    (code, message) => JSON.stringify(envelope(digest, { code: Number(code), message, data: null })),
  );
}

/** The native route of the vendor: one path, and the action in the query. */
export function vendorjRoutes(book: VideoBook): Route[] {
  return routes({
    path: /^\/vendorj\/?$/,
    answerFormat: vendorjFormat,
    answer(asked) {
      const action = asked.query.get('Action');
      if (asked.query.get('Version') === version) {
        if (action === 'CVSync2AsyncSubmitTask') {
          return submit(asked, book);
        }
        if (action === 'CVSync2AsyncGetResult') {
          return result(asked, book);
        }
      }
      return noAction(asked);
    },
  });
}

function submit(asked: RouteRequest, book: VideoBook): Reply {
  const wish = readVendorjWish(vendorBody(asked, wrongRequest));
  const task = makeTask(wish, book);
  return {
    ...success(asked, { task_id: task.id }, wish.wishes.faults),
    effect() {
      book.made += 1;
    },
  };
}

function result(asked: RouteRequest, book: VideoBook): Reply {
  const body = vendorBody(asked, wrongRequest);
  readReqKey(body);
  const { task_id: id } = body;
  if (typeof id !== 'string' || id === '') {
    throw refused('task_id is required');
  }
  refuseReqJson(body);
  const task = findTask(id, 'vendorj');
  if (task === null) {
    return success(asked, shown('not_found', ''), []);
  }
  const faults = noteQuestion(task, book);
  const { state } = statusOf(task, Date.now());
  if (state === 'failed') {
    return refusal(failureOf(task), asked.answerFormat, [...asked.directives, ...faults]);
  }
  const url = state === 'completed' ? videoUrl(asked.origin, task.video, task.contentFaults) : '';
  return success(asked, shown(statuses[state], url), faults);
}

/** Refuses `req_json`, settings of the result as JSON text, if that is not valid JSON. */
function refuseReqJson(body: JsonObject): void {
  const { req_json: settings = '{}' } = body;
  try {
    JSON.parse(typeof settings === 'string' ? settings : '');
  } catch {
    throw refused('req_json must be a string with JSON');
  }
}

function shown(status: string, url: string): object {
  return { status, video_url: url, binary_data_base64: null, image_urls: null, resp_data: '' };
}

function failureOf(task: VideoTask): RequestError {
  const [code, message, status] = failures[task.failure ?? ''] ?? [internal, 'Internal Error', 500];
  return new RequestError(task.failureStatus ?? status, message, null, code);
}

function success(asked: RouteRequest, data: object, faults: readonly Directive[]): Reply {
  return jsonReply(asked, envelope(asked.digest, { code: done, message: 'Success', data }), faults);
}

function envelope(
  digest: string,
  said: { readonly code: number; readonly message: string; readonly data: object | null },
): object {
  return { ...said, request_id: requestIdOf(digest), status: said.code, time_elapsed: '12.345678ms' };
}

/** The answer of the vendor's API gateway, which checks only action and version. */
function noAction(asked: RouteRequest): Reply {
  const action = asked.query.get('Action') ?? '';
  const asksFor = asked.query.get('Version') ?? '';
  const body = JSON.stringify({
    ResponseMetadata: {
      RequestId: requestIdOf(asked.digest),
      Action: action,
      Version: asksFor,
      Service: 'cv',
      Region: 'simulated',
      Error: {
        CodeN: 100_008,
        Code: 'InvalidActionOrVersion',
        Message: `Could not find operation ${action} for version ${asksFor}.`,
      },
    },
  });
  return bodyReply({ status: 400, body, answerFormat: asked.answerFormat, directives: asked.directives });
}
