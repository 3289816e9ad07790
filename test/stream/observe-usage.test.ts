import { test } from 'tap';
import { ownSecrets } from '../../src/config/snapshot.js';
import { unknownTokens } from '../../src/conversation/usage.js';
import { speech, transcriptions } from '../../src/protocols/audio/index.js';
import { chat } from '../../src/protocols/chat/index.js';
import { embeddings } from '../../src/protocols/embeddings/index.js';
import type { Endpoint } from '../../src/protocols/endpoint.js';
import { generateContent } from '../../src/protocols/generate-content/index.js';
import { imageGenerations } from '../../src/protocols/images/index.js';
import { countTokens, messages } from '../../src/protocols/messages/index.js';
import { responses } from '../../src/protocols/responses/index.js';
import { ArrayTransform } from '../../src/stream/array.js';
import { ObservedTransform } from '../../src/stream/observe.js';
import type { Alternatives } from '../../src/stream/opening.js';

const observing = (endpoint: Endpoint) => ({
  rules: endpoint,
  hideUsage: false,
  streamsUnasked: false,
  amend: null,
  inputEstimate: 100,
  tokens: unknownTokens,
  keep: null,
  secrets: ownSecrets([], []),
});
const observed = (
  endpoint: Endpoint,
  more: {
    readonly estimated?: 'none' | 'broken';
    readonly requested?: number;
    readonly alternatives?: Alternatives;
  } = {},
): ObservedTransform => new ObservedTransform({ ...more, ...observing(endpoint) });

const sse = (...events: readonly unknown[]): Buffer =>
  Buffer.from(events.map((each) => `data: ${JSON.stringify(each)}\n\n`).join(''));
const delta = (content: string) => ({ choices: [{ index: 0, delta: { content } }] });
/** With names, as the messages protocol has them. */
const named = (...events: readonly { readonly type: string; readonly [name: string]: unknown }[]): Buffer =>
  Buffer.from(events.map((each) => `event: ${each.type}\ndata: ${JSON.stringify(each)}\n\n`).join(''));
const nothing = { cached: 0, cacheWritten: 0, reasoning: 0 };

/** As responses streams begin, with what the client has sent. */
const response = {
  id: 'resp_1',
  status: 'in_progress',
  instructions: 'Answer briefly. '.repeat(2500),
  output: [],
};

test('what opens a responses stream and repeats its request is no output', async (t) => {
  const opening = named(
    { type: 'response.created', sequence_number: 0, response },
    { type: 'response.in_progress', sequence_number: 1, response },
  );
  const item = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: '' };
  const added = named({ type: 'response.output_item.added', sequence_number: 2, output_index: 0, item });
  for (const brokenBy of ['client', 'upstream'] as const) {
    const opened = observed(responses);
    opened.pass(opening);
    t.strictSame(opened.usageAtEnd(brokenBy), { input: 100, output: 0, ...nothing, partial: true });
    t.equal(opened.nextNumber, 2);
    const reasons = observed(responses);
    reasons.pass(Buffer.concat([opening, added]));
    t.ok((reasons.usageAtEnd(brokenBy)?.output ?? 1000) <= added.length / 4);
    const answers = observed(responses);
    for (const type of ['response.created', 'response.in_progress'])
      answers.pass(named({ type, sequence_number: 0, response }));
    for (let n = 0; n < 20; n++)
      answers.pass(
        named({ type: 'response.output_text.delta', sequence_number: n, item_id: 'msg_1', delta: 'hello ' }),
      );
    t.strictSame(answers.usageAtEnd(brokenBy), { input: 100, output: 30, ...nothing, partial: true });
    t.equal(answers.nextNumber, 20);
  }
});

