import { Type } from 'typebox';
import { reportedMetering, wholeAnswers } from '../../conversation/stream-rules.js';
import { compileSchema, type MixedBody } from '../../schema/compile.js';
import { bodies, given, name, nullable, otherType } from '../../schema/members.js';
import { noEffects } from '../effects.js';
import { type Endpoint, judgeError, plainEndpoint } from '../endpoint.js';
import { createInputUsageReader } from '../openai-shared/usage.js';

/** Finds the `usage` of an answer, which OpenAI's own does not have; see `UsageReader.lastUsage`. */
const { lastUsage } = createInputUsageReader();

/** `POST /v1/moderations` */
export const moderations: Endpoint = {
  ...plainEndpoint,
  ...wholeAnswers(lastUsage, reportedMetering, judgeError, ['"results"']),
  protocol: 'moderations',
  upstreamPath: () => '/moderations',
  hasEffects: noEffects,
};

const part = Type.Union([
  Type.String(),
  Type.Object({ type: Type.Literal('text'), text: Type.String() }),
  Type.Object({
    type: Type.Literal('image_url'),
    image_url: Type.Object({ url: Type.String({ minLength: 1 }) }),
  }),
  otherType(['text', 'image_url']),
]);

/** Body of `POST /v1/moderations`. */
export const moderationsRequestType = Type.Object({
  model: nullable(name),
  input: Type.Union([Type.String(), Type.Array(part, { minItems: 1 })]),
});

/** Bodies of other endpoints, recognised by the member that holds their input. */
const moderationsMixedBody: MixedBody = {
  own: 'input',
  foreign: [bodies.chat, bodies.completions, bodies.rerank],
};

/** Check of a moderation request body, which is passed on untouched. */
export const moderationsRequest = compileSchema(
  Type.Object({ model: nullable(name), input: given }),
  moderationsMixedBody,
  { reads: Object.keys(moderationsRequestType.properties) },
);
