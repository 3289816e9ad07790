import { type Static, Type } from 'typebox';
import { closedObject, described, optional } from './setting.js';

const money = Type.Number({ minimum: 0 });
const word = Type.String({ minLength: 1, maxLength: 64 });

/** Prices of tokens and characters, for each million of them, of searches, of calls and of seconds. */
const rates = {
  input: optional('USD for a million input tokens.', money),
  output: optional('USD for a million output tokens.', money),
  cached: optional('USD for a million input tokens read from the cache. Default: `input`.', money),
  cacheWritten: optional('USD for a million input tokens written to the cache. Default: `input`.', money),
  cacheWrittenHour: optional(
    'USD for a million input tokens written to the cache for an hour. Default: `cacheWritten`.',
    money,
  ),
  audioInput: optional('USD for a million input tokens of audio. Default: `input`.', money),
  audioOutput: optional('USD for a million output tokens of audio. Default: `output`.', money),
  cachedAudio: optional('USD for a million cached tokens of audio. Default: `cached`.', money),
  imageInput: optional('USD for a million input tokens of images. Default: `input`.', money),
  videoInput: optional('USD for a million input tokens of video. Default: `input`.', money),
  imageOutput: optional('USD for a million output tokens of images. Default: `output`.', money),
  cachedImage: optional('USD for a million cached tokens of images. Default: `cached`.', money),
  reasoning: optional('USD for a million output tokens of reasoning. Default: `output`.', money),
  characters: optional('USD for a million characters of text that is spoken.', money),
  perSearch: optional('USD for a web search that the upstream ran.', money),
  perCall: optional('USD for a call, or for each image.', money),
  perSecond: optional('USD for a second of audio or video.', money),
};

/** The same rates for a step or tier. The manual lists them once. */
const otherRates = Object.fromEntries(
  Object.keys(rates).map((name) => [name, Type.Optional(money)]),
) as typeof rates;

const step = closedObject({ aboveInput: Type.Integer({ minimum: 1 }), ...otherRates });

const tier = Type.Optional(
  Type.Union([money, closedObject({ ...otherRates, steps: Type.Optional(Type.Array(step)) })], {
    expected: 'a factor, or prices such as {"input": 2.5, "output": 20}',
  }),
);

const tiers = closedObject({
  flex: tier,
  priority: tier,
  fast: tier,
  ultrafast: tier,
  batch: tier,
  scale: tier,
});

/** What calls cost. `resolvePrice` fills in the defaults. */
export const price = closedObject({
  ...rates,
  images: Type.Optional(
    Type.Array(
      closedObject({
        size: optional('Image size, such as `1024x1024`. Default: any.', word),
        quality: optional('Image quality, such as `high`. Default: any.', word),
        usd: described(
          'USD for each image, instead of `perCall`. The first entry that matches applies.',
          money,
        ),
      }),
    ),
  ),
  seconds: Type.Optional(
    Type.Array(
      closedObject({
        resolution: described('Resolution of the video, such as `1080p`.', word),
        usd: described('USD for a second, instead of `perSecond`.', money),
      }),
    ),
  ),
  steps: optional(
    'Prices of calls with more than a number of input tokens: `[{"aboveInput": 200000, "input": 2.5, "output": 15}]`. They apply to the whole call. Prices that a step does not set stay the same.',
    Type.Array(step),
  ),
  tiers: optional(
    'Prices by the service tier that the upstream reports (`flex`, `priority`, `fast`, `ultrafast`, `batch`, `scale`): a factor on all prices, `{"flex": 0.5}`, or separate prices, which may have `steps`, `{"priority": {"input": 2.5, "output": 20}}`. Default of `fast`: `priority`, without targets of kind `messages`.',
    tiers,
  ),
  geos: optional(
    'Factors on token prices by the region that the upstream reports (`inference_geo` of messages): `{"us": 1.1}`.',
    Type.Record(Type.String({ minLength: 1, maxLength: 64 }), money),
  ),
});

/** A price in the form of a file. */
export type PriceSettings = Static<typeof price>;
