import { type TSchema, Type } from 'typebox';
import { growingMetering } from '../../conversation/stream-rules.js';
import { compileSchema, type MixedBody } from '../../schema/compile.js';
import {
  bodies,
  flag,
  given,
  mapOf,
  metered,
  name,
  nullable,
  streaming,
  text,
} from '../../schema/members.js';
import { noEffects } from '../effects.js';
import { bodyOutputLimit, type Endpoint, plainEndpoint } from '../endpoint.js';
import { createChoiceStream, lastUsage } from '../openai-shared/choice-stream.js';

/** `POST /v1/completions` */
export const completions: Endpoint = {
  ...plainEndpoint,
  ...createChoiceStream({ protocol: 'completions', chunkObject: 'text_completion' }),
  protocol: 'completions',
  upstreamPath: () => '/completions',
  usageOnRequest: true,
  outputLimit: { ...bodyOutputLimit, choices: ['n', 'best_of'], each: 'prompt' },
  usageOf: lastUsage,
  metering: growingMetering,
  hasEffects: noEffects,
};

const token = Type.Integer({ minimum: 0 });
const filled = (items: TSchema) => Type.Array(items, { minItems: 1 });

/** The general form stands last: error messages for a list of any other form describe the last one. */
const prompt = Type.Union([Type.String(), filled(token), filled(filled(token)), filled(Type.String())]);

/** Body of `POST /v1/completions`. */
export const completionsRequestType = Type.Object({
  model: name,
  prompt,
  suffix: text,
  stream: flag,
  stream_options: nullable(Type.Object({ include_usage: flag, include_obfuscation: flag })),
  max_tokens: nullable(Type.Integer({ minimum: 0 })),
  temperature: nullable(Type.Number({ minimum: 0, maximum: 2 })),
  top_p: nullable(Type.Number({ minimum: 0, maximum: 1 })),
  n: nullable(Type.Integer({ minimum: 1, maximum: 128 })),
  best_of: nullable(Type.Integer({ minimum: 0, maximum: 20 })),
  logprobs: nullable(Type.Integer({ minimum: 0, maximum: 5 })),
  echo: flag,
  // Clients send an empty list for "none".
  stop: nullable(Type.Union([Type.String(), Type.Array(Type.String())])),
  presence_penalty: nullable(Type.Number({ minimum: -2, maximum: 2 })),
  frequency_penalty: nullable(Type.Number({ minimum: -2, maximum: 2 })),
  logit_bias: nullable(mapOf(Type.Number({ minimum: -100, maximum: 100 }))),
  seed: nullable(Type.Integer()),
  user: text,
});

/** Bodies of other endpoints, recognised by the member that holds their input. */
const completionsMixedBody: MixedBody = {
  own: 'prompt',
  foreign: [bodies.chat, bodies.responses, bodies.generateContent],
};

/** Check of a completion request body, which is passed on untouched. */
export const completionsRequest = compileSchema(
  Type.Object({
    model: name,
    prompt: given,
    ...streaming,
    max_tokens: metered,
    n: metered,
    best_of: metered,
  }),
  completionsMixedBody,
  { reads: Object.keys(completionsRequestType.properties) },
);
