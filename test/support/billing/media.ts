import type { Integers } from '../seed.js';
import type { Tariff, Units } from './tariffs.js';

/** The properties of a call that determine its request and answer. */
interface Asked {
  readonly number: number;
  readonly units: Units;
}

/** A kind of call other than texts, videos and sessions: one model of a gateway and of the vendor. */
interface MediaEndpoint {
  readonly protocol: string;
  readonly tariff: Tariff;
  draw(below: Integers): Partial<Units>;
  /** Path and body. @param text names the call */
  request(asked: Asked, text: string): [path: string, body: object | FormData];
  answer(asked: Asked): { readonly type: string; readonly body: string | Buffer };
}

export const mediaKinds = [
  'embeddings',
  'batches',
  'rerank',
  'searched',
  'moderations',
  'screened',
  'counts',
  'several',
  'images',
  'edits',
  'pictures',
  'partials',
  'speech',
  'voice',
  'said',
  'transcripts',
  'recordings',
] as const;
export type MediaKind = (typeof mediaKinds)[number];

const json = 'application/json';
const sse = 'text/event-stream';
/** Only input tokens. */
const input: Tariff = { rates: { fresh: 20 }, price: { input: 0.02 } };

/** Price for each image, by the first entry that matches. */
const bySize: Tariff = {
  rates: { units: 40_000_000 },
  variants: {
    '1024x1024 low': { units: 11_000_000 },
    '1024x1024 high': { units: 167_000_000 },
    '1536x1024 high': { units: 250_000_000 },
    '1536x1024 low': { units: 250_000_000 },
  },
  price: {
    perCall: 0.04,
    images: [
      { size: '1024x1024', quality: 'low', usd: 0.011 },
      { size: '1024x1024', quality: 'high', usd: 0.167 },
      { size: '1536x1024', usd: 0.25 },
    ],
  },
};
const variants = [...Object.keys(bySize.variants ?? {}), '1024x1024 medium'];

const byTokens: Tariff = {
  rates: { fresh: 5000, imageInput: 10_000, imageOutput: 40_000 },
  price: { input: 5, imageInput: 10, imageOutput: 40 },
};
const bySearch: Tariff = { rates: { units: 2_000_000 }, price: { perCall: 0.002 } };
const free: Tariff = { rates: {}, price: {} };
const ofText: Tariff = { rates: { fresh: 1000, output: 5000 }, price: { input: 1, output: 5 } };
const ofSpeech: Tariff = {
  rates: { fresh: 600, audioOutput: 12_000 },
  price: { input: 0.6, audioOutput: 12 },
};
const ofSound: Tariff = {
  rates: { fresh: 2500, audioInput: 6000, output: 10_000 },
  price: { input: 2.5, audioInput: 6, output: 10 },
};
/** Characters of one to four bytes, and an escape. */
const alphabet = [...'a\né語😀'];
const byCharacter: Tariff = { rates: { characters: 15_000 }, price: { characters: 15 } };
const bySecond: Tariff = { rates: { seconds: 6_000_000 }, price: { perSecond: 0.006 } };

/** Bytes of audio for a second. */
const byteRate = 1000;
const waveHeaderBytes = 44;

