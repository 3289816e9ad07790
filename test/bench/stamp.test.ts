import { test } from 'tap';
import { chunkEvent } from '../../bench/upstream/answers.js';
import { blankStamp, hostUs, readStamps, writeStamp } from '../../bench/upstream/stamp.js';

function stampsOf(bytes: Buffer): number[] {
  const found: number[] = [];
  readStamps(bytes, (us) => found.push(us));
  return found;
}

test('the times that are written into events are read out of their bytes again', (t) => {
  const event = Buffer.from(chunkEvent(blankStamp));
  const now = hostUs();
  writeStamp(event, now);
  const first = Buffer.from(event);
  writeStamp(event, now + 1234);
  t.same(stampsOf(Buffer.concat([first, event])), [now, now + 1234]);
  t.equal(
    (JSON.parse(event.toString().slice('data: '.length)) as { object: string }).object,
    'chat.completion.chunk',
  );
  t.end();
});

test('a time that is cut off is not read', (t) => {
  const event = Buffer.from(chunkEvent(blankStamp));
  writeStamp(event, 987_654_321);
  const cut = event.indexOf('987654321') + 4;
  t.same(stampsOf(Buffer.concat([event, event.subarray(0, cut)])), [987_654_321]);
  t.same(stampsOf(event.subarray(cut)), []);
  t.end();
});
