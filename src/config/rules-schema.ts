import { type Static, Type } from 'typebox';
import { closedObject, headerValue, optional } from './setting.js';

const word = Type.String({ minLength: 1, maxLength: 64 });
const name = Type.String({ minLength: 1, maxLength: 256 });
const beta = Type.String({
  pattern: '^[\\u0021-\\u002b\\u002d-\\u007e]{1,128}$',
  expected: 'a feature without spaces and commas',
});

/** Changes to requests to an upstream or target. `check-rules.ts` checks what concerns two places. */
export const rules = closedObject({
  drop: optional(
    'Body members to leave out: `["seed", "generationConfig.topK", "input[].phase"]`.',
    Type.Array(name),
  ),
  keep: optional(
    'Body members to leave unchanged, whatever a preset or the upstream defines for them.',
    Type.Array(name),
  ),
  set: optional(
    'Body members to set, replacing what the client sends: `{"service_tier": "flex"}`.',
    Type.Record(Type.String(), Type.Unknown()),
  ),
  rename: optional(
    'Body members to rename: `{"max_completion_tokens": "max_tokens"}`. A member that already has the new name is kept.',
    Type.Record(Type.String(), name),
  ),
  clamp: Type.Optional(
    Type.Record(
      Type.String(),
      closedObject({
        min: optional('Lowest value. A smaller number is raised to it.', Type.Number()),
        max: optional('Highest value. A larger number is lowered to it.', Type.Number()),
      }),
    ),
  ),
  efforts: optional(
    'Reasoning efforts to replace: `{"xhigh": "high", "ultra": "high"}`.',
    Type.Record(Type.String(), word),
  ),
  roles: optional('Message roles to replace: `{"developer": "system"}`.', Type.Record(Type.String(), word)),
  sampling: optional('`false` leaves out `temperature`, `top_p`, `top_k` and the penalties.', Type.Boolean()),
  thinking: optional(
    '`adaptive` (messages): a budget of thinking becomes `adaptive`, and `disabled` is left out. `enable_thinking`, `type` (chat): an effort becomes that switch, or turns `thinking.type` off.',
    Type.Enum(['adaptive', 'enable_thinking', 'type']),
  ),
  fillReasoning: optional(
    '`true`: a message of the assistant that has lost its `reasoning_content` (chat), or one with calls its thinking (messages), gets a full stop in its place.',
    Type.Boolean(),
  ),
  headers: Type.Optional(
    closedObject({
      pass: optional('Additional headers of client requests to pass on.', Type.Array(name)),
      set: optional(
        "Headers to set, replacing the client's. Values are printable ASCII.",
        Type.Record(Type.String(), Type.String(headerValue)),
      ),
      drop: optional(
        "Headers to leave out, from the client or from the upstream's settings.",
        Type.Array(name),
      ),
    }),
  ),
  betas: Type.Optional(
    closedObject({
      add: optional('Features to add to `anthropic-beta` or `openai-beta`.', Type.Array(beta)),
      drop: optional('Features to remove from them.', Type.Array(beta)),
    }),
  ),
});

/** Rules in the form of a file. */
export type RuleSettings = Static<typeof rules>;