test('a comment in front of an event hides neither its text, nor its usage, nor the end of the stream', async (t) => {
  const usage = { input_tokens: 5000, output_tokens: 3000 };
  const completed = { type: 'response.completed', sequence_number: 1, response: { ...response, usage } };
  for (const comment of [': hb\n', ': hb\r', `: ${'x'.repeat(110)}\n`, `: ${'x'.repeat(200)}\n`]) {
    for (const write of [named, sse]) {
      const after = (event: typeof completed | { readonly type: string; readonly delta: string }): Buffer =>
        Buffer.concat([Buffer.from(comment), write(event)]);
      const ended = observed(responses);
      ended.pass(named({ type: 'response.created', sequence_number: 0, response }));
      ended.pass(after(completed));
      t.match(ended.usageAtEnd(null), { input: 5000, output: 3000 });
      t.ok(ended.isComplete);
      const broken = observed(responses);
      broken.pass(named({ type: 'response.created', sequence_number: 0, response }));
      for (let n = 0; n < 20; n++)
        broken.pass(after({ type: 'response.output_text.delta', delta: 'hello ' }));
      t.equal(broken.usageAtEnd('upstream')?.output, 30);
    }
    const opened = observed(responses);
    const opening = named({ type: 'response.created', sequence_number: 0, response });
    opened.pass(Buffer.concat([Buffer.from(`:${' '.repeat(2048)}\n\n${comment}\n`), opening]));
    t.equal(opened.usageAtEnd('upstream')?.output, 0);
  }
});

test('base64 in what opens a responses stream is no medium of its output', async (t) => {
  const tools = [
    {
      type: 'image_generation',
      input_image_mask: { image_url: `data:image/png;base64,${'iVBORw0KGgo'.repeat(2000)}` },
    },
  ];
  const response = { id: 'resp_1', status: 'queued', tools, output: [] };
  const opening = named(
    { type: 'response.created', sequence_number: 0, response },
    { type: 'response.queued', sequence_number: 1, response },
  );
  const answers = observed(responses);
  answers.pass(Buffer.concat([Buffer.from(': PROCESSING\n\n'), opening]));
  t.equal(answers.usageAtEnd('upstream')?.output, 0);
  for (let n = 0; n < 20; n++)
    answers.pass(
      named({ type: 'response.output_text.delta', sequence_number: n, item_id: 'msg_1', delta: 'hello ' }),
    );
  t.equal(answers.usageAtEnd('client')?.output, 30);
  answers.pass(named({ type: 'response.in_progress', sequence_number: 20, response: { id: 'resp_1' } }));
  t.ok((answers.usageAtEnd('client')?.output ?? 0) >= 30, 'only at the beginning');
});

test('what was reported is exact, also when the client leaves between the report and the end', async (t) => {
  const each = observed(chat);
  const finished = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };
  each.pass(
    sse(delta('Hello'), finished, { choices: [], usage: { prompt_tokens: 7, completion_tokens: 2 } }),
  );
  const exact = { input: 7, output: 2, ...nothing };
  t.strictSame(each.usageAtEnd('client'), exact);
  t.strictSame(each.usageAtEnd(null), exact);
  const whole = observed(chat);
  whole.whole(Buffer.from('{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}'));
  t.strictSame(whole.usageAtEnd('client'), exact);
});

test('a stream that breaks off has used what was streamed, and is marked', async (t) => {
  for (const brokenBy of ['client', 'upstream'] as const) {
    const each = observed(chat);
    each.pass(sse(delta('Hello'), delta(' world!')));
    t.strictSame(each.usageAtEnd(brokenBy), { input: 100, output: 3, ...nothing, partial: true });
  }
});

