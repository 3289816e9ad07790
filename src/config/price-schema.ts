import { type Static, Type } from 'typebox';
import { closedObject, described, optional } from './setting.js';

const money = Type.Number({ minimum: 0 });
const word = Type.String({ minLength: 1, maxLength: 64 });

/** Tokens that have a price of their own, for each million of them, and searches. */
const rates = {
  input: optional('USD for a million tokens of input.', money),
  output: optional('USD for a million tokens of output.', money),
  cached: optional(
    'The same for input that the upstream had cached; as `input` where it is not given.',
    money,
  ),
  cacheWritten: optional(
    'The same for input that it wrote to its cache; as `input` where it is not given.',
    money,
  ),
  cacheWrittenHour: optional(
    'The same for what it keeps there for an hour; as `cacheWritten` where it is not given.',
    money,
  ),
  audioInput: optional('The same for sound in the input; as `input` where it is not given.', money),
  audioOutput: optional('The same for sound in the output; as `output` where it is not given.', money),
  cachedAudio: optional('The same for cached sound; as `cached` where it is not given.', money),
  imageInput: optional('The same for images in the input; as `input` where it is not given.', money),
  videoInput: optional('The same for video in the input; as `input` where it is not given.', money),
  imageOutput: optional('The same for images in the output; as `output` where it is not given.', money),
  cachedImage: optional('The same for cached images; as `cached` where it is not given.', money),
  reasoning: optional('The same for output spent on reasoning; as `output` where it is not given.', money),
  perSearch: optional('USD for a search of the web that the upstream ran.', money),
  perCall: optional('USD for a call, and for each image.', money),
  perSecond: optional('USD for a second of audio or video.', money),
};

/** The same rates of a step or tier; the manual has them once. */
const otherRates = Object.fromEntries(
  Object.keys(rates).map((name) => [name, Type.Optional(money)]),
) as typeof rates;

const step = closedObject({ aboveInput: Type.Integer({ minimum: 1 }), ...otherRates });

const tier = Type.Optional(
  Type.Union([money, closedObject({ ...otherRates, steps: Type.Optional(Type.Array(step)) })], {
    expected: 'a factor, or prices such as {"input": 2.5, "output": 20}',
  }),
);

const tiers = closedObject({ flex: tier, priority: tier, fast: tier, batch: tier, scale: tier });

/** What calls cost. What it comes to is resolved in `prices.ts`. */
export const price = closedObject({
  ...rates,
  images: Type.Optional(
    Type.Array(
      closedObject({
        size: optional('Of images of this size, such as `1024x1024`; of any where it is not given.', word),
        quality: optional('Of images of this quality, such as `high`; of any where it is not given.', word),
        usd: described('USD for each, in place of `perCall`. The first that fits counts.', money),
      }),
    ),
  ),
  seconds: Type.Optional(
    Type.Array(
      closedObject({
        resolution: described('Of videos of this resolution, such as `1080p`.', word),
        usd: described('USD for a second, in place of `perSecond`.', money),
      }),
    ),
  ),
  steps: optional(
    'Prices of calls of more input than a number of tokens: `[{"aboveInput": 200000, "input": 2.5, "output": 15}]`. They hold for the whole call; what a step does not state is as above.',
    Type.Array(step),
  ),
  tiers: optional(
    'By the service tier that the upstream names in its answer (`flex`, `priority`, `fast`, `batch`, `scale`): a factor on all prices, `{"flex": 0.5}`, or prices of their own, with their own `steps`, `{"priority": {"input": 2.5, "output": 20}}`.',
    tiers,
  ),
  geos: optional(
    'By where the upstream says that it has served the call (`inference_geo` of messages): a factor on the prices of tokens, `{"us": 1.1}`.',
    Type.Record(Type.String({ minLength: 1, maxLength: 64 }), money),
  ),
});

/** A price as a file has it. */
export type PriceSettings = Static<typeof price>;
