import t, { test } from 'tap';
import { AnswerReader } from './answer-reader.js';

const whole = 'HTTP/1.1 200 OK\r\nx-request-id: req_1\r\nContent-Length: 5\r\n\r\nhello';
const chunked =
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nE\r\ndata: [DONE]\n\n\r\n0\r\n\r\n';

test('an answer is read at any split', (t) => {
  for (const text of [whole, chunked]) {
    const bytes = Buffer.from(text);
    for (let split = 1; split < bytes.length; split += 1) {
      const reader = new AnswerReader();
      t.equal(reader.push(bytes.subarray(0, split)), true);
      t.equal(reader.push(bytes.subarray(split)), false);
      t.match(reader, { done: true, fault: null, status: 200, bytes: text === whole ? 5 : 19 });
      t.equal(reader.endsWithDone, text === chunked);
      t.equal(reader.text, text === whole ? 'hello' : '');
    }
  }
  t.end();
});

test('what is not a whole answer is not taken for one', (t) => {
  const faults: [string, RegExp][] = [
    [`${whole}more`, /behind the end/],
    ['HTTP/1.1 200 OK\r\n\r\n', /without framing/],
    ['hello\r\n\r\n', /no status line/],
    [chunked.replace('\r\n5\r\n', '\r\n4\r\n'), /longer than its size/],
    [chunked.replace('\r\n5\r\n', '\r\nfive\r\n'), /a chunk of the size "five"/],
  ];
  for (const [text, fault] of faults) {
    const reader = new AnswerReader();
    t.equal(reader.push(Buffer.from(text)), false);
    t.match(reader.fault, fault);
  }
  const cut = new AnswerReader();
  cut.push(Buffer.from(chunked.slice(0, -2)));
  t.match(cut, { done: false, endsWithDone: false, fault: null });
  t.end();
});

t.end();