test('what a stream has used so far may be asked at any time, and does not change what it comes to', async (t) => {
  const each = observed(messages);
  const used = (output: number) => ({ input: 50, output, ...nothing, partial: true });
  const text = (words: string) => ({
    type: 'content_block_delta',
    index: 0,
    delta: { type: 'text_delta', text: words },
  });
  t.match(each.usageAtEnd('client'), { output: 0, partial: true });
  each.pass(
    named(
      { type: 'message_start', message: { usage: { input_tokens: 50, output_tokens: 1 } } },
      text('x'.repeat(40)),
    ),
  );
  t.match(each.usageAtEnd('client'), used(10));
  each.pass(named(text('x'.repeat(40))));
  t.match(each.usageAtEnd('client'), used(20));
  t.equal(each.isComplete, false);
  each.pass(
    named(
      {
        type: 'message_delta',
        delta: { stop_reason: 'end_turn' },
        usage: { input_tokens: 50, output_tokens: 33 },
      },
      { type: 'message_stop' },
    ),
  );
  t.strictSame(each.usageAtEnd('client'), { input: 50, output: 33, ...nothing });
  t.equal(each.isComplete, true);

  const google = observed(generateContent);
  for (const candidatesTokenCount of [3, 8]) {
    google.pass(
      sse({
        candidates: [{ content: { parts: [{ text: 'x' }] } }],
        usageMetadata: {
          promptTokenCount: 5,
          candidatesTokenCount,
          totalTokenCount: 5 + candidatesTokenCount,
        },
      }),
    );
    t.match(google.usageAtEnd('client'), { input: 5, output: candidatesTokenCount });
  }
});

test('before anything was streamed, a client that leaves has used its input, and a failing upstream nothing', async (t) => {
  t.strictSame(observed(chat).usageAtEnd('client'), { input: 100, output: 0, ...nothing, partial: true });
  t.equal(observed(chat).usageAtEnd('upstream'), null);
});

test('an upstream that fails once an event has left has used the input, whatever the event said', (t) => {
  const each = observed(chat);
  each.judge(sse(delta('')));
  t.equal(each.usageAtEnd('upstream'), null, 'it has been judged, and has not left');
  each.pass(sse(delta('')));
  t.strictSame(each.usageAtEnd('upstream'), { input: 100, output: 0, ...nothing, partial: true });
  t.end();
});

test('whole answers without a report are estimated', async (t) => {
  const streamed = observed(chat);
  streamed.pass(sse(delta('Hello'), delta(' world!')));
  t.strictSame(streamed.usageAtEnd(null), { input: 100, output: 3, ...nothing, estimated: true });
  const whole = observed(chat);
  whole.whole(Buffer.from('{"choices":[{"message":{"content":"Hello world!"}}]}'));
  t.strictSame(whole.usageAtEnd(null), { input: 100, output: 3, ...nothing, estimated: true });
  const vectors = observed(embeddings);
  vectors.whole(Buffer.from('{"data":[{"embedding":[0.1,0.2]}]}'));
  t.strictSame(vectors.usageAtEnd(null), { input: 100, output: 0, ...nothing, estimated: true });
});

test('a text of an East Asian script is a token a character, streamed or whole', (t) => {
  const each = observed(chat);
  each.pass(sse(delta('漢字かな'), delta('한글')));
  t.strictSame(each.usageAtEnd('client'), { input: 100, output: 6, ...nothing, partial: true });
  const whole = observed(chat);
  whole.whole(Buffer.from('{"choices":[{"message":{"content":"漢字かな한글"}}]}'));
  t.match(whole.usageAtEnd(null), { output: 6, estimated: true });
  t.end();
});

test('a chat stream that tells its usage all along and breaks off has used at least what was streamed', async (t) => {
  const usage = { prompt_tokens: 7, completion_tokens: 0 };
  const each = observed(chat);
  each.pass(sse({ ...delta('Hello'), usage }, delta(' world!')));
  t.strictSame(each.usageAtEnd('upstream'), { input: 7, output: 3, ...nothing, partial: true });
});

test('a messages stream that breaks off has its exact input', async (t) => {
  const start = { type: 'message_start', message: { usage: { input_tokens: 42, output_tokens: 1 } } };
  const text = { type: 'content_block_delta', delta: { type: 'text_delta', text: 'x'.repeat(40) } };
  const each = observed(messages);
  each.pass(sse(start, text));
  t.strictSame(each.usageAtEnd('client'), { input: 42, output: 10, ...nothing, partial: true });
  const ended = observed(messages);
  ended.pass(sse(start, text, { type: 'message_delta', delta: {}, usage: { output_tokens: 12 } }));
  ended.pass(sse({ type: 'message_stop' }));
  t.strictSame(ended.usageAtEnd('client'), { input: 42, output: 12, ...nothing });
});

