import { test } from 'tap';
import { AskedResponses } from '../../../src/protocols/realtime/asked-responses.js';
import { ServerEvent } from '../../../src/protocols/realtime/event-type.js';
import { clientEventId } from '../../../src/protocols/realtime/events.js';

const bytes = (event: object): Buffer => Buffer.from(JSON.stringify(event));
const errorOf = (error: object) => bytes({ type: 'error', event_id: 'event_1', error });

/** Requests with these ids. */
function asked(...ids: (string | null | undefined)[]): AskedResponses {
  const requests = new AskedResponses();
  for (const id of ids) requests.add(id);
  return requests;
}

/** @returns how many requests are left after each of the errors */
function left(requests: AskedResponses, ...errors: object[]): number[] {
  return errors.map((error) => {
    requests.refuse(errorOf(error));
    return requests.count;
  });
}

function note(requests: AskedResponses, event: object, isResponding = false): void {
  requests.note(new ServerEvent(bytes(event)), isResponding);
}

test('an error refuses the request that it names, and none if it names something else', (t) => {
  const requests = asked('a', 'b', 'b', null);
  t.strictSame(
    left(requests, { event_id: 'x' }, { event_id: 'b' }, { event_id: 'b' }, { event_id: 'b' }),
    [4, 3, 2, 2],
  );
  requests.begin();
  t.strictSame(left(requests, { event_id: 'a' }), [1], 'it has begun');
  t.end();
});

test('an error of an upstream that names no events refuses a request without an id, or else the oldest one', (t) => {
  t.strictSame(left(asked('a', null, 'b'), {}, { event_id: 'a' }), [2, 1]);
  t.strictSame(left(asked('a', 'b'), {}, {}), [1, 0]);
  t.strictSame(left(asked('a', 'b'), { event_id: 'event_1' }), [1], 'that is its own id');
  t.end();
});

test('an error that names no event refuses no request with an id if the upstream names events', (t) => {
  t.strictSame(left(asked('a', null, 'b'), { event_id: null }, { event_id: null }), [2, 2]);
  t.strictSame(left(asked('a', 'b', 'c'), { event_id: 'x' }, {}, { event_id: 'c' }, {}), [3, 3, 2, 2]);
  const long = 'x'.repeat(512);
  t.strictSame(left(asked(long), { event_id: 'x' }, { event_id: long }), [1, 0]);
  t.end();
});

test('an error that names an unknown event refuses a request whose id is unknown', (t) => {
  const requests = asked('a', undefined, undefined, null);
  t.strictSame(
    left(requests, { event_id: 'x' }, { event_id: 'y' }, { event_id: 'y' }, { event_id: 'a' }),
    [3, 2, 2, 1],
  );
  t.end();
});

test('an id of a client is unknown if it is no text or long, or the event is long or no JSON', (t) => {
  const id = (event: object) => clientEventId(bytes(event));
  t.equal(id({ event_id: 'a' }), 'a');
  t.equal(id({}), null);
  t.equal(id({ event_id: null }), null);
  t.equal(id({ event_id: 5 }), undefined);
  t.equal(id({ event_id: 'x'.repeat(513) }), undefined);
  t.equal(id({ event_id: 'a', more: 'x'.repeat(70_000) }), undefined);
  t.equal(clientEventId(Buffer.from('{"event_id":"a"')), undefined);
  t.end();
});

test('of more requests than are remembered, all are answered, refused or forgotten', (t) => {
  const numbers = Array.from({ length: 1000 }, (_, i) => `${i}`);
  const refused = asked(...numbers);
  t.equal(left(refused, ...numbers.map((id) => ({ event_id: id }))).at(-1), 0);
  const begun = asked(...numbers);
  for (const _ of numbers) begun.begin();
  t.equal(begun.count, 0);
  const ignored = asked(...numbers);
  ignored.pass(101, 100);
  t.equal(ignored.count, 0);
  t.end();
});

test('a request is forgotten once no response has been in progress for long enough since', (t) => {
  const requests = asked('a');
  const after = (quietMs: number) => {
    requests.pass(quietMs, 100);
    return requests.count;
  };
  t.equal(after(60), 1);
  requests.add('b');
  t.equal(after(0), 2);
  t.equal(after(40), 2);
  t.equal(after(1), 1, 'the later one has waited for less');
  t.equal(after(59), 1);
  t.equal(after(1), 0);
  t.end();
});

