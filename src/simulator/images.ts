import { chatManner } from './chat.js';
import { created } from './chat-parts.js';
import { readFields } from './form.js';
import { editFieldTypes, type ImageRequest, readEdit, readGeneration } from './images-request.js';
import { pngImage } from './media/png.js';
import { eventManner, typedEvent } from './media-manner.js';
import { type MediaRequest, mediaRoutes } from './media-route.js';
import { bodyReply, type Manner, type Reply, type Step, streamReply } from './reply.js';
import { imageUrl } from './result-url.js';
import { countTokens } from './tokens.js';

const tokensPerGivenImage = 258;
const pixelsPerToken = 256;
/** Characters of base64 in one piece of a body. */
const pieceLength = 64 * 1024;

/** `POST /v1/images/generations` and `POST /v1/images/edits` */
export const imageRoutes = [
  ...mediaRoutes({
    methods: ['POST'],
    path: '/v1/images/generations',
    manner: () => chatManner,
    answer: async (asked) => answer(asked, readGeneration((await readFields(asked, ['json'])).body)),
  }),
  ...mediaRoutes({
    methods: ['POST'],
    path: '/v1/images/edits',
    manner: () => chatManner,
    answer: async (asked) =>
      answer(asked, readEdit(await readFields(asked, ['form', 'json'], editFieldTypes))),
  }),
];

function answer(asked: MediaRequest, wanted: ImageRequest): Reply {
  const directives = [...asked.directives, ...wanted.wishes.faults];
  if (wanted.stream) {
    return streamReply({ events: events(wanted), manner: streamManner(wanted), directives });
  }
  if (wanted.responseFormat === 'b64_json') {
    return {
      ...bodyReply({ status: 200, body: '', manner: chatManner, directives }),
      length: null,
      steps: encodedBody(wanted),
    };
  }
  const data = Array.from({ length: wanted.count }, (_, index) => ({
    url: imageUrl(asked.origin, imageOf(wanted, index), wanted.wishes.content),
    revised_prompt: wanted.wishes.rest,
  }));
  const body = JSON.stringify({ created, data, ...described(wanted), usage: usageOf(wanted) });
  return bodyReply({ status: 200, body, manner: chatManner, directives });
}

function imageOf({ width, height, seed }: ImageRequest, index: number): Parameters<typeof pngImage>[0] {
  return { width, height, seed: `${seed}-${index}` };
}

function described({ background, quality, width, height }: ImageRequest): object {
  return { background, output_format: 'png', quality, size: `${width}x${height}` };
}

function usageOf(wanted: ImageRequest): object {
  const text = countTokens(wanted.wishes.rest);
  const images = wanted.givenImages * tokensPerGivenImage;
  const output = Math.ceil((wanted.width * wanted.height) / pixelsPerToken) * wanted.count;
  return {
    input_tokens: text + images,
    input_tokens_details: { text_tokens: text, image_tokens: images },
    output_tokens: output,
    total_tokens: text + images + output,
  };
}

/** The body image by image, so that only one of them is held. */
function* encodedBody(wanted: ImageRequest): Generator<Step> {
  const text = (bytes: string): Step => ({ kind: 'data', bytes, tokens: 0 });
  yield text(`{"created":${created},"data":[`);
  for (let index = 0; index < wanted.count; index += 1) {
    yield text(`${index === 0 ? '' : ','}{"b64_json":"`);
    const image = pngImage(imageOf(wanted, index)).toString('base64');
    for (let at = 0; at < image.length; at += pieceLength) {
      yield text(image.slice(at, at + pieceLength));
    }
    yield text(`","revised_prompt":${JSON.stringify(wanted.wishes.rest)}}`);
  }
  const rest = JSON.stringify({ ...described(wanted), usage: usageOf(wanted) });
  yield text(`],${rest.slice(1)}`);
}

function eventType(wanted: ImageRequest, what: 'partial_image' | 'completed'): string {
  return `image_${wanted.operation}.${what}`;
}

function* events(wanted: ImageRequest): Generator<Step> {
  const shown = { created_at: created, ...described(wanted) };
  for (let index = 0; index < wanted.count; index += 1) {
    const image = imageOf(wanted, index);
    for (let partial = 0; partial < wanted.partialImages; partial += 1) {
      const seed = `${image.seed}-partial-${partial}`;
      const event = {
        type: eventType(wanted, 'partial_image'),
        b64_json: pngImage({ ...image, seed }).toString('base64'),
        partial_image_index: partial,
        ...shown,
      };
      yield { kind: 'data', bytes: typedEvent(event), tokens: 0 };
    }
    const event = {
      type: eventType(wanted, 'completed'),
      b64_json: pngImage(image).toString('base64'),
      ...shown,
      usage: usageOf({ ...wanted, count: 1 }),
    };
    yield { kind: 'data', bytes: typedEvent(event), tokens: 0 };
  }
}

function streamManner(wanted: ImageRequest): Manner {
  return eventManner((text) => ({
    type: eventType(wanted, 'partial_image'),
    b64_json: text,
    partial_image_index: 0,
    created_at: created,
    ...described(wanted),
  }));
}