test('what opens a messages stream is read while it is held back', async (t) => {
  const each = observed(messages, { alternatives: { mayMoveOn: true } });
  const usage = { input_tokens: 5000, output_tokens: 1, cache_read_input_tokens: 100 };
  t.equal(each.judge(named({ type: 'message_start', message: { usage } })), 'silence');
  const known = { ...nothing, input: 5100, cached: 100, output: 1, partial: true };
  t.match(each.usageAtEnd('client'), known);
  t.equal(each.judge(named({ type: 'ping' })), 'silence');
  t.match(each.usageAtEnd('client'), known);
  t.equal(each.usageAtEnd('upstream'), null, 'a client does not pay for what it has not got');
  t.match(each.usage, { input: 5100, cached: 100 });
});

test('a generateContent stream that breaks off has at least what it has reported', async (t) => {
  const usageMetadata = { promptTokenCount: 9, candidatesTokenCount: 50 };
  const block = { candidates: [{ content: { parts: [{ text: 'Hello' }] } }], usageMetadata };
  const each = new ArrayTransform(observing(generateContent));
  each.judge(sse(block));
  each.pass(sse(block));
  t.strictSame(each.usageAtEnd('client'), { input: 9, output: 50, ...nothing, partial: true });
});

test('an image in an answer that breaks off counts as one medium, however large it is', async (t) => {
  const data = Buffer.alloc(1_500_000, 'any bytes').toString('base64');
  const parts = [{ text: 'Hello world!' }, { inlineData: { mimeType: 'image/png', data } }];
  const body = Buffer.from(JSON.stringify({ candidates: [{ content: { role: 'model', parts } }] }));
  const pieces = observed(generateContent);
  for (let at = 0; at < 1_000_000; at += 65_536) pieces.note(body.subarray(at, at + 65_536));
  const { output: ofPieces = 0 } = pieces.usageAtEnd('client') ?? {};
  t.ok(ofPieces >= 1500 && ofPieces < 1600, `${ofPieces}`);
  const [text, image] = parts.map((part) => ({ candidates: [{ content: { parts: [part] } }] }));
  const events = observed(generateContent);
  events.pass(sse(text));
  events.pass(sse(image));
  events.pass(sse(text, text));
  const { output: ofEvents = 0 } = events.usageAtEnd('client') ?? {};
  t.ok(ofEvents >= 1503 && ofEvents < 1600, `${ofEvents}`);
});

test('a long text in an answer that breaks off is no medium', async (t) => {
  const each = observed(generateContent);
  const body = Buffer.from(`{"candidates":[{"content":{"parts":[{"text":"${'Some words. '.repeat(50_000)}`);
  for (let at = 0; at < body.length; at += 65_536) each.note(body.subarray(at, at + 65_536));
  t.match(each.usageAtEnd('client'), { output: Math.ceil(body.length / 4), partial: true });
});

test('where no tokens are counted, none are made up', async (t) => {
  for (const endpoint of [imageGenerations, countTokens, transcriptions]) {
    const each = observed(endpoint);
    each.whole(Buffer.from('{"data":[],"input_tokens":5}'));
    t.equal(each.usageAtEnd(null), null);
    t.equal(observed(endpoint).usageAtEnd('client'), null);
  }
});

