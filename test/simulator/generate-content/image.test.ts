import { test } from 'tap';
import type { Simulator } from '../../../src/simulator/server.js';
import { pngSize } from '../../support/media/images.js';
import { simulate } from '../../support/simulator.js';
import { type Posted, post } from '../post.js';

const both = ['TEXT', 'IMAGE'];
const said = 'Simulated answer to: A lighthouse';

function ask(generationConfig: object, text = 'A lighthouse', more: object = {}): object {
  return { contents: [{ role: 'user', parts: [{ text }] }], generationConfig, ...more };
}

function send(simulator: Simulator, body: object, method = 'generateContent'): Promise<Posted> {
  return post(simulator, `/models/sim-image:${method}`, body);
}

interface Part {
  readonly text?: string;
  readonly inlineData?: { readonly mimeType: string; readonly data: string };
}

interface Answered {
  readonly candidates: readonly { readonly content: { readonly parts?: readonly Part[] } }[];
}

function partsOf(answers: readonly Answered[]): Part[] {
  return answers.flatMap(({ candidates }) => candidates[0]?.content.parts ?? []);
}

async function parts(simulator: Simulator, body: object): Promise<Part[]> {
  return partsOf([JSON.parse((await send(simulator, body)).text)]);
}

/** `WIDTHxHEIGHT` of the image in a part. */
function sizeOf(part: Part | undefined): string {
  if (part?.inlineData?.mimeType !== 'image/png') return 'no image';
  const { width, height } = pngSize(Buffer.from(part.inlineData.data, 'base64'));
  return `${width}x${height}`;
}

test('an answer has a text and an image, and counts the tokens of both', async (t) => {
  const simulator = await simulate(t);
  const heard = await send(simulator, ask({ responseModalities: both }));
  t.equal(heard.status, 200);
  const body = JSON.parse(heard.text);
  const [text, image, ...more] = partsOf([body]);
  t.strictSame([text, more], [{ text: said }, []]);
  t.equal(sizeOf(image), '1024x1024');
  t.match(body, {
    candidates: [{ finishReason: 'STOP', index: 0 }],
    usageMetadata: {
      promptTokenCount: 3,
      candidatesTokenCount: 1129,
      totalTokenCount: 1132,
      candidatesTokensDetails: [
        { modality: 'TEXT', tokenCount: 9 },
        { modality: 'IMAGE', tokenCount: 1120 },
      ],
    },
    modelVersion: 'sim-image',
  });
});

test('the modalities decide whether there is a text, in whichever case they are written', async (t) => {
  const simulator = await simulate(t);
  for (const responseModalities of [['IMAGE'], ['image'], ['Image', 'IMAGE']]) {
    const [image, ...more] = await parts(simulator, ask({ responseModalities }));
    t.equal(sizeOf(image), '1024x1024', `${responseModalities}`);
    t.strictSame(more, []);
  }
  const unset = [undefined, [], ['MODALITY_UNSPECIFIED']];
  for (const responseModalities of [['Text', 'Image'], ['image', 'text'], ...unset]) {
    const [text, image] = await parts(simulator, ask({ responseModalities }));
    t.equal(text?.text, said, `${responseModalities}`);
    t.equal(sizeOf(image), '1024x1024');
  }
});

test('ratio and size decide the pixels, whose edges are at most 4096', async (t) => {
  const simulator = await simulate(t);
  const cases = [
    [{}, '1024x1024'],
    [{ aspectRatio: '16:9' }, '1376x768'],
    [{ aspectRatio: '9:16', imageSize: '1K' }, '768x1376'],
    [{ aspectRatio: '4:5', imageSize: '2K' }, '1856x2304'],
    [{ imageSize: '4K' }, '4096x4096'],
    [{ aspectRatio: '21:9', imageSize: '4K' }, '4096x1738'],
    [{ aspect_ratio: '3:2', image_size: '2K' }, '2528x1696'],
  ] as const;
  for (const [imageConfig, size] of cases) {
    const name = 'aspect_ratio' in imageConfig ? 'image_config' : 'imageConfig';
    const [image] = await parts(simulator, ask({ responseModalities: ['IMAGE'], [name]: imageConfig }));
    t.equal(sizeOf(image), size, JSON.stringify(imageConfig));
  }
});

test('a stream brings the words and then the same image whole, as events and as an array', async (t) => {
  const simulator = await simulate(t);
  const body = ask({ responseModalities: both, imageConfig: { aspectRatio: '3:4' } });
  const whole = JSON.parse((await send(simulator, body)).text);
  const events = (await send(simulator, body, 'streamGenerateContent?alt=sse')).events;
  const array = JSON.parse((await send(simulator, body, 'streamGenerateContent')).text);
  for (const chunks of [events.map((event) => JSON.parse(event)), array]) {
    const all = partsOf(chunks);
    t.equal(all.map(({ text = '' }) => text).join(''), said);
    t.strictSame(all.at(-1), partsOf([whole]).at(-1));
    t.equal(all.filter(({ inlineData }) => inlineData !== undefined).length, 1);
    t.match(chunks.at(-1), { candidates: [{ finishReason: 'STOP' }], usageMetadata: whole.usageMetadata });
  }
});

test('the same request has the same image, and another prompt another one', async (t) => {
  const simulator = await simulate(t);
  const image = (text: string) => parts(simulator, ask({ responseModalities: ['IMAGE'] }, text));
  const [first] = await image('a fox');
  t.strictSame((await image('a fox'))[0], first);
  t.notSame((await image('a bear'))[0], first);
});

