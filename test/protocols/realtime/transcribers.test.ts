import { test } from 'tap';
import { isPiece, mayHaveUsage, ServerEvent } from '../../../src/protocols/realtime/event-type.js';
import { Transcribers } from '../../../src/protocols/realtime/transcribers.js';

const event = (value: object) => new ServerEvent(Buffer.from(JSON.stringify(value)));
const update = (model: unknown) =>
  event({ type: 'session.updated', session: { input_audio_transcription: { model } } });
const committed = (id: unknown) => event({ type: 'input_audio_buffer.committed', item_id: id });
const transcript = (id: unknown) =>
  event({ type: 'conversation.item.input_audio_transcription.completed', item_id: id, transcript: '' });

test('the model of a transcript is that of the moment at which its speech was committed', async (t) => {
  const transcribers = new Transcribers();
  t.equal(transcribers.of(transcript('a')), null);
  for (const each of [committed('a'), update('one'), committed('b'), update('two')]) transcribers.note(each);
  t.equal(transcribers.of(transcript('a')), null);
  t.equal(transcribers.of(transcript('b')), 'one');
  t.equal(transcribers.of(transcript('c')), 'two');
  transcribers.note(event({ type: 'session.updated', session: { instructions: 'x' } }));
  t.equal(transcribers.of(transcript('c')), 'two', 'a server that repeats what has changed alone');
  transcribers.note(
    event({ type: 'session.updated', session: { audio: { input: { transcription: null } } } }),
  );
  t.equal(transcribers.of(transcript('c')), null, 'nothing transcribes any more');
  t.equal(transcribers.of(update('one')), null, 'no transcript');
});

test('what an upstream commits without end, or names with long ids, takes no memory without end', async (t) => {
  const transcribers = new Transcribers();
  transcribers.note(update('one'));
  for (let index = 0; index < 257; index++) transcribers.note(committed(`item_${index}`));
  transcribers.note(committed('x'.repeat(1000)));
  transcribers.note(update('two'));
  t.equal(transcribers.of(transcript('item_0')), 'two', 'forgotten');
  t.equal(transcribers.of(transcript('item_1')), 'one');
  t.equal(transcribers.of(transcript('x'.repeat(1000))), 'two');
  for (const odd of [null, 5, {}, []]) {
    transcribers.note(committed(odd));
    t.equal(transcribers.of(transcript(odd)), 'two');
  }
  for (const session of [null, 5, [], { audio: 5 }]) {
    transcribers.note(event({ type: 'session.updated', session }));
    t.equal(transcribers.of(transcript('new')), 'two');
  }
  transcribers.note(
    event({ type: 'session.updated', session: { audio: { input: { transcription: 'x' } } } }),
  );
  t.equal(transcribers.of(transcript('new')), null);
});

test('events that name or begin a transcription are looked at, and pieces of sound and text are not', async (t) => {
  const events = [
    committed('a'),
    update('one'),
    event({ type: 'transcription_session.created', session: {} }),
  ];
  for (const { bytes } of events) t.ok(mayHaveUsage(bytes) && !isPiece(bytes), `${bytes}`);
  for (const type of ['response.output_audio.delta', 'input_audio_buffer.speech_started']) {
    const { bytes: piece } = event({ type, event_id: 'e', item_id: 'i' });
    t.ok(isPiece(piece), type);
    t.notOk(mayHaveUsage(piece), type);
  }
});
