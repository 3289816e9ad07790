import { test } from 'tap';
import { carryInId } from '../../src/conversation/carrying-id.js';
import { LeftOut } from '../../src/conversation/left-out.js';
import { type TextProtocolName, textProtocols } from '../../src/conversation/request.js';
import { tagSignature } from '../../src/conversation/signature.js';
import { GatewayError } from '../../src/errors.js';
import { chatRequestType } from '../../src/protocols/chat/request/schema.js';
import { generateContentRequestType } from '../../src/protocols/generate-content/request/schema.js';
import { messagesRequestType } from '../../src/protocols/messages/request/schema.js';
import { responsesRequestType } from '../../src/protocols/responses/request/schema.js';
import { textEndpoints } from '../../src/protocols/text.js';
import type { JsonObject } from '../../src/wire/json.js';
import { createSealer } from '../../src/wire/seal.js';
import { bases, type Sample, samples } from './left-out-samples.js';
import { target } from './messages/samples.js';
import { writeRequest } from './write-request.js';

type Exception = readonly [to: TextProtocolName | '*', says: readonly string[], why: string];

const searchSettings = [
  ...['search_context_size', 'user_location', 'allowed_domains', 'blocked_domains', 'external_web_access'],
  ...['max_uses', 'excludeDomains'],
];

/** What is lost in silence, and why. What is said of a `*` goes for each upstream. */
const deliberate: Readonly<Record<TextProtocolName, readonly Exception[]>> = {
  chat: [
    ['*', ['stop'], 'the gateway looks for it itself'],
    ['*', ['json_schema.name'], 'a label that the vendor demands; no other has it'],
    ['*', ['json_schema.strict'], 'these hold every answer to its schema'],
  ],
  responses: [
    ['*', ['text.format.name'], 'a label that the vendor demands; no other has it'],
    ['*', ['text.format.strict'], 'these hold every answer to its schema'],
    ['*', ['stream_options'], 'how the stream of a vendor is padded, which the gateway writes itself'],
    ['chat', ['reasoning.summary'], 'the gateway itself shows what the upstream says'],
    ['chat', searchSettings, 'the search is named that they are of'],
  ],
  messages: [
    ['*', ['stop_sequences'], 'the gateway looks for it itself'],
    ['chat', ['thinking.display'], 'the gateway itself shows what the upstream says'],
    ['chat', searchSettings, 'the search is named that they are of'],
  ],
  generateContent: [
    ['*', ['model'], 'the path names it'],
    ['*', ['stopSequences'], 'the gateway looks for it itself'],
    ['*', ['displayName'], 'a label of an image, which no model is told'],
    ['chat', ['includeThoughts'], 'the gateway itself shows what the upstream says'],
    ['chat', searchSettings, 'the search is named that they are of'],
  ],
};

const sealer = createSealer('a secret of the tests');
/** Tools of another vendor are left out, as they are unless the config says otherwise. */
const usual = { ...target, hostedTools: 'drop' } as const;

interface Translated {
  /** Null for what is refused. */
  readonly sent: string | null;
  readonly names: readonly string[];
}

function translated(from: TextProtocolName, to: TextProtocolName, members: JsonObject): Translated {
  // As a client sends it: nothing is undefined there.
  const body = JSON.parse(JSON.stringify({ ...bases[from], ...members })) as JsonObject;
  try {
    const request = textEndpoints[from].translation.codec.decodeRequest(body, false, sealer);
    const leftOut = new LeftOut(request.leftOut);
    const sent = writeRequest(textEndpoints[to].translation.codec, request, usual, leftOut);
    return { sent, names: leftOut.names };
  } catch (error) {
    if (error instanceof GatewayError && error.status === 400) return { sent: null, names: [] };
    throw error;
  }
}

/** @returns whether what the sample says is lost on the way, and no name tells */
function isLostInSilence(
  from: TextProtocolName,
  to: TextProtocolName,
  [, body, without = {}]: Sample,
): boolean {
  const told = translated(from, to, body);
  const untold = translated(from, to, without);
  if (told.sent === null || told.sent !== untold.sent) return false;
  return told.names.every((name) => untold.names.includes(name));
}

function isDeliberate(from: TextProtocolName, to: TextProtocolName, says: string): boolean {
  return deliberate[from].some(([at, names]) => (at === '*' || at === to) && names.includes(says));
}

for (const from of textProtocols)
  for (const to of textProtocols.filter((each) => each !== from))
    test(`what a ${from} client says that a ${to} upstream does not hear is named, or refused`, async (t) => {
      const lost = samples[from].filter((sample) => isLostInSilence(from, to, sample)).map(([says]) => says);
      t.strictSame(
        lost.filter((says) => !isDeliberate(from, to, says)),
        [],
      );
    });

test('all that is deliberate is lost in silence somewhere', async (t) => {
  for (const from of textProtocols)
    for (const sample of samples[from]) {
      const others = textProtocols.filter((to) => to !== from && isDeliberate(from, to, sample[0]));
      const isTrue = others.length === 0 || others.some((to) => isLostInSilence(from, to, sample));
      t.ok(isTrue, `${from}: ${sample[0]}`);
    }
});

test('each member of the bodies that are translated has a sample', async (t) => {
  const types = {
    chat: chatRequestType,
    responses: responsesRequestType,
    messages: messagesRequestType,
    generateContent: generateContentRequestType,
  };
  // What routes, keeps or streams a call, and what it is about.
  const aside = new Set([
    'stream_options',
    'model',
    'stream',
    'messages',
    'input',
    'contents',
    'thread',
    'previous_response_id',
  ]);
  for (const from of textProtocols) {
    const said = new Set(samples[from].flatMap(([, body]) => Object.keys(body)));
    const members = Object.keys(types[from].properties).filter((name) => !aside.has(name));
    // The other name of a member of generateContent.
    const own = from === 'generateContent' ? members.filter((name) => !name.includes('_')) : members;
    t.strictSame(
      own.filter((name) => !said.has(name)),
      [],
      from,
    );
  }
});

test('an id from which a client has cut the reasoning that it carried is named', async (t) => {
  const token = tagSignature({ protocol: 'messages', model: 'm', value: 'U0lH', redacted: false });
  const whole = carryInId('c1', [token]) ?? '';
  const histories: Readonly<Record<string, (id: string) => JsonObject>> = {
    chat: (id) => ({
      messages: [{ role: 'assistant', tool_calls: [{ id, type: 'function', function: { name: 'f' } }] }],
    }),
    messages: (id) => ({
      messages: [{ role: 'assistant', content: [{ type: 'tool_use', id, name: 'f', input: {} }] }],
    }),
    responses: (id) => ({ input: [{ type: 'function_call', call_id: id, name: 'f', arguments: '{}' }] }),
  };
  const names = { chat: 'tool_calls.id', messages: 'tool_use.id', responses: 'call_id' } as const;
  for (const protocol of ['chat', 'messages', 'responses'] as const) {
    const { codec } = textEndpoints[protocol].translation;
    const leftOut = (id: string) =>
      codec.decodeRequest({ ...bases[protocol], ...histories[protocol]?.(id) }, false, sealer).leftOut;
    t.strictSame(leftOut(whole.slice(0, -8)), [names[protocol]], protocol);
    for (const id of [whole, 'c1']) t.strictSame(leftOut(id), [], id);
  }
});
