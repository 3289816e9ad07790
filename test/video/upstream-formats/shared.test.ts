import { test } from 'tap';
import { upstreamFormats } from '../../../src/video/formats.js';
import { videoFormats } from '../../../src/video/task.js';
import { requireState } from '../../../src/video/upstream-formats/shared.js';
import { refusalOf } from '../../support/refusal.js';
import { answer } from '../samples.js';

const words = {
  queued: [
    'queued',
    'submitted',
    'pending',
    'in_queue',
    'preparing',
    'created',
    'waiting',
    'not_started',
    'scheduled',
  ],
  in_progress: ['in_progress', 'processing', 'running', 'generating'],
  completed: ['completed', 'succeed', 'SUCCEEDED', 'success', 'done'],
  failed: ['failed', 'failure', 'cancelled', 'canceled', 'error', 'Rejected', 'timeout', 'timed_out'],
} as const;

test('the words for states, whoever says them', async (t) => {
  for (const [state, all] of Object.entries(words))
    for (const word of all) t.equal(requireState(word), state, word);
  for (const word of ['not_found', 'expired'])
    t.equal(refusalOf(() => requireState(word))?.kind, 'not_found');
  for (const word of ['strange', '', 'constructor', 7, null])
    t.equal(refusalOf(() => requireState(word))?.kind, 'upstream_error', String(word));
});

test('a created task of no understandable answer may have been made, and a refused one was not', async (t) => {
  for (const format of videoFormats) {
    const read = (body: Buffer) => refusalOf(() => upstreamFormats[format].readCreated(body));
    for (const body of ['', '<html>', '[]', 'null', '{}', '{"id":"..","task_id":"","data":{"task_id":{}}}'])
      t.match(read(Buffer.from(body)), { kind: 'upstream_error', unrepeatable: true }, `${format} ${body}`);
    const refusal = { code: 1301, message: 'No.', error: { message: 'No.', code: 'x' } };
    t.match(read(answer(refusal)), { unrepeatable: false }, format);
  }
});

test('an answer that does not say how a task stands is not understood either', async (t) => {
  for (const format of videoFormats) {
    for (const body of [{}, { status: 'new', data: { status: 'new', task_status: 'new' } }]) {
      const fault = refusalOf(() => upstreamFormats[format].readPolled(answer(body)));
      t.match(fault, { kind: 'upstream_error', unrepeatable: true }, format);
    }
  }
});
