import { test } from 'tap';
import { generateContentImages } from '../../../src/protocols/generate-content/images.js';

const { imagesAsked, decode, encode } = generateContentImages;
const both = ['TEXT', 'IMAGE'];
const png = 'iVBORw0KGgo=';
const text = { text: 'a fox' };
const inline = { inlineData: { mimeType: 'image/png', data: png } };

/** The body of the API document, with more in its config. */
function body(config: object = {}, parts: readonly object[] = [text]): Record<string, unknown> {
  return {
    contents: [{ role: 'user', parts }],
    generationConfig: { responseModalities: both, ...config },
  };
}

test('images are asked for by their modality, or by what they are to be like', async (t) => {
  for (const asked of [
    body(),
    body({ responseModalities: ['IMAGE'] }),
    body({ responseModalities: ['image'] }),
    body({ responseModalities: 'IMAGE' }),
    body({ responseModalities: null, imageConfig: { aspectRatio: '1:1' } }),
    { contents: [], generation_config: { response_modalities: ['Image'] } },
    { contents: [], generation_config: { image_config: {} } },
    { contents: [], generationConfig: { responseFormat: { image: {} } } },
    { contents: [], generation_config: { response_format: [{ text: {} }, { image: {} }] } },
  ])
    t.equal(imagesAsked(asked), 1, JSON.stringify(asked));
  for (const asked of [
    { contents: [] },
    { contents: [], generationConfig: null },
    { contents: [], generationConfig: 'IMAGE' },
    body({ responseModalities: ['TEXT'] }),
    body({ responseModalities: ['TEXT'], imageConfig: {} }),
    body({ responseModalities: null }),
    body({ responseModalities: null, responseFormat: { text: {} } }),
    body({ responseModalities: ['TEXT'], responseFormat: { image: {} } }),
    body({ responseModalities: [null, 5, {}] }),
  ])
    t.equal(imagesAsked(asked), 0, JSON.stringify(asked));
});

test('as many are asked for as candidates', (t) => {
  t.equal(imagesAsked(body({ candidateCount: 3 })), 3);
  t.equal(imagesAsked({ contents: [], generation_config: { image_config: {}, candidate_count: 2 } }), 2);
  for (const candidateCount of [0, -1, 1.5, '3', null]) t.equal(imagesAsked(body({ candidateCount })), 1);
  t.equal(imagesAsked(body({ responseModalities: ['TEXT'], candidateCount: 3 })), 0);
  t.end();
});

test('the example of the API document', async (t) => {
  t.strictSame(decode(body({ imageConfig: { aspectRatio: '16:9', imageSize: '2K' } })), {
    prompt: 'a fox',
    images: [],
    ratio: { value: 16 / 9, at: 'generationConfig.imageConfig.aspectRatio' },
    edge: { value: 2048, at: 'generationConfig.imageConfig.imageSize' },
    count: 1,
    leftOut: [],
  });
  t.match(
    decode({
      contents: [{ parts: [text] }],
      generation_config: {
        response_modalities: both,
        image_config: { aspect_ratio: '1:1', image_size: '512' },
      },
    }),
    {
      ratio: { value: 1, at: 'generation_config.image_config.aspect_ratio' },
      edge: { value: 512 },
      leftOut: [],
    },
  );
  t.match(decode(body()), { ratio: null, edge: null });
  t.match(decode(body({ candidateCount: 3, imageConfig: { imageSize: '4k' } })), {
    count: 3,
    edge: { value: 4096 },
  });
});

test('what images are to be like may stand in responseFormat, in the words of an enumeration', async (t) => {
  const image = { aspectRatio: 'ASPECT_RATIO_TWENTY_ONE_BY_NINE', imageSize: 'IMAGE_SIZE_TWO_K' };
  const at = 'generationConfig.responseFormat.image';
  t.match(decode(body({ responseFormat: { image } })), {
    ratio: { value: 21 / 9, at: `${at}.aspectRatio` },
    edge: { value: 2048, at: `${at}.imageSize` },
    leftOut: [],
  });
  t.match(decode({ contents: [{ parts: [text] }], generationConfig: { responseFormat: [{ image }] } }), {
    ratio: { value: 21 / 9, at: 'generationConfig.responseFormat[0].image.aspectRatio' },
    edge: { value: 2048 },
  });
  t.match(decode(body({ response_format: { image: { aspect_ratio: '16:9', image_size: '512' } } })), {
    ratio: { value: 16 / 9 },
    edge: { value: 512 },
  });
  const unsaid = { aspectRatio: 'ASPECT_RATIO_UNSPECIFIED', imageSize: 'IMAGE_SIZE_UNSPECIFIED' };
  t.match(decode(body({ responseFormat: { image: unsaid } })), { ratio: null, edge: null });
  t.strictSame(
    decode(
      body({ responseFormat: { image: { ...image, delivery: 'URI' }, text: { mimeType: 'TEXT_PLAIN' } } }),
    ).leftOut,
    [`${at}.delivery`, 'generationConfig.responseFormat.text'],
  );
});