test('an image goes back in the history, and tokens are counted', async (t) => {
  const simulator = await simulate(t);
  const drawn = await parts(simulator, ask({}));
  const contents = [
    { role: 'user', parts: [{ text: 'A lighthouse' }] },
    { role: 'model', parts: drawn },
    { role: 'user', parts: [{ text: 'At night' }] },
  ];
  const [text, image] = await parts(simulator, ask({}, '', { contents }));
  t.equal(text?.text, 'Simulated answer to: At night');
  t.equal(sizeOf(image), '1024x1024');
  const counted = await send(simulator, { contents }, 'countTokens');
  t.match(JSON.parse(counted.text), {
    promptTokensDetails: [{ modality: 'TEXT' }, { modality: 'IMAGE', tokenCount: 85 }],
  });
});

test('an image that does not fit, or that a text does not come to, is not made', async (t) => {
  const simulator = await simulate(t);
  const answered = async (config: object, text?: string) =>
    JSON.parse((await send(simulator, ask(config, text))).text);
  t.match(await answered({ maxOutputTokens: 1000 }), {
    candidates: [{ content: { parts: [{ text: said }] }, finishReason: 'MAX_TOKENS' }],
    usageMetadata: { candidatesTokenCount: 9, candidatesTokensDetails: undefined },
  });
  const alone = await answered({ maxOutputTokens: 1000, responseModalities: ['IMAGE'] });
  t.match(alone.candidates, [{ finishReason: 'MAX_TOKENS' }]);
  t.strictSame(partsOf([alone]), []);
  const stopped = await answered({ stopSequences: [' to:'] });
  t.strictSame(partsOf([stopped]), [{ text: 'Simulated answer' }]);
  const refused = await answered({}, '[[fault:refuse]] A lighthouse');
  t.match(refused.candidates, [{ content: undefined, finishReason: 'SAFETY' }]);
});

test('faults reach an answer with an image as they reach a text', async (t) => {
  const simulator = await simulate(t);
  const limited = await send(simulator, ask({}, '[[fault:status=429]] A lighthouse'));
  t.match([limited.status, JSON.parse(limited.text)], [429, { error: { status: 'RESOURCE_EXHAUSTED' } }]);
  const broken = await send(
    simulator,
    ask({}, '[[fault:error-event after=2]] A lighthouse'),
    'streamGenerateContent?alt=sse',
  );
  t.match(
    broken.events.map((event) => JSON.parse(event)),
    [{ candidates: [{}] }, { candidates: [{}] }, { error: { status: 'INTERNAL' } }],
  );
  const named = await send(simulator, ask({}, '[[fault:finish=IMAGE_OTHER]] A lighthouse'));
  t.match(JSON.parse(named.text), { candidates: [{ finishReason: 'IMAGE_OTHER' }] });
  const unknown = await send(simulator, ask({}, '[[fault:nonsense]] A lighthouse'));
  t.match([unknown.status, JSON.parse(unknown.text)], [400, { error: { status: 'INVALID_ARGUMENT' } }]);
});

test('what an image model refuses is refused', async (t) => {
  const simulator = await simulate(t);
  const functionDeclarations = [{ name: 'get_weather', parametersJsonSchema: { type: 'object' } }];
  const cases: [object, RegExp][] = [
    [ask({ responseModalities: ['TEXT'] }), /combination of response modalities \(TEXT\) is not supported/],
    [ask({ responseModalities: ['IMAGE', 'AUDIO'] }), /\(IMAGE, AUDIO\) is not supported/],
    [ask({ imageConfig: { aspectRatio: '7:5' } }), /image_config\.aspect_ratio: must be one of 1:1, 2:3/],
    [ask({ imageConfig: { aspectRatio: '16x9' } }), /image_config\.aspect_ratio/],
    [ask({ imageConfig: { aspectRatio: 'toString' } }), /image_config\.aspect_ratio/],
    [ask({ imageConfig: { imageSize: '8K' } }), /image_config\.image_size: must be one of 1K, 2K, 4K/],
    [ask({ imageConfig: { imageSize: '1k' } }), /image_config\.image_size/],
    [ask({ imageConfig: { ratio: '1:1' } }), /Unknown name "ratio" at 'generationConfig\.imageConfig'/],
    [ask({ imageConfig: '1:1' }), /Invalid value at 'generationConfig\.imageConfig'/],
    [ask({ candidateCount: 2 }), /Multiple candidates is not enabled for models\/sim-image/],
    [ask({ responseMimeType: 'application/json' }), /JSON mode is not enabled/],
    [ask({}, 'x', { tools: [{ functionDeclarations }] }), /Function calling is not enabled/],
  ];
  for (const [body, message] of cases) {
    for (const method of ['generateContent', 'streamGenerateContent?alt=sse']) {
      const heard = await send(simulator, body, method);
      t.match(
        [heard.status, JSON.parse(heard.text)],
        [400, { error: { code: 400, message, status: 'INVALID_ARGUMENT' } }],
        `${message}`,
      );
    }
  }
});

test('a model of text is asked for no image', async (t) => {
  const simulator = await simulate(t);
  for (const responseModalities of [['IMAGE'], ['Text', 'Image']]) {
    const heard = await post(simulator, '/models/sim-text:generateContent', ask({ responseModalities }));
    t.match(
      [heard.status, JSON.parse(heard.text)],
      [400, { error: { message: /response_modalities: this model gives nothing but TEXT/ } }],
    );
  }
  const text = await post(
    simulator,
    '/models/sim-text:generateContent',
    ask({ responseModalities: ['text'] }),
  );
  t.equal(text.status, 200, 'in any case');
});