test('the seconds of a transcript are those of its usage or of its duration', async (t) => {
  const seconds = (answer: string): number => {
    const each = observed(transcriptions);
    each.whole(Buffer.from(answer));
    each.usageAtEnd(null);
    return each.mediaSeconds;
  };
  t.equal(seconds('{"text":"a","usage":{"type":"duration","seconds":12}}'), 12);
  t.equal(seconds('{"task":"transcribe","duration":8.47,"text":"\\"duration\\": 5","segments":[]}'), 8.47);
  t.equal(seconds('{"duration":"3.5","text":"a"}'), 3.5);
  const heard = { prompt_tokens_details: { audio_tokens: 0 }, total_tokens: 9, prompt_audio_seconds: 203 };
  t.equal(seconds(JSON.stringify({ text: 'a', usage: heard })), 203);
  t.equal(seconds('{"text":"a","usage":{"prompt_audio_seconds":7}}'), 7);
  t.equal(seconds('{"duration":4,"text":"a","usage":{"seconds":null,"prompt_audio_seconds":{}}}'), 4);
  t.equal(seconds('{"text":"\\"duration\\":5"}'), 0);
  t.equal(seconds('{"text":"a","words":[{"word":"a","duration":0.3}],"duration":600}'), 600);
  t.equal(seconds('{"duration":600,"text":"a","words":[{"word":"a","duration":0.3}]}'), 600);
  t.equal(seconds('{"text":"a","words":[{"word":"a","duration":0.3}]}'), 0, 'that of a word');
  const inPieces = (answer: string): number => {
    const each = observed(transcriptions);
    for (let at = 0; at < answer.length; at += 5000) each.note(Buffer.from(answer.slice(at, at + 5000)));
    each.usageAtEnd(null);
    return each.mediaSeconds;
  };
  const words = JSON.stringify(new Array(1000).fill({ word: 'a', duration: 0.3 }));
  t.equal(inPieces(`{"text":"a","words":${words},"duration":600}`), 600);
  t.equal(inPieces(`{"duration":600,"text":"a","words":${words}}`), 600);
  t.equal(inPieces(`{"text":"a","words":${words}}`), 0);
  t.equal(seconds('only text'), 0);
});

test('a sound in WAV is as long as its head says, however it passes', async (t) => {
  const head = Buffer.alloc(44);
  head.write('RIFF', 0);
  head.write('WAVEfmt ', 8);
  head.writeUInt32LE(48_000, 28);
  const sound = Buffer.concat([head, Buffer.alloc(72_000)]);
  const whole = observed(speech);
  whole.whole(sound);
  t.equal(whole.mediaSeconds, 1.5);
  const pieces = observed(speech);
  for (let at = 0; at < sound.length; at += 5000) pieces.note(sound.subarray(at, at + 5000));
  pieces.usageAtEnd(null);
  t.equal(pieces.mediaSeconds, 1.5);
  const other = observed(speech);
  other.whole(Buffer.concat([Buffer.from('ID3'), sound]));
  t.equal(other.mediaSeconds, 0);
});

test('a stream of sound, images or a transcript whose client leaves before its last event is not free', async (t) => {
  const sound = 'QUJD'.repeat(500);
  const streams = [
    [transcriptions, { type: 'transcript.text.delta', delta: 'four' }, 1],
    [speech, { type: 'speech.audio.delta', audio: sound }, 1500],
    [
      imageGenerations,
      { type: 'image_generation.partial_image', b64_json: sound, partial_image_index: 0 },
      1500,
    ],
  ] as const;
  for (const [endpoint, event, output] of streams) {
    for (const brokenBy of ['client', 'upstream'] as const) {
      const each = observed(endpoint, { estimated: 'broken' });
      each.pass(sse(event));
      t.match(each.usageAtEnd(brokenBy), { input: 100, output, partial: true }, event.type);
    }
    const paid = observed(endpoint, { estimated: 'none' });
    paid.pass(sse(event));
    t.equal(paid.usageAtEnd('client'), null, 'its seconds pay for it');
    const whole = observed(endpoint, { estimated: 'broken' });
    whole.pass(sse(event));
    t.equal(whole.usageAtEnd(null), null, 'one that is whole has what was reported');
  }
  const done = observed(transcriptions, { estimated: 'broken' });
  done.pass(sse({ type: 'transcript.text.delta', delta: 'a' }, { type: 'transcript.text.done', text: 'a' }));
  t.equal(done.usageAtEnd('client'), null, 'so has one that the client has left behind its last event');
});

const shown = { type: 'image_generation.partial_image', b64_json: 'QUJD', partial_image_index: 0 };
const drawn = { type: 'image_generation.completed', b64_json: 'QUJD' };
const billed = { ...drawn, usage: { input_tokens: 10, output_tokens: 100, total_tokens: 110 } };

