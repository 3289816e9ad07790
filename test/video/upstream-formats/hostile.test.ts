import { test } from 'tap';
import { GatewayError } from '../../../src/errors.js';
import { advance, submitted } from '../../../src/video/advance.js';
import { readTask, writeTask } from '../../../src/video/book.js';
import { clientFormats, upstreamFormats } from '../../../src/video/formats.js';
import { type VideoTask, videoFormats } from '../../../src/video/task.js';
import { cases, fc } from '../../support/seed.js';
import { context, sampleTask, start } from '../samples.js';

const words = fc.constantFrom<unknown>(
  'queued',
  'submitted',
  'in_progress',
  'processing',
  'completed',
  'succeed',
  'done',
  'failed',
  'not_found',
  'constructor',
);
const values = fc.oneof(
  { depthSize: 'small' },
  fc.jsonValue({ maxDepth: 2 }),
  words,
  fc.constantFrom<unknown>(
    0,
    10000,
    1301,
    50412,
    50429,
    '5.0',
    'https://h/v.mp4',
    'up-1',
    '50%',
    '\ud800',
    1e308,
  ),
);
const record = (members: readonly string[], value: fc.Arbitrary<unknown>) =>
  fc.record(Object.fromEntries(members.map((name) => [name, value])), { requiredKeys: [] });
const video = record(['id', 'url', 'duration'], values);
const data = record(
  ['task_id', 'task_status', 'task_status_msg', 'task_result', 'updated_at', 'status', 'video_url'],
  fc.oneof(values, record(['videos'], fc.oneof(values, fc.array(fc.oneof(video, values), { maxLength: 2 })))),
);
const members = fc.oneof(
  { weight: 3, arbitrary: values },
  { weight: 2, arbitrary: data },
  { weight: 1, arbitrary: record(['code', 'message', 'duration', 'fps', 'width', 'height', 'seed'], values) },
);
const answers = record(
  [
    'id',
    'task_id',
    'status',
    'progress',
    'url',
    'metadata',
    'error',
    'code',
    'message',
    'data',
    'seconds',
    'size',
    'completed_at',
  ],
  members,
);
const bodies = fc.oneof(
  { weight: 6, arbitrary: answers.map((value) => JSON.stringify(value)) },
  { weight: 1, arbitrary: fc.json() },
  { weight: 1, arbitrary: fc.string() },
);

/** The value, or null for an error that is the gateway's own; any other goes through. */
function orRefusal<T>(read: () => T): T | null {
  try {
    return read();
  } catch (fault) {
    if (fault instanceof GatewayError) return null;
    throw fault;
  }
}

/** Whatever became of a task can be stored, shown in every format, and asked for again. */
function isSound(task: VideoTask): boolean {
  if (JSON.stringify(readTask(writeTask(task))) !== JSON.stringify(task)) return false;
  for (const format of videoFormats) {
    JSON.parse(clientFormats[format].created(task, context));
    JSON.parse(clientFormats[format].shown(task, context));
  }
  const wire = upstreamFormats[task.upstream.format];
  return wire.poll(task).path.startsWith('/') && wire.content(task, 'video')?.includes('..') !== true;
}

test('no answer of an upstream breaks its reader or the task', async (t) => {
  for (const format of videoFormats) {
    const wire = upstreamFormats[format];
    const upstream = { name: 'studio', format, model: 'film-1', id: null, credential: null };
    fc.assert(
      fc.property(bodies, (text) => {
        const body = Buffer.from(text);
        const made = orRefusal(() => wire.readCreated(body));
        const accepted = made ?? { id: 'up-1', update: null };
        const task = submitted(sampleTask({ upstream }), accepted, start);
        const polled = orRefusal(() => wire.readPolled(body));
        return isSound(polled === null ? task : advance(task, polled, start + 1));
      }),
      { numRuns: cases(300) },
    );
    t.pass(format);
  }
});

test('what is no JSON object is no answer', async (t) => {
  for (const format of videoFormats) {
    for (const text of ['', 'null', '[]', '7', '"queued"', '<html>', '{"id":']) {
      const wanted = { name: 'GatewayError', kind: 'upstream_error', status: 502 };
      t.throws(() => upstreamFormats[format].readCreated(Buffer.from(text)), wanted, `${format} ${text}`);
      t.throws(() => upstreamFormats[format].readPolled(Buffer.from(text)), wanted, `${format} ${text}`);
    }
  }
});
