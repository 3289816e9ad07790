import { Type } from 'typebox';
import { GatewayError } from '../../errors.js';
import { type CompiledSchema, compileSchema, type MixedBody } from '../../schema/compile.js';
import { name, nullable, text } from '../../schema/members.js';
import { parseObject } from '../../wire/json.js';

/** Most characters (code points) of the text to speak. */
const mostCharacters = 4096;

/** Body of `POST /v1/audio/speech`. */
export const speechRequestType = Type.Object({
  model: name,
  input: name,
  voice: Type.Union([name, Type.Object({ id: name })]),
  instructions: text,
  response_format: nullable(Type.Enum(['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm'])),
  speed: nullable(Type.Number({ minimum: 0.25, maximum: 4 })),
  stream_format: nullable(Type.Enum(['audio', 'sse'])),
});

/** Bodies of other endpoints, told by the member that holds their input. */
export const speechMixedBody: MixedBody = {
  own: 'input',
  foreign: [
    { key: 'messages', endpoint: 'POST /v1/chat/completions' },
    { key: 'prompt', endpoint: 'POST /v1/completions' },
  ],
};

const members = compileSchema(speechRequestType, speechMixedBody);

/**
 * The check of a speech request body. The length of the text is seen by `accept` alone, which reads the whole body and
 * throws a GatewayError of status 400 for one that is too long: `check` and `explain` are given long strings cut short.
 */
export const speechRequest: CompiledSchema = {
  guard: members.guard,
  accept(body) {
    // No character takes less than a byte.
    if (body.length > mostCharacters) requireShortInput(body);
    return members.accept(body);
  },
  check: members.check,
  explain: members.explain,
};

function requireShortInput(body: Buffer): void {
  const input = parseObject(body.toString('utf8'))?.input;
  if (typeof input !== 'string' || input.length <= mostCharacters) return;
  let characters = 0;
  for (const _ of input) characters++;
  if (characters <= mostCharacters) return;
  throw new GatewayError(
    'invalid_value',
    `Invalid value for 'input': expected a string of at most ${mostCharacters} characters, found one of ${characters}.`,
    { param: 'input' },
  );
}
