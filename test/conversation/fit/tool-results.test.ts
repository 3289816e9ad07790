import { test } from 'tap';
import { fitToolResults } from '../../../src/conversation/fit/tool-results.js';
import type {
  AssistantPart,
  ToolCallPart,
  ToolResultPart,
  Turn,
  UserPart,
} from '../../../src/conversation/request.js';
import { chatCodec } from '../../../src/protocols/chat/index.js';
import { messagesCodec } from '../../../src/protocols/messages/index.js';
import { plain } from '../../protocols/messages/samples.js';
import { fittedBy } from './rules.js';

const text = (words: string) => ({ kind: 'text' as const, text: words });
const user = (...parts: UserPart[]): Turn => ({ role: 'user', parts });
const assistant = (...parts: AssistantPart[]): Turn => ({ role: 'assistant', parts });
const system: Turn = { role: 'system', text: 's' };
const call = (id: string): ToolCallPart => ({
  kind: 'toolCall',
  id,
  name: 'f',
  input: '{}',
  custom: false,
  at: 'messages[1]',
});
const result = (callId: string, more: Partial<ToolResultPart> = {}): ToolResultPart => ({
  kind: 'toolResult',
  callId,
  name: 'f',
  content: [text('42')],
  isError: false,
  at: 'messages[2]',
  ...more,
});
const interrupted = (callId: string): ToolResultPart =>
  result(callId, {
    content: [text('The call was interrupted: it has no result.')],
    isError: true,
    at: 'messages[1]',
  });
const fit = (turns: readonly Turn[], { rules } = messagesCodec) =>
  fittedBy(fitToolResults, { ...plain, turns }, rules).request.turns;
const mended = (...turns: Turn[]) => fit(turns);

test('a conversation whose calls have their results stays as it is', async (t) => {
  const turns = [
    user(text('q')),
    assistant(text('a'), call('1'), call('2')),
    user(result('2'), result('1'), text('go on')),
    assistant(text('b')),
  ];
  t.equal(fit(turns), turns);
  const interleaved = [
    assistant(call('1')),
    system,
    user(text('x')),
    user(result('1')),
    assistant(text('b')),
  ];
  t.equal(fit(interleaved), interleaved, 'encoders put the results first');
});

test('a result without its call is what the user says', async (t) => {
  const image = {
    kind: 'image' as const,
    source: { kind: 'url' as const, url: 'https://h/x', mediaType: null },
    detail: null,
    name: null,
    at: '',
  };
  t.strictSame(mended(user(result('9', { content: [text('a'), image, text('b')] }), text('q'))), [
    user(text("Result of the tool 'f' (call 9):\na\nb"), image, text('q')),
  ]);
  t.strictSame(mended(user(result('', { isError: true }))), [user(text("Error of the tool 'f':\n42"))]);
  t.strictSame(mended(user(result('9', { name: '', content: [] }))), [user(text('Result (call 9):'))]);
  t.strictSame(
    mended(assistant(call('1')), user(result('1'), result('1'))),
    [assistant(call('1')), user(result('1'), text("Result of the tool 'f' (call 1):\n42"))],
    'nor has a call two',
  );
});

test('a call without a result gets one that says so', async (t) => {
  t.strictSame(mended(assistant(call('1'), call('2')), user(result('2'), text('q'))), [
    assistant(call('1'), call('2')),
    user(interrupted('1')),
    user(result('2'), text('q')),
  ]);
  t.strictSame(mended(assistant(call('1'))), [assistant(call('1')), user(interrupted('1'))]);
});

test('a result that comes when the model has gone on is a text, as what was sent before stays', async (t) => {
  const before = [assistant(call('1')), user(text('never mind'))];
  const [, filler, said] = mended(...before);
  t.strictSame(mended(...before, assistant(text('b')), user(result('1'))), [
    assistant(call('1')),
    filler,
    said,
    assistant(text('b')),
    user(text("Result of the tool 'f' (call 1):\n42")),
  ]);
});

test('instructions between the calls of one answer come behind its results', async (t) => {
  t.strictSame(mended(assistant(call('1')), system, assistant(call('2')), user(result('1'), result('2'))), [
    assistant(call('1')),
    assistant(call('2')),
    system,
    user(result('1'), result('2')),
  ]);
});

test('calls of one answer have ids of their own, and their results with them', async (t) => {
  t.strictSame(mended(assistant(call('1'), call('1')), user(result('1'), result('1', { isError: true }))), [
    assistant(call('1'), call('1_2')),
    user(result('1'), result('1_2', { isError: true })),
  ]);
});

test('a call whose id one of an earlier answer has gets one of its own, and so does its result', async (t) => {
  const turns = [
    user(text('q')),
    assistant(call('call_0')),
    user(result('call_0')),
    assistant(call('call_0')),
    user(result('call_0')),
    assistant(call('call_0_2'), call('call_0')),
    user(result('call_0'), result('call_0_2')),
  ];
  t.strictSame(mended(...turns), [
    ...turns.slice(0, 3),
    assistant(call('call_0_2')),
    user(result('call_0_2')),
    assistant(call('call_0_2_2'), call('call_0_3')),
    user(result('call_0_3'), result('call_0_2_2')),
  ]);
  t.strictSame(mended(...turns.slice(0, 5)), mended(...turns).slice(0, 5), 'what was sent before stays');
  t.equal(fit(turns, chatCodec), turns, 'chat does not mind');
});
