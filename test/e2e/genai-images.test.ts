import { test } from 'tap';
import { type ServedBy, startGateway } from '../support/gateway.js';
import { pngSize } from '../support/media/images.js';
import {
  bodyOf,
  createClient,
  type Part,
  type Response,
  raised,
  sdks,
  textOf,
} from '../support/sdks/genai.js';

const model = 'sim-image';
const contents = 'A lighthouse';
const both = ['TEXT', 'IMAGE'];

/** The sizes of the images in answers, all of which must be PNGs. */
function sizesIn(responses: readonly Response[]): { readonly width: number; readonly height: number }[] {
  return responses
    .flatMap((response) => response.candidates?.[0]?.content?.parts ?? [])
    .flatMap(({ inlineData }: Part) => inlineData ?? [])
    .map(({ mimeType, data }) => {
      if (mimeType !== 'image/png') throw new Error(`an image of the type ${mimeType}`);
      return pngSize(Buffer.from(data ?? '', 'base64'));
    });
}

for (const sdk of sdks) {
  for (const kind of ['simulator', 'generateContent'] as const satisfies readonly ServedBy[]) {
    const served = `${sdk.name} on ${kind}`;

    test(`${served}: an image has the size that is asked for, streamed and not`, async (t) => {
      const { models } = createClient(sdk, await startGateway(t, { demo: kind }));
      const cases = [
        [{}, { width: 1024, height: 1024 }],
        [
          { aspectRatio: '16:9', imageSize: '2K' },
          { width: 2752, height: 1536 },
        ],
        [
          { aspectRatio: '2:3', imageSize: '4K' },
          { width: 2748, height: 4096 },
        ],
      ] as const;
      for (const [imageConfig, size] of cases) {
        const config = { responseModalities: both, imageConfig };
        const whole = await models.generateContent({ model, contents, config });
        t.strictSame(sizesIn([whole]), [size]);
        t.equal(textOf([whole]), 'Simulated answer to: A lighthouse');
        t.match(whole, {
          modelVersion: model,
          usageMetadata: { candidatesTokensDetails: [{ modality: 'TEXT' }, { modality: 'IMAGE' }] },
        });
        const chunks: Response[] = [];
        for await (const chunk of await models.generateContentStream({ model, contents, config }))
          chunks.push(chunk);
        t.strictSame(sizesIn(chunks), [size]);
        t.equal(textOf(chunks), textOf([whole]));
        const last = chunks.at(-1);
        t.equal(last?.candidates?.[0]?.finishReason, 'STOP');
        t.strictSame(last?.usageMetadata, whole.usageMetadata);
      }
    });

    test(`${served}: an image without a text, and a chat that goes on from it`, async (t) => {
      const { models, chats } = createClient(sdk, await startGateway(t, { demo: kind }));
      const config = { responseModalities: [sdk.module.Modality.IMAGE] };
      const alone = await models.generateContent({ model, contents, config });
      t.equal(alone.candidates?.[0]?.content?.parts?.length, 1);
      t.strictSame(sizesIn([alone]), [{ width: 1024, height: 1024 }]);
      const chat = chats.create({ model });
      t.equal(sizesIn([await chat.sendMessage({ message: contents })]).length, 1);
      const second = await chat.sendMessage({ message: 'At night' });
      t.equal(sizesIn([second]).length, 1);
      t.equal(second.usageMetadata?.promptTokensDetails?.[1]?.modality, 'IMAGE', 'the first one went back');
    });
  }

  test(`${sdk.name}: what cannot be drawn is refused with its reason`, async (t) => {
    const { models } = createClient(sdk, await startGateway(t, { demo: 'simulator' }));
    const cases = [
      [model, { imageConfig: { aspectRatio: '7:5' } }, /aspect_ratio: must be one of 1:1/],
      [model, { responseModalities: ['TEXT'] }, /combination of response modalities/],
      ['sim-text', { responseModalities: both }, /response_modalities: this model gives nothing but TEXT/],
    ] as const;
    for (const [named, { ...config }, message] of cases) {
      const asked = { model: named, contents, config: config as { imageConfig?: object } };
      const whole = await raised(sdk, models.generateContent(asked));
      const streamed = await raised(sdk, models.generateContentStream(asked));
      for (const error of [whole, streamed]) {
        t.equal(error.status, 400);
        t.match(bodyOf(error), { code: 400, status: 'INVALID_ARGUMENT', message });
      }
    }
  });

  test(`${sdk.name} on chat: images are made by the upstream's images endpoints, and gone on from`, async (t) => {
    const { models, chats } = createClient(sdk, await startGateway(t, { demo: 'chat' }));
    const config = { responseModalities: both, imageConfig: { aspectRatio: '16:9', imageSize: '2K' } };
    const size = { width: 1536, height: 1024 };
    const whole = await models.generateContent({ model, contents, config });
    t.strictSame(sizesIn([whole]), [size]);
    t.equal(whole.candidates?.[0]?.finishReason, 'STOP');
    t.ok((whole.usageMetadata?.candidatesTokenCount ?? 0) > 0);
    const chunks: Response[] = [];
    for await (const chunk of await models.generateContentStream({ model, contents, config }))
      chunks.push(chunk);
    t.equal(chunks.length, 1);
    t.strictSame(sizesIn(chunks), [size]);
    t.strictSame(chunks[0]?.usageMetadata, whole.usageMetadata);
    const chat = chats.create({ model, config });
    const [first, second] = [
      await chat.sendMessage({ message: contents }),
      await chat.sendMessage({ message: 'At night' }),
    ];
    t.equal(sizesIn([first, second]).length, 2);
    const inputOf = ({ usageMetadata }: Response) => usageMetadata?.promptTokenCount ?? 0;
    t.ok(inputOf(second) > inputOf(first) + 100, 'the first one went back');
    const fault = '[[fault:status=400]] a lighthouse';
    const error = await raised(sdk, models.generateContent({ model, contents: fault, config }));
    t.match(bodyOf(error), { code: 400, status: 'INVALID_ARGUMENT' });
  });

  test(`${sdk.name} on messages: an upstream of another protocol is asked for no image`, async (t) => {
    const gateway = await startGateway(t, { demo: 'messages' });
    const { models } = createClient(sdk, gateway);
    for (const [config, field] of [
      [{ responseModalities: both }, 'responseModalities'],
      [{ imageConfig: { aspectRatio: '16:9' } }, 'imageConfig'],
    ] as const) {
      const asked = { model, contents, config: config as { imageConfig?: object } };
      const whole = await raised(sdk, models.generateContent(asked));
      const streamed = await raised(sdk, models.generateContentStream(asked));
      for (const error of [whole, streamed]) {
        t.equal(error.status, 400);
        t.match(bodyOf(error), {
          status: 'INVALID_ARGUMENT',
          message: new RegExp(`generationConfig\\.${field}`),
        });
      }
    }
    t.equal(gateway.simulator.state().totalRequests, 0);
  });
}

