import { test } from 'tap';
import { mayRefer, referredTo } from '../../../src/protocols/responses/references.js';
import { mayBeCompleted, storedAs } from '../../../src/protocols/responses/stored-items.js';

/** Items that their upstream completes from what it has stored as `rs_1`. */
const stored = [
  '{"id":"rs_1","summary":[],"type":"reasoning","encrypted_content":null}',
  '{"id":"rs_1","summary":[],"type":"reasoning","content":[]}',
  '{"id":"rs_1","summary":[],"type":"reasoning","content":[ ],"result":"AAAA"}',
  '{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":""}',
  '{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":" \\n"}',
  '{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":["x"],"content":"x"}',
  '{"type":"reas\\u006fning","\\u0069d":"rs_1"}',
  '{"type":"image_generation_call","id":"rs_1"}',
  '{"type":"image_generation_call","id":"rs_1","result":null,"content":[{}]}',
  '{"type" : "file_search_call","id":"rs_1","queries":[],"results":null}',
  '{"type":"web_search_call","id":"rs_1","status":"completed"}',
  '{"type":"code_interpreter_call","id":"rs_1","container_id":"cntr_1"}',
  '{"summary":[{"type":"summary_text","text":"x"}],"type":"reasoning","status":"completed","id":"rs_1"}',
  '{"id":"rs_1","x":"{","type":"reasoning"}',
  '{"id":"rs_1","x":"{",":1,":"encrypted_content","type":"reasoning"}',
];

/** Items that contain all that they are, or that no upstream finds. */
const whole = [
  '{"id":"rs_1","summary":[],"type":"reasoning","encrypted_content":"x"}',
  '{"id":"rs_1","summary":[],"type":"reasoning","encrypted_content":"x","encryptedContent":"x"}',
  '{"id":"rs_1","summary":[],"type":"reasoning","content":[{"type":"reasoning_text","text":"x"}]}',
  '{"type":"image_generation_call","id":"rs_1","result":"AAAA"}',
  '{"summary":[],"type":"reasoning"}',
  '{"id":"rs_1","type":"message","role":"user","content":[{"type":"reasoning","id":"rs_2"}]}',
  '{"id":"rs_1","id":"rs_2","type":"function_call","name":"\\u0065"}',
  '"reasoning"',
  'null',
];

const unclear = [
  '{"type":"reasoning","id":"rs_1","id":"rs_2"}',
  '{"type":"message","type":"reasoning","id":"rs_1"}',
  '{"type":"reasoning","id":"rs_1","type":"message"}',
  '{"type":"message","id":"rs_1","Type":"reasoning"}',
  '{"type":"reasoning","id":"rs_1","encrypted_content":"x","encrypted_content":null}',
  '{"type":"reasoning","id":"rs_1","encrypted_content":"x","Encrypted_Content":null}',
  '{"type":"image_generation_call","id":"rs_1","result":"x","\\u0072esult":null}',
];

const bodyOf = (item: string): Buffer =>
  Buffer.from(`{"model":"m","input":[{"role":"user","content":"x"},${item}]}`);

test('an item that its upstream completes from its store is found, however it is written', (t) => {
  for (const item of stored) {
    t.ok(mayRefer(bodyOf(item), true), item);
    t.ok(mayBeCompleted(bodyOf(item)), item);
    t.equal(referredTo(item), null, item);
    t.equal(storedAs(item), 'rs_1', item);
  }
  t.ok(mayBeCompleted(Buffer.from('{"\\u0069nput":[]}')));
  t.end();
});

test('an item that parsers may complete or not is refused', (t) => {
  for (const item of unclear) {
    t.ok(mayRefer(bodyOf(item), true), item);
    t.ok(mayBeCompleted(bodyOf(item)), item);
    t.throws(() => storedAs(item), { code: 'invalid_request_body' }, item);
  }
  t.throws(() => storedAs('{"type":"image_generation_call","Id":"rs_1"}'), { code: 'invalid_request_body' });
  t.end();
});

test('items with their content, and those of an upstream that completes none, cost no search', (t) => {
  for (const item of whole) {
    t.equal(storedAs(item), null, item);
    if (item.includes('encryptedContent') || item.includes('\\u00')) continue;
    t.notOk(mayRefer(bodyOf(item), true), item);
    t.notOk(mayBeCompleted(bodyOf(item)), item);
  }
  for (const item of stored) if (!item.includes('\\u00')) t.notOk(mayRefer(bodyOf(item), false), item);
  for (const body of [
    '{}',
    '{"input":[]}',
    '{"input":"reasoning"}',
    '{"tools":[{"type":"reasoning","id":"x"}]}',
  ])
    t.notOk(mayBeCompleted(Buffer.from(body)), body);
  t.end();
});