test('images of a stream that report no usage are estimated beside those that do', async (t) => {
  const each = observed(imageGenerations, { requested: 3 });
  each.pass(named(shown, billed, drawn, drawn));
  each.end();
  const parts = { imageOutput: 3100 };
  t.match(each.usageAtEnd(null), { input: 10, output: 3100, parts, estimated: true });
  const reported = observed(imageGenerations, { requested: 3 });
  reported.pass(named(billed, shown, billed));
  reported.end();
  const sum = reported.usageAtEnd(null);
  t.match(sum, { input: 20, output: 200 }, 'it has made two of three');
  t.equal(sum?.estimated ?? sum?.partial, undefined);
});

test('a stream of images that is cut has what was reported, and an estimate of the other images', async (t) => {
  const cases = [
    // Those that it has asked for, as if it had left before the first.
    ['client', [shown], { output: 4500, partial: true }],
    ['client', [shown, billed], { input: 10, output: 3100, partial: true }],
    ['client', [billed, billed, shown], { input: 20, output: 1700, partial: true }],
    ['client', [billed, billed, billed], { input: 30, output: 300 }],
    // Those that have begun.
    ['upstream', [shown], { output: 1500, partial: true }],
    ['upstream', [billed, billed, shown], { input: 20, output: 1700, partial: true }],
    ['upstream', [shown, shown, billed], { input: 10, output: 1600, partial: true }],
    ['upstream', [shown, shown, shown, shown, billed], { input: 10, output: 3100, partial: true }],
  ] as const;
  for (const [brokenBy, events, usage] of cases) {
    const each = observed(imageGenerations, { estimated: 'broken', requested: 3 });
    each.pass(named(...events));
    const used = each.usageAtEnd(brokenBy);
    t.match(used, usage, `${brokenBy} ${events.map(({ type }) => type)}`);
    t.equal(used?.partial, 'partial' in usage ? true : undefined);
  }
});

test('a stream of images whose usage says of how many it is costs no more if its client leaves behind it', async (t) => {
  const each = observed(imageGenerations, { estimated: 'broken', requested: 10 });
  const made = { type: 'image_generation.partial_succeeded', image_index: 0, b64_json: 'aGk=' };
  const usage = { generated_images: 2, output_tokens: 8000, total_tokens: 8000 };
  each.pass(named(made, { ...made, image_index: 1 }, { type: 'image_generation.completed', usage }));
  const used = each.usageAtEnd('client');
  t.match(used, { output: 8000, calls: 2 });
  t.equal(used?.partial, undefined);
});

test('blank lines between the events of a stream of images end none', async (t) => {
  const each = observed(imageGenerations);
  const blank = Buffer.from('\n\r\n'.repeat(500));
  each.pass(Buffer.concat([named(billed), blank, named(billed), blank]));
  each.end();
  t.match(each.usageAtEnd(null), { input: 20, output: 200 });
});

test('the images of a whole response that passes in pieces are counted, and its tier, whatever metadata follows', async (t) => {
  const tokens = { input_tokens: 1000, output_tokens: 200, total_tokens: 1200 };
  const made = { input_tokens: 30, output_tokens: 4000, output_tokens_details: { image_tokens: 4000 } };
  const told = {
    output: [{ type: 'image_generation_call', result: 'A'.repeat(200_000) }],
    service_tier: 'flex',
    tool_usage: { image_gen: made, web_search: { num_requests: 2 } },
    usage: tokens,
  };
  const expected = { input: 1030, output: 4200, searches: 2, tier: 'flex', parts: { imageOutput: 4000 } };
  for (const count of [0, 4, 16]) {
    const metadata = Object.fromEntries(
      Array.from({ length: count }, (_, index) => [`key${index}`, 'tier '.repeat(100)]),
    );
    const each = observed(responses);
    const body = Buffer.from(JSON.stringify({ ...told, metadata }));
    for (let at = 0; at < body.length; at += 65_536) each.note(body.subarray(at, at + 65_536));
    for (let asked = 0; asked < 2; asked++) {
      const usage = each.usageAtEnd(null);
      t.match(usage, expected, `${count} members of metadata`);
      t.notOk(usage?.estimated);
    }
  }
});
