import { test } from 'tap';
import { passedChatRequest } from '../../src/protocols/chat/request/schema.js';
import { completionsRequest } from '../../src/protocols/completions/index.js';
import { passedGenerateContentRequest } from '../../src/protocols/generate-content/request/schema.js';
import { passedMessagesRequest } from '../../src/protocols/messages/request/schema.js';
import { passedResponsesRequest } from '../../src/protocols/responses/request/schema.js';
import { type CompiledSchema, type ValidatedBody, validateBody } from '../../src/schema/accept.js';
import { usualCost } from '../../src/wire/json.js';
import { foldName } from '../../src/wire/member-guard.js';
import { routedMembers } from '../../src/wire/routed-members.js';
import { fc, seed } from '../support/seed.js';
import { alikeOf, escaped } from './alike-members.js';

interface Endpoint {
  readonly schema: CompiledSchema;
  readonly required: Readonly<Record<string, unknown>>;
  readonly optional: Readonly<Record<string, unknown>>;
  /** What is routed, limited or metered by, as paths. */
  readonly read: readonly (readonly string[])[];
}

const top = routedMembers.map((name) => [name]);
const messages = [{ role: 'user', content: 'hi' }];
const endpoints: Readonly<Record<string, Endpoint>> = {
  chat: {
    schema: passedChatRequest,
    required: { model: 'm', messages },
    optional: {
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 1,
      n: 2,
      service_tier: 'x',
    },
    read: [...top, ['stream_options', 'include_usage']],
  },
  completions: {
    schema: completionsRequest,
    required: { model: 'm', prompt: 'hi' },
    optional: { stream: false, stream_options: { include_usage: false }, max_tokens: 1, n: 2, best_of: 3 },
    read: [...top, ['stream_options', 'include_usage']],
  },
  messages: {
    schema: passedMessagesRequest,
    required: { model: 'm', messages, max_tokens: 5 },
    optional: { stream: true, service_tier: 'auto' },
    read: top,
  },
  responses: {
    schema: passedResponsesRequest,
    required: { model: 'm', input: 'hi' },
    optional: {
      stream: true,
      store: false,
      max_output_tokens: 5,
      previous_response_id: 'x',
      background: true,
    },
    read: [...top, ['store'], ['previous_response_id'], ['background']],
  },
  generateContent: {
    schema: passedGenerateContentRequest,
    required: { contents: [{ parts: [{ text: 'hi' }] }] },
    optional: { generationConfig: { maxOutputTokens: 5, candidateCount: 2 } },
    read: [['model'], ['generationConfig', 'maxOutputTokens'], ['generationConfig', 'candidateCount']],
  },
};

/** JSON as a list of members, in which names may come again. */
type Members = readonly (readonly [string, unknown])[];

/**
 * A member as a reader of Go's encoding/json finds it, or one that compares loosely and takes the first. Objects that
 * come again are laid over each other.
 */
function looseRead(members: Members, path: readonly string[], which: 'first' | 'last'): unknown {
  const [name = '', ...rest] = path;
  const found = members.filter(([each]) => foldGo(JSON.parse(each) as string) === foldGo(name));
  const values = found.map(([, value]) => value);
  if (rest.length > 0)
    return looseRead(
      values.flatMap((value) => asMembers(value)),
      rest,
      which,
    );
  return which === 'first' ? values[0] : values.at(-1);
}

/** Go's own: the least of the characters that fold to each other. */
function foldGo(name: string): string {
  return Array.from(name, (character) => {
    if (character === '\u017f') return 'S';
    if (character === '\u212a') return 'K';
    return character.toUpperCase().length === 1 && /[a-z]/.test(character)
      ? character.toUpperCase()
      : character;
  }).join('');
}

function asMembers(value: unknown): Members {
  if (Array.isArray(value)) return value as Members;
  return typeof value === 'object' && value !== null
    ? Object.entries(value).map(([name, each]) => [JSON.stringify(name), each])
    : [];
}