test('the usage of an image is metered, also of an answer that is passed on in pieces', async (t) => {
  const { url, linesUntil } = await startGateway(t, { demo: 'simulator' });
  for (const [method, prompt, size] of [
    ['generateContent', contents, 10_000],
    ['generateContent', `[[fault:flood megabytes=1]] ${contents}`, 1_000_000],
    ['streamGenerateContent?alt=sse', contents, 10_000],
    ['streamGenerateContent', contents, 10_000],
  ] as const) {
    const response = await fetch(`${url}/v1/models/${model}:${method}`, {
      method: 'POST',
      headers: { 'x-goog-api-key': 'sk-demo', 'content-type': 'application/json' },
      body: JSON.stringify({ contents: [{ role: 'user', parts: [{ text: prompt }] }] }),
    });
    t.equal(response.status, 200);
    const text = await response.text();
    t.ok(text.length > size, `${method}: more than ${size} bytes`);
    const outputTokens = Number(/"candidatesTokenCount":(\d+)/.exec(text)?.[1]);
    t.ok(outputTokens > 1120);
    const id = response.headers.get('x-request-id') ?? '';
    const line = (await linesUntil(id)).find((each) => each.id === id);
    t.match(line, { protocol: 'generateContent', model, outcome: 'complete', outputTokens });
    t.notOk(line?.tokensEstimated);
  }
});
