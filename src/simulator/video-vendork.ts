import { chatManner } from './chat.js';
import { type MediaRequest, mediaRoutes, requestIdOf, VendorError, vendorBody } from './media-route.js';
import { laterFaults } from './prompt-wishes.js';
import { askedForStatus, bodyReply, type Manner, type Reply, type Route } from './reply.js';
import { videoUrl } from './result-url.js';
import { rememberExternalId, type VideoLedger } from './video-ledger.js';
import { failureMessage, findTask, makeTask, statusOf, type VideoTask } from './video-task.js';
import { readVendorkWish, wrongValue } from './video-vendork-request.js';

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
export function vendorkManner(digest: string): Manner {
  const errorBody: Manner['errorBody'] = (status, message, code) =>
    JSON.stringify({
      // A code of another family is none of its numbers.
      code: /^\d+$/.test(code ?? '') ? Number(code) : (codes[status] ?? (status < 500 ? wrongBody : 5000)),
      message: message ?? askedForStatus(status),
      request_id: requestIdOf(digest),
    });
  return { ...chatManner, errorBody, errorEvent: () => errorBody(500) };
}

/** The native routes of the vendor under `/vendork`. */
export function vendorkRoutes(ledger: VideoLedger): Route[] {
  return (['text', 'image'] as const).flatMap((operation) => {
    const path = `/vendork/v1/videos/${operation}2video`;
    return [
      ...mediaRoutes({
        methods: ['POST'],
        path,
        manner: vendorkManner,
        answer: (asked) => create(asked, operation, ledger),
      }),
      ...mediaRoutes({
        methods: ['GET'],
        path: new RegExp(`^${path}/[^/]+$`),
        manner: vendorkManner,
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
  return bodyReply({ status: 200, body, manner: asked.manner });
}