function write(members: Members): string {
  return `{${members.map(([name, value]) => `${name}:${JSON.stringify(value)}`).join(',')}}`;
}

/** Members of an endpoint's body with some more whose names are near to those. */
function membersFor({ required, optional }: Endpoint): fc.Arbitrary<Members> {
  const names = [...Object.keys({ ...required, ...optional }), ...routedMembers];
  const near = fc.constantFrom(...names).chain((name) =>
    fc.oneof(
      fc.constantFrom(...alikeOf(name)),
      fc.constantFrom(name, `${name}x`, `x-${name}`, name.slice(1) || 'x'),
      fc.string({ maxLength: 4 }).map((text) => name.slice(0, 2) + text + name.slice(2)),
    ),
  );
  const strange: fc.Arbitrary<readonly [string, unknown]> = fc.tuple(
    fc.oneof(
      near.map((name) => JSON.stringify(name)),
      near.map(escaped),
    ),
    fc.constantFrom<unknown>('dear', 1, true, null, { include_usage: false }, 'x'.repeat(1000)),
  );
  return fc
    .tuple(
      fc.subarray(asMembers(optional) as (readonly [string, unknown])[]),
      fc.array(strange, { maxLength: 2 }),
    )
    .chain(([some, more]) => {
      const all = [...asMembers(required), ...some, ...more];
      return fc.shuffledSubarray(all, { minLength: all.length });
    });
}

for (const [name, endpoint] of Object.entries(endpoints)) {
  test(`${name}: what passes has the same routed and counted values for every reader (SEED=${seed})`, (t) => {
    let passed = 0;
    fc.assert(
      fc.property(membersFor(endpoint), (members) => {
        const body = Buffer.from(write(members));
        let validated: ValidatedBody;
        try {
          validated = validateBody(body, endpoint.schema, usualCost);
        } catch {
          return;
        }
        passed++;
        const ours = JSON.parse(body.toString()) as Record<string, unknown>;
        if (validated.model !== (ours.model ?? '')) throw new Error('the model is another one');
        if (validated.inBackground !== ((ours.background ?? false) !== false))
          throw new Error('it is in the background for one of us');
        for (const path of endpoint.read) {
          const own = path.reduce<unknown>(
            (value, key) =>
              typeof value === 'object' && value !== null
                ? (value as Record<string, unknown>)[key]
                : undefined,
            ours,
          );
          for (const which of ['first', 'last'] as const) {
            const theirs = looseRead(members, path, which);
            if (JSON.stringify(theirs) !== JSON.stringify(own))
              throw new Error(
                `${path.join('.')}: ${JSON.stringify(own)}, and ${JSON.stringify(theirs)} elsewhere`,
              );
          }
        }
      }),
      { numRuns: 1000 },
    );
    t.ok(passed > 20, `${passed} passed`);
    t.end();
  });

  test(`${name}: a body with its own names alone is never refused (SEED=${seed})`, (t) => {
    const { schema, required, optional } = endpoint;
    fc.assert(
      fc.property(
        fc.subarray(Object.entries(optional)),
        fc.array(
          fc
            .string({ maxLength: 12 })
            .filter((text) => schema.guard.entryOf(text) === null && text !== '__proto__'),
          { maxLength: 3 },
        ),
        (some, unknown) => {
          const body = {
            ...required,
            ...Object.fromEntries(some),
            ...Object.fromEntries(unknown.map((key) => [key, 1])),
          };
          validateBody(Buffer.from(JSON.stringify(body)), schema, usualCost);
        },
      ),
      { numRuns: 500 },
    );
    t.end();
  });
}

test('names are compared as Unicode folds single characters', (t) => {
  t.equal(foldName('\u017ftream'), 'stream');
  t.equal(foldName('to\u212aens'), 'tokens');
  t.not(foldName('s\u0131ze'), 'size');
  t.not(foldName('S\u0130ZE'), 'size');
  t.not(foldName('\uff4dodel'), 'model', 'full width letters fold to their own');
  t.equal(foldName('maxOutputTokens'), foldName('max_output_tokens'));
  t.end();
});