test('the prompt is what instructions and user say, and images of any turn are gone on from', async (t) => {
  const asked = {
    systemInstruction: { parts: [{ text: 'Draw in ink.' }] },
    contents: [
      { role: 'user', parts: [text, inline] },
      { role: 'model', parts: [{ text: 'Here it is.' }, { text: 'hm', thought: true }, inline] },
      { role: 'user', parts: [{ text: 'Make it blue.' }, { fileData: { fileUri: 'https://h/a.png' } }] },
    ],
    generationConfig: { responseModalities: both },
  };
  t.match(decode(asked), {
    prompt: 'Draw in ink.\n\na fox\n\nMake it blue.',
    images: [
      {
        kind: 'bytes',
        bytes: Buffer.from(png, 'base64'),
        mediaType: 'image/png',
        at: 'contents[0].parts[1].inlineData',
      },
      { kind: 'bytes', at: 'contents[1].parts[2].inlineData' },
      { kind: 'url', url: 'https://h/a.png', at: 'contents[2].parts[1].fileData' },
    ],
    leftOut: [],
  });
});

test('what says nothing to a model that makes images is named', async (t) => {
  const asked = {
    ...body({ temperature: 1, maxOutputTokens: 5, imageConfig: { personGeneration: 'ALLOW' } }),
    safetySettings: [{ category: 'C', threshold: 'T' }],
    tools: [{ googleSearch: {} }],
  };
  t.strictSame([...decode(asked).leftOut].sort(), [
    'generationConfig.imageConfig.personGeneration',
    'generationConfig.maxOutputTokens',
    'generationConfig.temperature',
    'safetySettings',
    'tools',
  ]);
});

test('what no image can be made of is refused at its place', async (t) => {
  const cases: readonly (readonly [object, string])[] = [
    [body({}, [inline]), 'contents'],
    [body({ imageConfig: { aspectRatio: 'wide' } }), 'generationConfig.imageConfig.aspectRatio'],
    [body({ imageConfig: { aspectRatio: '0:1' } }), 'generationConfig.imageConfig.aspectRatio'],
    [body({ imageConfig: { imageSize: 'huge' } }), 'generationConfig.imageConfig.imageSize'],
    [body({ imageConfig: { imageSize: 5 } }), 'generationConfig.imageConfig.imageSize'],
    [body({ responseModalities: ['IMAGE', 'AUDIO'] }), 'generationConfig.responseModalities'],
    [body({ speechConfig: {} }), 'generationConfig.speechConfig'],
    [body({ responseFormat: { audio: {} } }), 'generationConfig.responseFormat.audio'],
    [
      body({ responseFormat: { image: { aspectRatio: 'ASPECT_RATIO_ANY' } } }),
      'generationConfig.responseFormat.image.aspectRatio',
    ],
    [
      body({}, [text, { inlineData: { mimeType: 'image/png', data: '!' } }]),
      'contents[0].parts[1].inlineData',
    ],
    [
      body({}, [text, { inlineData: { mimeType: 'audio/wav', data: png } }]),
      'contents[0].parts[1].inlineData',
    ],
    [body({}, [text, { fileData: { fileUri: 'gs://b/a.png' } }]), 'contents[0].parts[1].fileData.fileUri'],
    [body({}, [text, { functionCall: { name: 'f' } }]), 'contents[0].parts[1].functionCall'],
    [{ ...body(), contents: [] }, 'contents'],
    [{ ...body(), contents: text }, 'contents'],
    [{ ...body(), cachedContent: 'c' }, 'cachedContent'],
  ];
  for (const [asked, param] of cases)
    t.throws(
      () => decode(asked as Record<string, unknown>),
      { name: 'GatewayError', status: 400, param },
      JSON.stringify(asked),
    );
});

test('each image is a candidate, whole or as the only event of a stream', async (t) => {
  const image = { mediaType: 'image/png', base64: png };
  const usage = { input: 3, output: 4, cached: 0, cacheWritten: 0, reasoning: 0 };
  const made = { images: [image, image], usage, model: 'm', id: '1', framing: null } as const;
  const candidate = (index: number) => ({
    content: { role: 'model', parts: [{ inlineData: { mimeType: 'image/png', data: png } }] },
    finishReason: 'STOP',
    index,
  });
  const answer = {
    candidates: [candidate(0), candidate(1)],
    usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 4, totalTokenCount: 7 },
    modelVersion: 'm',
    responseId: '1',
  };
  t.strictSame(JSON.parse(encode(made)), answer);
  t.strictSame(JSON.parse(encode({ ...made, framing: 'array' })), [answer]);
  const event = encode({ ...made, framing: 'sse' });
  t.match(event, /^data: \{.*\}\n\n$/);
  t.strictSame(JSON.parse(event.slice('data: '.length)), answer);
  t.notOk('usageMetadata' in JSON.parse(encode({ ...made, usage: null })));
});
