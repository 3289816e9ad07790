import { test } from 'tap';
import { simulate } from '../../support/simulator.js';
import { get, postJson } from '../media-ask.js';

const path = '/api/v1/services/aigc/multimodal-generation/generation';
const body = (content: unknown, parameters: object = { size: '64*48' }, more: object = {}): object => ({
  model: 'sim-image',
  input: { messages: [{ role: 'user', content }] },
  parameters,
  ...more,
});
const text = { text: 'a fox' };
const image = { image: 'https://example.com/a.png' };

test('images come as addresses, in one message', async (t) => {
  const simulator = await simulate(t);
  const parameters = {
    size: '64*48',
    n: 2,
    negative_prompt: 'red',
    prompt_extend: true,
    watermark: false,
    seed: 7,
  };
  const heard = await postJson(simulator, path, body([image, text], parameters));
  t.equal(heard.status, 200);
  const answer = JSON.parse(heard.text);
  t.match(answer, {
    output: { choices: [{ finish_reason: 'stop', message: { role: 'assistant' } }] },
    usage: { image_count: 2, width: 64, height: 48 },
    request_id: /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/,
  });
  const { content } = answer.output.choices[0].message;
  t.equal(content.length, 2);
  t.not(content[0].image, content[1].image);
  const png = await get(simulator, content[0].image);
  t.match([png.headers.get('content-type'), png.bytes.readUInt32BE(16)], ['image/png', 64]);
  const edited = JSON.parse((await postJson(simulator, path, body([text], parameters))).text);
  t.not(edited.output.choices[0].message.content[0].image, content[0].image, 'a given image counts');
});

test('what the real one refuses is refused in its words', async (t) => {
  const simulator = await simulate(t);
  const refused: readonly [object | string, number, string][] = [
    ['{', 400, 'InvalidParameter.JsonParseError'],
    [body([text], {}, { model: undefined }), 400, 'InvalidParameter'],
    [body([text], {}, { model: 'nope' }), 404, 'ModelNotFound'],
    [body([text], {}, { input: undefined }), 400, 'InvalidParameter'],
    [body([text], {}, { input: { prompt: 'a fox' } }), 400, 'InvalidParameter'],
    [body([text], {}, { input: { messages: [{ content: [text] }] } }), 400, 'InvalidParameter'],
    [body('a fox'), 400, 'InvalidParameter'],
    [body([]), 400, 'InvalidParameter'],
    [body([image]), 400, 'InvalidParameter'],
    [body([text, text]), 400, 'InvalidParameter'],
    [body([{ type: 'text', value: 'a' }]), 400, 'InvalidParameter'],
    [body([text, image, image, image, image]), 400, 'InvalidParameter'],
    [body([text, { image: 'AAAA' }]), 400, 'InvalidParameter'],
    [body([text], { size: '64x48' }), 400, 'InvalidParameter'],
    [body([text], { n: 7 }), 400, 'InvalidParameter'],
    [body([text], { watermark: 'false' }), 400, 'InvalidParameter'],
    [body([text], { negative_prompt: 5 }), 400, 'InvalidParameter'],
  ];
  for (const [sent, status, code] of refused) {
    const heard = await postJson(simulator, path, sent);
    t.equal(heard.status, status, JSON.stringify(sent));
    t.match(JSON.parse(heard.text), { code, message: String, request_id: String });
  }
});

test('faults and unknown paths are answered in its words', async (t) => {
  const simulator = await simulate(t);
  const limited = await postJson(simulator, path, body([{ text: '[[fault:status=429 retry-after=3]] a' }]));
  t.match([limited.status, limited.headers.get('retry-after')], [429, '3']);
  t.match(JSON.parse(limited.text), { code: 'Throttling.RateQuota', request_id: String });
  const unknown = await postJson(simulator, '/api/v1/services/nothing', {});
  t.equal(unknown.status, 404);
  t.match(JSON.parse(unknown.text), { code: 'ModelNotFound', request_id: String });
  const odd = await postJson(simulator, path, body([{ text: '[[video:speed=3]] a' }]));
  t.match([odd.status, JSON.parse(odd.text).code], [400, 'InvalidParameter']);
});
