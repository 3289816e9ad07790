import { test } from 'tap';
import {
  answerTokens,
  bodyEstimate,
  estimatedUsage,
  inputEstimate,
  tokensOf,
} from '../../src/conversation/estimate-usage.js';
import type { ConversationRequest, UserPart } from '../../src/conversation/request.js';

const request = (...parts: readonly UserPart[]): ConversationRequest =>
  ({ turns: [{ role: 'user', parts }] }) as unknown as ConversationRequest;

test('a request is estimated by the length of its body, its media apart', async (t) => {
  const image: UserPart = {
    kind: 'image',
    source: { kind: 'data', mediaType: 'image/png', data: 'A'.repeat(1_000_000) },
    detail: null,
    name: null,
    at: '',
  };
  t.equal(inputEstimate(request({ kind: 'text', text: 'x' }), 400), 100);
  t.equal(inputEstimate(request(image), 1_000_400), 1600);
  const result: UserPart = {
    kind: 'toolResult',
    callId: '',
    name: '',
    content: [image],
    isError: false,
    at: '',
  };
  t.equal(inputEstimate(request(result), 1_000_400), 1600);
});

test('a body that nobody has read is estimated by samples of it', async (t) => {
  const words = 'Some words of a text. '.repeat(10_000);
  t.equal(bodyEstimate(Buffer.from('x'.repeat(400))), 100);
  t.equal(bodyEstimate(Buffer.from(words)), Math.ceil(words.length / 4));
  const foreign = '\u5b57'.repeat(50_000);
  t.equal(bodyEstimate(Buffer.from(foreign)), Math.ceil((3 * foreign.length) / 4));
  const image = JSON.stringify({ text: 'What is this?', image: 'iVBORw0KGgo'.repeat(200_000) });
  t.ok(bodyEstimate(Buffer.from(image)) < 150_000, `${bodyEstimate(Buffer.from(image))}`);
  const both = JSON.stringify({ text: words, image: 'A'.repeat(words.length) });
  const estimate = bodyEstimate(Buffer.from(both));
  t.ok(estimate > 40_000 && estimate < 70_000, `${estimate}`);
});

test('a text is estimated as one, whatever it holds and however it is written', (t) => {
  const words = 'Some words of a text. '.repeat(40_000);
  const least = words.length / 4 / 2;
  const letters = 'iVBORw0KGgo'.repeat(20);
  // In each of the places that an even spread of samples would be in.
  const body = Buffer.from(JSON.stringify({ model: 'x', messages: [{ role: 'user', content: words }] }));
  const step = Math.floor((body.length - 64) / 15);
  for (let i = 0; i < 16; i++) body.write(letters, Math.min(body.length - 64, Math.max(0, i * step - 64)));
  t.ok(bodyEstimate(body) > least, `${bodyEstimate(body)}`);

  const joined = words.replaceAll(/[ .]+/g, '_');
  const call = { function: { name: 'f', arguments: JSON.stringify({ data: joined }) } };
  const texts: readonly object[] = [
    { messages: [{ role: 'user', content: joined }] },
    { messages: [{ role: 'user', content: [{ type: 'text', text: joined }] }] },
    { messages: [{ role: 'assistant', tool_calls: [call] }] },
    { input: joined },
    { input: [joined] },
    { instructions: joined, input: 'x' },
    { contents: [{ parts: [{ text: joined }] }] },
  ];
  for (const each of texts) {
    for (const space of [0, 1]) {
      const estimate = bodyEstimate(Buffer.from(JSON.stringify(each, null, space)));
      t.ok(estimate > joined.length / 4 / 2, `${estimate} ${JSON.stringify(each).slice(0, 60)}`);
    }
  }
  const url = `data:image/png;base64,${letters.repeat(5000)}`;
  const media: readonly object[] = [
    { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] },
    { input: [{ role: 'user', content: [{ type: 'input_image', image_url: url }] }] },
    { messages: [{ role: 'user', content: [{ type: 'image', source: { data: letters.repeat(5000) } }] }] },
    { contents: [{ parts: [{ inlineData: { data: letters.repeat(5000) } }] }] },
  ];
  for (const each of media) {
    const estimate = bodyEstimate(Buffer.from(JSON.stringify(each)));
    t.ok(estimate < url.length / 4 / 4, `${estimate} ${JSON.stringify(each).slice(0, 60)}`);
  }
  t.end();
});