export const mediaTable: Readonly<Record<MediaKind, MediaEndpoint>> = {
  embeddings: {
    protocol: 'embeddings',
    tariff: input,
    draw: drawInput,
    request: (_asked, text) => ['/v1/embeddings', { model: 'embeddings', input: text }],
    answer: ({ units }) =>
      ofJson({
        object: 'list',
        model: 'real',
        data: [{ object: 'embedding', index: 0, embedding: [0.5, 0.25] }],
        usage: promptUsage(units),
      }),
  },
  batches: {
    protocol: 'embeddings',
    tariff: input,
    draw: drawInput,
    request: ({ number }, text) => [
      '/v1/embeddings',
      { model: 'batches', input: [text, ...Array.from({ length: number % 5 }, () => 'another')] },
    ],
    answer: ({ number, units }) =>
      ofJson({
        object: 'list',
        model: 'real',
        data: Array.from({ length: 1 + (number % 5) }, (_, index) => ({
          object: 'embedding',
          index,
          embedding: [0.5, 0.25],
        })),
        usage: promptUsage(units),
      }),
  },
  searched: {
    protocol: 'rerank',
    tariff: bySearch,
    draw: (below) => ({ units: 1 + below(4) }),
    request: (_asked, query) => ['/v1/rerank', { model: 'searched', query, documents: ['one', 'another'] }],
    answer: ({ units }) =>
      ofJson({
        results: [{ index: 0, relevance_score: 0.5 }],
        meta: { billed_units: { search_units: units.units } },
      }),
  },
  rerank: {
    protocol: 'rerank',
    tariff: input,
    draw: drawInput,
    request: (_asked, query) => ['/v1/rerank', { model: 'rerank', query, documents: ['one', 'another'] }],
    answer: ({ number, units }) =>
      ofJson({
        results: [{ index: 0, relevance_score: 0.5 }],
        ...(number % 2 === 0
          ? { usage: promptUsage(units) }
          : { meta: { billed_units: { input_tokens: units.fresh } } }),
      }),
  },
  moderations: {
    protocol: 'moderations',
    tariff: input,
    draw: drawInput,
    request: (_asked, text) => ['/v1/moderations', { model: 'moderations', input: text }],
    answer: ({ units }) =>
      ofJson({
        id: 'modr-1',
        model: 'real',
        results: [{ flagged: false, categories: {}, category_scores: {} }],
        usage: promptUsage(units),
      }),
  },
  screened: {
    protocol: 'moderations',
    tariff: free,
    draw: () => ({}),
    request: (_asked, text) => ['/v1/moderations', { model: 'screened', input: text }],
    answer: () =>
      ofJson({
        id: 'modr-1',
        model: 'real',
        results: [{ flagged: false, categories: {}, category_scores: {} }],
      }),
  },
  // The gateway counts the tokens for a chat upstream, so nobody bills it.
  counts: {
    protocol: 'messages',
    tariff: ofText,
    draw: () => ({}),
    request: (_asked, content) => [
      '/v1/messages/count_tokens',
      { model: 'counts', messages: [{ role: 'user', content }] },
    ],
    answer: () => ofJson({}),
  },
  several: {
    protocol: 'chat',
    tariff: ofText,
    draw: (below) => ({ fresh: 1 + below(300), output: 10 + below(900) }),
    request: (_asked, content) => [
      '/v1/chat/completions',
      { model: 'several', n: 3, messages: [{ role: 'user', content }] },
    ],
    answer: severalAnswer,
  },
  images: {
    protocol: 'images',
    tariff: bySize,
    draw: drawImages,
    request: (asked, prompt) => ['/v1/images/generations', { prompt, ...imageSettings('images', asked) }],
    answer: imagesAnswer,
  },
  edits: {
    protocol: 'images',
    tariff: bySize,
    draw: drawImages,
    request: (asked, prompt) => [
      '/v1/images/edits',
      formOf({ prompt, ...imageSettings('edits', asked) }, 'image', 'image.png', 'image/png'),
    ],
    answer: imagesAnswer,
  },
  pictures: {
    protocol: 'images',
    tariff: byTokens,
    draw: (below) => ({
      fresh: 1 + below(300),
      imageInput: below(2) * below(800),
      imageOutput: 200 + below(4000),
    }),
    request: (_asked, prompt) => ['/v1/images/generations', { model: 'pictures', prompt }],
    answer: ({ units: { fresh, imageInput, imageOutput } }) =>
      ofJson({
        created: 1,
        data: [{ b64_json: 'AAAA' }],
        usage: pictureUsage({ fresh, imageInput, imageOutput }),
      }),
  },
  partials: {
    protocol: 'images',
    tariff: byTokens,
    draw: (below) => ({
      fresh: 1 + below(300),
      imageInput: 1 + below(800),
      imageOutput: 200 + below(4000),
    }),
    request: ({ number }, prompt) => {
      const settings = { prompt, model: 'partials', partial_images: 2 };
      return number % 2 === 0
        ? ['/v1/images/generations', { ...settings, stream: true }]
        : ['/v1/images/edits', formOf({ ...settings, stream: 'true' }, 'image', 'image.png', 'image/png')];
    },
    answer: partialsAnswer,
  },
  speech: {
    protocol: 'audio',
    tariff: ofSpeech,
    draw: (below) => ({ fresh: 1 + below(300), audioOutput: 1 + below(2000) }),
    request: (_asked, text) => [
      '/v1/audio/speech',
      { model: 'speech', input: text, voice: 'one', stream_format: 'sse' },
    ],
    answer: ({ units: { fresh, audioOutput } }) =>
      ofEvents([
        { type: 'speech.audio.delta', audio: 'AAAA' },
        {
          type: 'speech.audio.done',
          usage: { input_tokens: fresh, output_tokens: audioOutput, total_tokens: fresh + audioOutput },
        },
      ]),
  },
  voice: {
    protocol: 'audio',
    tariff: bySecond,
    draw: drawSeconds,
    request: (_asked, text) => [
      '/v1/audio/speech',
      { model: 'voice', input: text, voice: 'one', response_format: 'wav' },
    ],
    answer: ({ units }) => ({ type: 'audio/wav', body: waveOf(units.seconds) }),
  },
  said: {
    protocol: 'audio',
    tariff: byCharacter,
    draw: (below) => ({ characters: 1 + below(500) }),
    request: ({ units }, instructions) => {
      const letters = Array.from(
        { length: units.characters },
        (_, index) => alphabet[index % alphabet.length],
      );
      return ['/v1/audio/speech', { model: 'said', input: letters.join(''), instructions, voice: 'one' }];
    },
    answer: () => ({ type: 'audio/mpeg', body: Buffer.alloc(300, 7) }),
  },
  transcripts: {
    protocol: 'audio',
    tariff: ofSound,
    draw: (below) => ({ fresh: below(20), audioInput: 1 + below(3000), output: 1 + below(500) }),
    request: ({ number }, prompt) => [
      '/v1/audio/transcriptions',
      formOf(
        { prompt, model: 'transcripts', ...(number % 2 === 0 ? { stream: 'true' } : {}) },
        'file',
        'sound.wav',
        'audio/wav',
      ),
    ],
    answer: transcriptAnswer,
  },
  recordings: {
    protocol: 'audio',
    tariff: bySecond,
    draw: drawSeconds,
    request: (_asked, prompt) => [
      '/v1/audio/transcriptions',
      formOf({ prompt, model: 'recordings' }, 'file', 'sound.wav', 'audio/wav'),
    ],
    answer: ({ number, units: { seconds } }) =>
      ofJson(
        number % 2 === 0
          ? { text: 'what was said', usage: { type: 'duration', seconds } }
          : { task: 'transcribe', duration: seconds, text: 'what was said' },
      ),
  },
};

