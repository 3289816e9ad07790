import { chatManner } from './chat.js';
import type { JsonObject } from './json.js';
import { type MediaRequest, mediaRoutes, requestIdOf, VendorError, vendorBody } from './media-route.js';
import { laterFaults } from './prompt-wishes.js';
import { askedForStatus, bodyReply, type Manner, type Reply, type Route } from './reply.js';
import { videoUrl } from './result-url.js';
import type { VideoLedger } from './video-ledger.js';
import { findTask, makeTask, statusOf, type VideoTask } from './video-task.js';
import { readReqKey, readVendorjWish, wrongRequest } from './video-vendorj-request.js';

const version = '2022-08-31';
const done = 10_000;
const codes: Readonly<Record<number, number>> = { 400: wrongRequest, 401: 50401, 429: 50429 };
const internal = 50500;
const statuses = { queued: 'in_queue', in_progress: 'generating', completed: 'done' };

/** Number, message and HTTP status of tasks that failed, by the word that they were asked to fail with. */
const failures: Readonly<Record<string, readonly [code: number, message: string, status: number]>> = {
  content_policy: [50511, 'Post Img Risk Not Pass', 400],
  input_policy: [50412, 'Text Risk Not Pass', 400],
};

/** How the vendor words errors. */
export function vendorjManner(digest: string): Manner {
  const errorBody: Manner['errorBody'] = (status, message, code) =>
    envelope(digest, {
      code: /^\d+$/.test(code ?? '')
        ? Number(code)
        : (codes[status] ?? (status < 500 ? wrongRequest : internal)),
      message: message ?? askedForStatus(status),
      data: null,
    });
  return { ...chatManner, errorBody, errorEvent: () => errorBody(500) };
}

/** The native route of the vendor: one path, and the action in the query. */
export function vendorjRoutes(ledger: VideoLedger): Route[] {
  return mediaRoutes({
    methods: ['POST'],
    path: /^\/vendorj\/?$/,
    manner: vendorjManner,
    answer(asked) {
      const action = asked.query.get('Action');
      if (asked.query.get('Version') === version) {
        if (action === 'CVSync2AsyncSubmitTask') {
          return submit(asked, ledger);
        }
        if (action === 'CVSync2AsyncGetResult') {
          return result(asked, ledger);
        }
      }
      return noAction(asked);
    },
  });
}

function submit(asked: MediaRequest, ledger: VideoLedger): Reply {
  const wish = readVendorjWish(vendorBody(asked, wrongRequest));
  const task = makeTask(wish, ledger);
  return {
    ...success(asked, { task_id: task.id }),
    directives: [...asked.directives, ...wish.wishes.faults],
    effect() {
      ledger.made += 1;
    },
  };
}

function result(asked: MediaRequest, ledger: VideoLedger): Reply {
  const body = vendorBody(asked, wrongRequest);
  readReqKey(body);
  const { task_id: id } = body;
  if (typeof id !== 'string' || id === '') {
    throw new VendorError(400, wrongRequest, 'task_id is required');
  }
  refuseReqJson(body);
  const task = findTask(id, 'vendorj');
  if (task === null) {
    return { ...success(asked, shown('not_found', '')), directives: asked.directives };
  }
  ledger.polls += 1;
  const directives = [...asked.directives, ...laterFaults(task.pollFaults, task.id)];
  const { state } = statusOf(task, Date.now());
  if (state === 'failed') {
    return { ...failed(asked, task), directives };
  }
  const url = state === 'completed' ? videoUrl(asked.origin, task.video, task.contentFaults) : '';
  return { ...success(asked, shown(statuses[state], url)), directives };
}

/** Settings of the result come as JSON inside of the JSON. */
function refuseReqJson(body: JsonObject): void {
  const { req_json: settings = '{}' } = body;
  try {
    JSON.parse(typeof settings === 'string' ? settings : '');
  } catch {
    throw new VendorError(400, wrongRequest, 'req_json must be a string with JSON');
  }
}

function shown(status: string, url: string): object {
  return { status, video_url: url, binary_data_base64: null, image_urls: null, resp_data: '' };
}

function failed(asked: MediaRequest, task: VideoTask): Reply {
  const [code, message, status] = failures[task.failure ?? ''] ?? [internal, 'Internal Error', 500];
  return bodyReply({
    status: task.failureStatus ?? status,
    body: asked.manner.errorBody(status, message, String(code)),
    manner: asked.manner,
  });
}

function success(asked: MediaRequest, data: object): Reply {
  const body = envelope(asked.digest, { code: done, message: 'Success', data });
  return bodyReply({ status: 200, body, manner: asked.manner });
}

function envelope(
  digest: string,
  said: { readonly code: number; readonly message: string; readonly data: object | null },
): string {
  return JSON.stringify({
    ...said,
    request_id: requestIdOf(digest),
    status: said.code,
    time_elapsed: '12.345678ms',
  });
}

/** The answer of the vendor's front door, which knows actions and versions and nothing else. */
function noAction(asked: MediaRequest): Reply {
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
  return bodyReply({ status: 400, body, manner: asked.manner, directives: asked.directives });
}
