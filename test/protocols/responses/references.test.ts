import { test } from 'tap';
import { mayRefer, referredTo, storedAs } from '../../../src/protocols/responses/references.js';

/** Items that some parser reads as a reference to `msg_1`. */
const references = [
  '{"type":"item_reference","id":"msg_1"}',
  '{"id":"msg_1"}',
  '{"id":"msg_1","type":"item\\u005freference"}',
  '{"id":"msg_1","type":"item_ref\\u0065rence","type2":"x"}',
  '{"\\u0069d":"msg_1","type":"item\\u005Freference"}',
  '{"id":"msg_1","type" :null}',
  '{"id":"msg_1","type":\tnull}',
  '{"type" : null , "id":"msg_1"}',
  '{"id":"msg_1","status":null}',
  '{"id":"msg_1","role":null}',
  '{"status":"completed","id":"msg_1","content":[{"type":"input_text","text":"x"}]}',
  `{"id":"msg_1"${' '.repeat(2000)}}`,
  `{"id":"msg_1","type":"item\\u005freference","x":"${'x'.repeat(2000)}"}`,
  '{"x":"\\"type\\":\\"message\\"","id":"msg_1"}',
  '{"x\\"type":"message","id":"msg_1"}',
];

/** Items that one parser reads as a reference, and another one does not. */
const unclear = [
  '{"type":"item_reference","id":"msg_1","id":"msg_x"}',
  '{"type":"item_reference","id":"msg_1","type":"message"}',
  '{"type":"message","id":"msg_1","type":null}',
  '{"role":null,"id":"msg_1","role":"user"}',
  '{"type":"item_reference","Id":"msg_1"}',
  '{"type":"message","id":"msg_1","Type":"item_reference"}',
];

/** Items with one type, which is another: whatever else parsers may read differently, none of them refers. */
const ofOtherTypes = [
  '{"type":"message","role":"user","content":"caf\\u0065","Role":"5"}',
  '{"type":"message","role":"user","content":"\\u0065","ID":"5"}',
  '{"type":"function_call_output","call_id":"c","Id":"x","status":null}',
  '{"type":"function_call","id":"a","id":"a","name":"\\u0065","arguments":"{}"}',
];

const others = [
  '{"type":"message","role":"user","content":"x"}',
  '{"role":"user","content":"\\u00e9 and null"}',
  '{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"{}","status":"completed"}',
  '{"arguments":"{}","call_id":"call_1","name":"f","type":"function_call","id":"fc_1","status":null}',
  '{"id":"msg_1","content":[{"annotations":[],"text":"x","type":"output_text"}],"role":"assistant","type":"message"}',
  '{"summary":[],"type":"reasoning","encrypted_content":"x"}',
  '{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"{}","reasoning":{"effort":"low"}}',
];

/** Items that their upstream completes from what it has stored as `rs_1`. */
const stored = [
  '{"id":"rs_1","summary":[],"type":"reasoning","encrypted_content":null}',
  '{"id":"rs_1","summary":[],"type":"reasoning","content":[{"type":"reasoning_text","text":"x"}]}',
  '{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":""}',
  '{"type":"reas\\u006fning","\\u0069d":"rs_1"}',
  '{"type":"image_generation_call","id":"rs_1"}',
  '{"type":"image_generation_call","id":"rs_1","result":"AAAA"}',
  '{"type" : "file_search_call","id":"rs_1","queries":[],"results":null}',
  '{"type":"web_search_call","id":"rs_1","status":"completed"}',
  '{"type":"code_interpreter_call","id":"rs_1","container_id":"cntr_1"}',
];

/** Items that contain all that they are, or that no upstream finds. */
const whole = [
  '{"id":"rs_1","summary":[],"type":"reasoning","encrypted_content":"x"}',
  '{"summary":[],"type":"reasoning"}',
  '{"id":"rs_1","type":"message","role":"user","content":[{"type":"reasoning"}]}',
  '{"id":"rs_1","id":"rs_2","type":"function_call","name":"\\u0065"}',
  '"reasoning"',
];

const bodyOf = (item: string): Buffer =>
  Buffer.from(`{"model":"m","input":[{"role":"user","content":"x"},${item}]}`);

test('an item that an upstream may read as a reference is found, however it is written', (t) => {
  for (const item of references) {
    t.ok(mayRefer(bodyOf(item)), item);
    t.equal(referredTo(item), 'msg_1', item);
  }
  t.end();
});

test('an item that parsers may read differently is refused', (t) => {
  for (const item of unclear) {
    t.ok(mayRefer(bodyOf(item)), item);
    t.throws(() => referredTo(item), { code: 'invalid_request_body' });
  }
  t.end();
});

test('an item of another type is none, whatever members it has twice', (t) => {
  for (const item of ofOtherTypes) t.equal(referredTo(item), null, item);
  t.end();
});

test('other items cost no search for what they refer to', (t) => {
  for (const item of others) {
    t.notOk(mayRefer(bodyOf(item)), item);
    t.equal(referredTo(item), null, item);
  }
  t.end();
});

test('an item that its upstream completes from its store is found, however it is written', (t) => {
  for (const item of stored) {
    t.ok(mayRefer(bodyOf(item)), item);
    t.equal(referredTo(item), null, item);
    t.equal(storedAs(item), 'rs_1', item);
  }
  for (const item of whole) t.equal(storedAs(item), null, item);
  for (const item of [
    '{"type":"reasoning","id":"rs_1","id":"rs_2"}',
    '{"type":"message","type":"reasoning","id":"rs_1"}',
    '{"type":"reasoning","id":"rs_1","encrypted_content":"x","encrypted_content":null}',
    '{"type":"image_generation_call","Id":"rs_1"}',
  ])
    t.throws(() => storedAs(item), { code: 'invalid_request_body' }, item);
  t.end();
});
