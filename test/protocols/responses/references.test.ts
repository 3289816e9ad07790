import { test } from 'tap';
import { mayRefer, referredTo } from '../../../src/protocols/responses/references.js';

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

const bodyOf = (item: string): Buffer =>
  Buffer.from(`{"model":"m","input":[{"role":"user","content":"x"},${item}]}`);

test('an item that an upstream may read as a reference is found, however it is written', (t) => {
  for (const item of references) {
    t.ok(mayRefer(bodyOf(item), true), item);
    t.equal(referredTo(item), 'msg_1', item);
  }
  t.end();
});

test('an item that parsers may read differently is refused', (t) => {
  for (const item of unclear) {
    t.ok(mayRefer(bodyOf(item), true), item);
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
    t.notOk(mayRefer(bodyOf(item), true), item);
    t.equal(referredTo(item), null, item);
  }
  t.end();
});
