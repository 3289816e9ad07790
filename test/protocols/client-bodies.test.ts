import assert from 'node:assert/strict';
import { test } from 'tap';
import { type TextProtocolName, textProtocols } from '../../src/conversation/request.js';
import { GatewayError } from '../../src/errors.js';
import { textEndpoints } from '../../src/protocols/text.js';
import { isObject, type JsonObject } from '../../src/wire/json.js';
import { createSealer } from '../../src/wire/seal.js';
import { cases, fc } from '../support/seed.js';
import { BrokenRule } from '../support/strict-upstream/asked.js';
import { readChat } from '../support/strict-upstream/chat.js';
import { readGenerateContent } from '../support/strict-upstream/generate-content.js';
import { newMemory } from '../support/strict-upstream/memory.js';
import { readMessages } from '../support/strict-upstream/messages.js';
import { readResponses } from '../support/strict-upstream/responses.js';
import { chatBodies } from './client-bodies/chat.js';
import { generateContentBodies } from './client-bodies/generate-content.js';
import { messagesBodies } from './client-bodies/messages.js';
import { responsesBodies } from './client-bodies/responses.js';
import { target } from './messages/samples.js';
import { writeRequest } from './write-request.js';

/* What a vendor's own SDK can say, and the vendor takes, is taken on its way to any other, and by that one. */

const bodies: Readonly<Record<TextProtocolName, fc.Arbitrary<Record<string, unknown>>>> = {
  chat: chatBodies,
  responses: responsesBodies,
  messages: messagesBodies,
  generateContent: generateContentBodies,
};
const readers: Readonly<Record<TextProtocolName, (body: JsonObject) => unknown>> = {
  chat: (body) => readChat(body, newMemory()),
  responses: (body) => readResponses(body, newMemory()),
  messages: (body) => readMessages(body, newMemory(), ''),
  generateContent: (body) => readGenerateContent(body, newMemory()),
};

/** @returns what is wrong with a body on its way, or null */
function fault(from: TextProtocolName, to: TextProtocolName, body: JsonObject, more: object): string | null {
  const { codec, schema } = textEndpoints[from].translation;
  try {
    if (!schema.check(body)) throw schema.explain(body);
    const request = codec.decodeRequest(structuredClone(body), false, sealer);
    const written = writeRequest(textEndpoints[to].translation.codec, request, {
      ...target,
      hostedTools: 'drop',
      thinking: 'levels',
      ...more,
    });
    const sent: unknown = JSON.parse(written);
    assert.ok(isObject(sent));
    readers[to](sent);
    return null;
  } catch (error) {
    if (error instanceof GatewayError) return `refused: ${error.message}`;
    if (error instanceof BrokenRule) return `the upstream refuses: ${error.message}`;
    throw error;
  }
}

const sealer = createSealer('secret');

for (const from of textProtocols)
  for (const to of textProtocols) {
    if (from === to) continue;
    test(`what a ${from} client says is taken on a ${to} upstream`, async () => {
      fc.assert(
        fc.property(bodies[from], fc.boolean(), (body, isAdaptive) => {
          assert.equal(
            fault(from, to, body, isAdaptive && to === 'messages' ? { thinking: 'adaptive' } : {}),
            null,
          );
        }),
        { numRuns: cases(200) },
      );
    });
  }
