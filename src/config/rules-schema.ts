import { type Static, Type } from 'typebox';
import { closedObject, headerValue, optional } from './setting.js';

const word = Type.String({ minLength: 1, maxLength: 64 });
const name = Type.String({ minLength: 1, maxLength: 256 });
const beta = Type.String({
  pattern: '^[\\u0021-\\u002b\\u002d-\\u007e]{1,128}$',
  expected: 'a feature without spaces and commas',
});

/** What is changed in requests to an upstream or target. What only two places together can say is in `check-rules.ts`. */
export const rules = closedObject({
  drop: optional(
    'Members of bodies that are left out: `["seed", "generationConfig.topK"]`.',
    Type.Array(name),
  ),
  keep: optional(
    'Members that stay as they are, whatever a preset or the upstream says of them.',
    Type.Array(name),
  ),
  set: optional(
    'Members that have this value, whatever the client says: `{"service_tier": "flex"}`.',
    Type.Record(Type.String(), Type.Unknown()),
  ),
  rename: optional(
    'Members that are called otherwise: `{"max_completion_tokens": "max_tokens"}`. One that has the new name already stays.',
    Type.Record(Type.String(), name),
  ),
  clamp: Type.Optional(
    Type.Record(
      Type.String(),
      closedObject({
        min: optional('Least value of the member; a smaller number becomes it.', Type.Number()),
        max: optional('The same for larger ones.', Type.Number()),
      }),
    ),
  ),
  efforts: optional(
    'What the target calls efforts of reasoning: `{"xhigh": "high", "ultra": "high"}`.',
    Type.Record(Type.String(), word),
  ),
  roles: optional(
    'What it calls roles of messages: `{"developer": "system"}`.',
    Type.Record(Type.String(), word),
  ),
  sampling: optional('`false` leaves out `temperature`, `top_p`, `top_k` and the penalties.', Type.Boolean()),
  thinking: optional(
    '`adaptive` (messages): a budget of thinking becomes `adaptive`, and `disabled` is left out. `enable_thinking`, `type` (chat): an effort becomes that switch, or turns `thinking.type` off.',
    Type.Enum(['adaptive', 'enable_thinking', 'type']),
  ),
  fillReasoning: optional(
    '`true` (chat): a message of the assistant that has lost its `reasoning_content` gets a full stop in its place.',
    Type.Boolean(),
  ),
  headers: Type.Optional(
    closedObject({
      pass: optional(
        "Headers of a client's request that are passed, beside those that always are.",
        Type.Array(name),
      ),
      set: optional(
        "Headers with this value, in place of the client's; values of printable ASCII.",
        Type.Record(Type.String(), Type.String(headerValue)),
      ),
      drop: optional("Headers that are left out, the client's and the upstream's.", Type.Array(name)),
    }),
  ),
  betas: Type.Optional(
    closedObject({
      add: optional('Features that `anthropic-beta` or `openai-beta` names in any case.', Type.Array(beta)),
      drop: optional('Features that are taken out of them.', Type.Array(beta)),
    }),
  ),
});

/** Rules as a file has them. */
export type RuleSettings = Static<typeof rules>;