function drawInput(below: Integers): Partial<Units> {
  return { fresh: 1 + below(500) };
}

function drawImages(below: Integers): Partial<Units> {
  return { units: 1 + below(3), variant: variants[below(variants.length)] ?? '' };
}

function drawSeconds(below: Integers): Partial<Units> {
  return { seconds: (1 + below(40)) / 4 };
}

function promptUsage({ fresh }: Units): object {
  return { prompt_tokens: fresh, total_tokens: fresh };
}

function imageSettings(model: MediaKind, { units }: Asked): Readonly<Record<string, string | number>> {
  const [size = '', quality = ''] = units.variant.split(' ');
  return { model, n: units.units, size, quality };
}

/** Half of the answers report what was made. */
function imagesAnswer({ number, units }: Asked): ReturnType<MediaEndpoint['answer']> {
  const [size = '', quality = ''] = units.variant.split(' ');
  const data = Array.from({ length: units.units }, () => ({ b64_json: 'AAAA' }));
  return ofJson({ created: 1, data, ...(number % 2 === 0 ? { size, quality } : {}) });
}

function pictureUsage({
  fresh,
  imageInput,
  imageOutput,
}: Pick<Units, 'fresh' | 'imageInput' | 'imageOutput'>): object {
  return {
    input_tokens: fresh + imageInput,
    input_tokens_details: { text_tokens: fresh, image_tokens: imageInput },
    output_tokens: imageOutput,
    total_tokens: fresh + imageInput + imageOutput,
  };
}