test('a response that the server begins at the end of a turn answers no request', (t) => {
  const stopped = { type: 'input_audio_buffer.speech_stopped', audio_end_ms: 5, item_id: 'item_1' };
  const requests = asked(null, null, null, null);
  note(requests, { type: 'session.created', session: { audio: { input: { turn_detection: {} } } } });
  note(requests, stopped);
  requests.begin();
  t.equal(requests.count, 4);
  requests.begin();
  t.equal(requests.count, 3, 'the next response is one that was asked for');
  note(requests, { type: 'input_audio_buffer.timeout_triggered', item_id: 'item_2' });
  requests.begin();
  t.equal(requests.count, 3);
  note(requests, { type: 'session.updated', session: { turn_detection: { interrupt_response: false } } });
  note(requests, stopped, true);
  requests.begin();
  t.equal(requests.count, 2, 'the turn interrupts no other response');
  note(requests, {
    type: 'session.updated',
    session: { audio: { input: { turn_detection: { create_response: false } } } },
  });
  note(requests, { type: 'session.updated', session: { instructions: 'x' } });
  note(requests, stopped);
  requests.begin();
  t.equal(requests.count, 1, 'the client asks for the response to each turn');
  t.end();
});

const stopped = { type: 'input_audio_buffer.speech_stopped', audio_end_ms: 5, item_id: 'item_1' };
const sessionWith = (turn_detection: unknown) => ({ type: 'session.updated', session: { turn_detection } });

/** @returns how many of one request and these events are left after a response begins */
function leftBegun(...events: object[]): number {
  const requests = new AskedResponses();
  for (const event of events) {
    if (!('error' in event)) note(requests, event);
    else if (requests.mayBeRefused) requests.refuse(errorOf(event.error as object));
  }
  requests.add(null);
  requests.begin();
  return requests.count;
}

test('a turn of a session without automatic responses leaves the next response to the request', (t) => {
  const newer = { type: 'session.created', session: { audio: { input: { turn_detection: null } } } };
  const vad = { type: 'server_vad' };
  t.equal(leftBegun(sessionWith(vad), stopped), 1, 'the server begins it by itself');
  t.equal(leftBegun(stopped), 0, 'the session says nothing of turns');
  t.equal(leftBegun(newer, stopped), 0);
  t.equal(leftBegun(sessionWith(null), stopped), 0);
  t.equal(leftBegun(sessionWith({ type: 'none' }), stopped), 0);
  t.equal(leftBegun(sessionWith(vad), stopped, sessionWith(null)), 0, 'switched off after the turn');
  const older = { type: 'transcription_session.created', session: { turn_detection: vad } };
  t.equal(leftBegun(older, stopped), 0);
  const transcribes = { type: 'transcription', audio: { input: { turn_detection: vad } } };
  t.equal(leftBegun({ type: 'session.updated', session: transcribes }, stopped), 0);
  t.end();
});

test('an error that names no event ends the wait for the response that the server begins by itself', (t) => {
  const vad = sessionWith({ type: 'server_vad' });
  t.equal(leftBegun(vad, stopped, { error: { event_id: null } }), 0);
  t.equal(leftBegun(vad, stopped, { error: { event_id: 'x' } }), 1);
  const requests = asked(null);
  note(requests, vad);
  note(requests, stopped);
  t.strictSame(left(requests, {}, {}), [1, 0], 'the first one may be about the own response');
  t.end();
});

test('a server begins its own response within quiet seconds of the turn', (t) => {
  const requests = asked();
  note(requests, sessionWith({ type: 'server_vad' }));
  note(requests, stopped);
  requests.pass(5000, 100_000);
  requests.add(null);
  requests.begin();
  t.equal(requests.count, 1);
  note(requests, stopped);
  requests.pass(5001, 100_000);
  requests.begin();
  t.equal(requests.count, 0);
  t.end();
});

test('a request that was ignored is forgotten in time however many others are answered', (t) => {
  const requests = asked(null);
  for (let quiet = 0; quiet < 100; quiet += 10) {
    requests.add(null);
    requests.begin();
    requests.pass(10, 100);
    t.equal(requests.count, 1);
  }
  requests.pass(1, 100);
  t.equal(requests.count, 0);
  t.end();
});