test('only what stands where media do is taken for one', (t) => {
  const w = 'iVBORw0KGgo'.repeat(80_000);
  const user = (...content: readonly object[]) => ({ messages: [{ role: 'user', content }] });
  const document = (source: object) => user({ type: 'document', source });
  const inline = (inlineData: object) => ({ contents: [{ parts: [{ inlineData }] }] });
  const escaped = JSON.stringify(user({ type: 'image', source: { type: 'base64', data: w } }));
  const texts: readonly (object | string)[] = [
    document({ type: 'text', media_type: 'text/plain', data: w }),
    document({ data: w, media_type: 'text/plain', type: 'text' }),
    document({ type: 'text', media_type: 'image/png', data: w }),
    document({ media_type: 'text/plain', data: w, type: 'text' }),
    inline({ data: w, mimeType: 'text/plain' }),
    inline({ data: w, displayName: '}', mimeType: 'text/plain' }),
    inline({ mimeType: 'text/plain', data: w }),
    { messages: [{ role: 'assistant', content: [{ type: 'tool_use', input: { code: w } }] }] },
    { messages: [{ role: 'assistant', content: [{ type: 'thinking', thinking: w }] }] },
    { messages: [{ role: 'user', content: `data:image/png;base64,${w}` }] },
    { contents: [{ parts: [{ functionResponse: { response: { result: w } } }] }] },
    { contents: [{ parts: [{ functionResponse: { response: { image: w } } }] }] },
    {
      contents: [
        { parts: [{ functionCall: { args: { a: [{ inlineData: { mimeType: 'image/png', data: w } }] } } }] },
      ],
    },
    { messages: [{ role: 'assistant', content: [{ type: 'tool_use', input: { image: w } }] }] },
    { messages: [{ role: 'assistant', content: [{ type: 'tool_use', input: { images: ['A', w] } }] }] },
    JSON.stringify({ messages: [{ content: [{ given: { image: w } }] }] }).replace('given', '\\u0069nput'),
    { tools: [{ function: { parameters: { properties: { image: w } } } }] },
    { input: ['short', w] },
    { query: 'q', documents: ['short', w, 'x'] },
    { prefix: w, suffix: w },
    { input: { image: 'AAAA', [w]: 1 } },
    { input: { image: ['AAAA'], [w]: 1 } },
    { input: { image: [`${'A'.repeat(50)} ${w}`] } },
    { input: [{ type: 'input_file', file_data: `data:text/plain;base64,${w}` }] },
    { tools: [{ function: { parameters: { enum: [w] } } }] },
    { numbers: `"image":${w}` },
    escaped.replace('"data"', '"d\\u0061ta"'),
    `{"messages":[{"role":"user","\\u0063ontent":"${w}"}]}`,
  ];
  for (const each of texts) {
    const body = typeof each === 'string' ? each : JSON.stringify(each);
    t.ok(bodyEstimate(Buffer.from(body)) >= w.length / 4, body.replace(w, '…').slice(0, 120));
  }
  const url = `data:image/png;base64,${w}`;
  const media: readonly object[] = [
    user({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: w } }),
    user({ type: 'image', source: { data: w, media_type: 'image/png', type: 'base64' } }),
    document({ type: 'base64', media_type: 'application/pdf', data: w }),
    inline({ mimeType: 'image/png', data: w }),
    inline({ data: w, mimeType: 'image/png' }),
    { contents: [{ parts: [{ inline_data: { data: w, mime_type: 'image/png' } }] }] },
    user({ type: 'input_audio', input_audio: { data: w, format: 'wav' } }),
    user({ type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${w}` } }),
    user({ type: 'image_url', image_url: { detail: 'low', url } }),
    { input: [{ role: 'user', content: [{ type: 'input_image', image_url: url }] }] },
    { input: [{ type: 'reasoning', encrypted_content: w }] },
    { messages: [{ role: 'assistant', content: [{ type: 'redacted_thinking', data: w }] }] },
    { prompt: 'x', image: [url, url] },
    { input: { image: w } },
    { instances: [{ prompt: 'x', image: { bytesBase64Encoded: w } }], parameters: { sampleCount: 1 } },
    {
      messages: [
        { role: 'assistant', content: [{ type: 'tool_use', input: { a: [{}, '}'] } }] },
        {
          content: [
            { type: 'tool_result', content: [{ type: 'image', source: { type: 'base64', data: w } }] },
          ],
        },
      ],
    },
  ];
  for (const each of media) {
    for (const space of [0, 2]) {
      const body = JSON.stringify(each, null, space);
      const estimate = bodyEstimate(Buffer.from(body));
      t.ok(estimate < body.length / 4 / 6, `${estimate} ${body.replaceAll(w, '…').slice(0, 120)}`);
    }
  }
  t.end();
});

test('a medium of any size is one, beside a text of any size', (t) => {
  const image = 'iVBORw0KGgo'.repeat(2_000_000);
  const part = { type: 'input_image', image_url: `data:image/png;base64,${image}` };
  const alone = JSON.stringify({ input: [part] });
  const text = 'words '.repeat(400_000);
  const behind = JSON.stringify({ input: [{ type: 'input_text', text }, part] });
  const { random } = Math;
  t.teardown(() => {
    Math.random = random;
  });
  // Near the first, in the middle of and near the last of the places that may be looked at.
  for (const place of [0.001, 0.5, 0.999]) {
    Math.random = () => place;
    t.equal(bodyEstimate(Buffer.from(alone)), 1500, `${place}`);
    const both = bodyEstimate(Buffer.from(behind));
    t.ok(both > 300_000 && both < 900_000, `behind a text, ${place}: ${both}`);
  }
  Math.random = random;
  const small = 'A'.repeat(700_000);
  const parts = [{ inlineData: { mimeType: 'image/png', data: small } }, { text: small.repeat(6) }];
  const hidden = bodyEstimate(Buffer.from(JSON.stringify({ contents: [{ parts }] })));
  t.ok(hidden > 900_000, `the text behind an image: ${hidden}`);
  t.end();
});

test('a medium is one where the place that is looked at before it is in its head', (t) => {
  const url = `data:application/pdf;base64,${'iVBORw0KGgo'.repeat(80_000)}`;
  const content = [{ type: 'file', file: { filename: 'a.pdf', file_data: url } }];
  const body = JSON.stringify({ messages: [{ role: 'user', content }] });
  const { random } = Math;
  t.teardown(() => {
    Math.random = random;
  });
  const step = (body.length - 64) / 16;
  const head = body.indexOf(url);
  for (let at = head - 70; at < head + 40; at++) {
    let drawn = 0;
    Math.random = () => (drawn++ === 0 ? (at + 0.5) / step : 0.5);
    const estimate = bodyEstimate(Buffer.from(body));
    t.ok(estimate < body.length / 4 / 6, `${at - head}: ${estimate}`);
  }
  t.end();
});

test('a body has one estimate, however often it is asked for', (t) => {
  const parts = Array.from({ length: 40 }, (_, index) =>
    index % 2 === 0
      ? { text: 'x '.repeat(2000) }
      : { inlineData: { mimeType: 'image/png', data: 'A'.repeat(4000) } },
  );
  const body = Buffer.from(JSON.stringify({ contents: [{ parts }] }));
  const first = bodyEstimate(body);
  for (let i = 0; i < 50; i++) t.equal(bodyEstimate(body), first);
  t.end();
});

test('an answer is estimated by the length of its texts and arguments', async (t) => {
  const call = { kind: 'toolCall', id: '', name: 'f', input: '{"a":123}', custom: false, at: '' } as const;
  const choice = {
    parts: [{ kind: 'text', text: 'abc' } as const, call],
    finish: 'stop' as const,
    stopSequence: null,
  };
  t.equal(answerTokens({ choices: [choice], usage: null }), 3);
  const foreign = { ...choice, parts: [{ kind: 'text', text: '漢字かな' } as const] };
  t.equal(answerTokens({ choices: [foreign], usage: null }), 4);
  t.equal(tokensOf(0), 0);
  t.strictSame(estimatedUsage(5, 6), {
    input: 5,
    output: 6,
    cached: 0,
    cacheWritten: 0,
    reasoning: 0,
    estimated: true,
  });
});