function partialsAnswer({ number, units }: Asked): ReturnType<MediaEndpoint['answer']> {
  const made = number % 2 === 0 ? 'image_generation' : 'image_edit';
  const partial = { type: `${made}.partial_image`, b64_json: 'A'.repeat(2000) };
  return ofEvents([
    { ...partial, partial_image_index: 0 },
    { ...partial, partial_image_index: 1 },
    { type: `${made}.completed`, b64_json: 'A'.repeat(4000), usage: pictureUsage(units) },
  ]);
}

function severalAnswer({ units: { fresh, output } }: Asked): ReturnType<MediaEndpoint['answer']> {
  const message = { role: 'assistant', content: 'One of several answers.' };
  return ofJson({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'real',
    choices: [0, 1, 2].map((index) => ({ index, message, finish_reason: 'stop' })),
    usage: { prompt_tokens: fresh, completion_tokens: output, total_tokens: fresh + output },
  });
}

function transcriptAnswer({ number, units }: Asked): ReturnType<MediaEndpoint['answer']> {
  const { fresh, audioInput, output } = units;
  const text = 'what was said';
  const usage = {
    type: 'tokens',
    input_tokens: fresh + audioInput,
    input_token_details: { text_tokens: fresh, audio_tokens: audioInput },
    output_tokens: output,
    total_tokens: fresh + audioInput + output,
  };
  if (number % 2 !== 0) return ofJson({ text, usage });
  return ofEvents([
    { type: 'transcript.text.delta', delta: text },
    { type: 'transcript.text.done', text, usage },
  ]);
}

function formOf(
  fields: Readonly<Record<string, string | number>>,
  name: string,
  fileName: string,
  type: string,
): FormData {
  const form = new FormData();
  for (const [field, value] of Object.entries(fields)) form.append(field, `${value}`);
  form.append(name, new Blob([waveOf(0.25)], { type }), fileName);
  return form;
}

function ofJson(body: object): ReturnType<MediaEndpoint['answer']> {
  return { type: json, body: JSON.stringify(body) };
}

function ofEvents(events: readonly object[]): ReturnType<MediaEndpoint['answer']> {
  return { type: sse, body: events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('') };
}

/** Makes a WAV of this many seconds. */
function waveOf(seconds: number): Buffer<ArrayBuffer> {
  const sound = Buffer.alloc(waveHeaderBytes + seconds * byteRate);
  sound.write('RIFF', 0, 'latin1');
  sound.writeUInt32LE(sound.length - 8, 4);
  sound.write('WAVEfmt ', 8, 'latin1');
  sound.writeUInt32LE(16, 16);
  sound.writeUInt16LE(1, 20);
  sound.writeUInt16LE(1, 22);
  sound.writeUInt32LE(byteRate, 24);
  sound.writeUInt32LE(byteRate, 28);
  sound.writeUInt16LE(1, 32);
  sound.writeUInt16LE(8, 34);
  sound.write('data', 36, 'latin1');
  sound.writeUInt32LE(sound.length - waveHeaderBytes, 40);
  return sound;
}
