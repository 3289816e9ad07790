import { test } from 'tap';
import type { TargetOptions } from '../../src/conversation/codec.js';
import type { TextProtocolName } from '../../src/conversation/request.js';
import { textEndpoints } from '../../src/protocols/text.js';
import type { JsonObject } from '../../src/wire/json.js';
import { plainContext, plainTarget } from '../conversation/plain.js';
import { clients } from '../suites/translation/session.js';
import { tools } from '../suites/translation/tool-scenarios.js';
import { firstText, interruptions, requestBodies, rounds, system } from './growing-conversation.js';
import { writeRequest } from './write-request.js';

const plain: TargetOptions = { ...plainTarget, model: 'u' };
const targets: Readonly<Record<string, TargetOptions>> = {
  'a plain target': plain,
  'a target with every setting': {
    ...plain,
    maxTokensField: 'max_tokens',
    streamUsage: true,
    thinking: 'adaptive',
    jsonSchema: false,
    promptCaching: false,
    hostedTools: 'drop',
  },
  'a target of levels': { ...plain, thinking: 'levels' },
};

const conversationMembers: Readonly<Record<TextProtocolName, string>> = {
  chat: 'messages',
  messages: 'messages',
  responses: 'input',
  generateContent: 'contents',
};

const marker = ',"cache_control":{"type":"ephemeral"}';

/**
 * The marks of a messages upstream's prompt cache move on with the conversation: all else is the same bytes. The
 * upstream takes prompts that differ in their marks alone for the same.
 */
function withoutMarks(body: string): string {
  return body.replaceAll(marker, '');
}

/** What stays of a request's body where the next one goes on: all but the brackets that close the conversation. */
function beginningOf(body: string, upstream: TextProtocolName, next: number): string {
  // Two turns of the user in a row are one in these protocols: it is closed and opened again.
  const merges = upstream === 'messages' || upstream === 'generateContent';
  const closing = merges && interruptions.includes(next) ? ']}]}' : ']}';
  if (!body.endsWith(closing)) throw new Error(`the body ends otherwise: ${body.slice(-20)}`);
  return body.slice(0, -closing.length);
}

/** Numbers of the bodies that do not begin with the one before them. */
function broken(bodies: readonly string[], upstream: TextProtocolName): number[] {
  return bodies.flatMap((body, index) => {
    const before = bodies[index - 1];
    return before === undefined || body.startsWith(beginningOf(before, upstream, index)) ? [] : [index + 1];
  });
}

for (const client of clients) {
  for (const upstream of clients.map(({ protocol }) => protocol)) {
    const ours = textEndpoints[client.protocol].translation.codec;
    const theirs = textEndpoints[upstream].translation.codec;
    const writeMarked = (body: JsonObject, target: TargetOptions): string =>
      writeRequest(theirs, ours.decodeRequest(body, true, plainContext.sealer), target);
    const translate = (body: JsonObject, target: TargetOptions): string =>
      withoutMarks(writeMarked(body, target));

    for (const [name, target] of Object.entries(targets)) {
      for (const thinks of [false, true]) {
        const reasoning = thinks ? 'with reasoning ' : '';

        test(`${client.protocol} to ${upstream}: a conversation ${reasoning}grows at its end for ${name}`, async (t) => {
          const bodies = requestBodies(client, upstream, thinks).map((body) => translate(body, target));
          t.equal(bodies.length, rounds.length);
          t.strictSame(broken(bodies, upstream), [], 'each begins with the one before');
        });

        test(`${client.protocol} to ${upstream}: the same request ${reasoning}gives the same bytes for ${name}`, async (t) => {
          const once = requestBodies(client, upstream, thinks).map((body) => translate(body, target));
          const again = requestBodies(client, upstream, thinks).map((body) => translate(body, target));
          t.strictSame(again, once);
        });

        test(`${client.protocol} to ${upstream}: the conversation ${reasoning}comes last for ${name}`, async (t) => {
          const body = translate(requestBodies(client, upstream, thinks).at(-1) ?? {}, target);
          t.equal(Object.keys(JSON.parse(body) as object).at(-1), conversationMembers[upstream]);
          const placeOf = (text: string): number => body.indexOf(JSON.stringify(text));
          const spoken = placeOf(firstText);
          for (const text of [system, ...tools.flatMap((tool) => [tool.name, tool.description])]) {
            t.not(placeOf(text), -1, text);
            t.ok(placeOf(text) < spoken, `${text} before the conversation`);
          }
          for (const text of ['Thanks! 🌍', 'noon — 正午', 'rain', 'So where should I go?'])
            t.ok(placeOf(text) > spoken, text);
        });
      }
    }
  }
}

/** A place of a mark: the name of its tool or block, and its number from the end. */
function marksOf(body: string): string[] {
  const { tools, system, messages } = JSON.parse(body) as Record<string, readonly JsonObject[]>;
  const marked = (list: readonly JsonObject[] = [], name: string) =>
    list.flatMap(({ cache_control }, index) =>
      cache_control === undefined ? [] : [`${name}${index - list.length}`],
    );
  const users = messages?.filter(({ role }) => role === 'user') ?? [];
  return [
    ...marked(tools, 'tool'),
    ...marked(system, 'system'),
    ...users.flatMap(({ content }, index) =>
      marked(content as JsonObject[], `user${index - users.length} block`),
    ),
  ];
}

for (const client of clients) {
  test(`${client.protocol} to messages: the marks are at the ends of tools, system and last messages`, async (t) => {
    const ours = textEndpoints[client.protocol].translation.codec;
    requestBodies(client, 'messages', false).forEach((body, index) => {
      const written = writeRequest(
        textEndpoints.messages.translation.codec,
        ours.decodeRequest(body, true, plainContext.sealer),
        plain,
      );
      const ends = ['tool-1', 'system-1', 'user-2 block-1', 'user-1 block-1'];
      t.strictSame(marksOf(written), index === 0 ? ends.filter((end) => !end.startsWith('user-2')) : ends);
      t.equal(written.split(marker).length - 1, index === 0 ? 3 : 4);
    });
  });
}
