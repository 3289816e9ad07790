import assert from 'node:assert/strict';
import { test } from 'tap';
import {
  type TextProtocolName,
  type Turn,
  textProtocols,
  type UserPart,
} from '../../src/conversation/request.js';
import { GatewayError } from '../../src/errors.js';
import { textEndpoints } from '../../src/protocols/text.js';
import type { JsonObject } from '../../src/wire/json.js';
import { histories } from '../conversation/fit/histories.js';
import { cases, fc } from '../support/seed.js';
import { plain, target } from './messages/samples.js';
import { pairingFaults } from './pairing.js';
import { writeRequest } from './write-request.js';

/** @returns null for a conversation that says nothing, which is refused */
function bodyOf(upstream: TextProtocolName, turns: readonly Turn[]): string | null {
  const { codec } = textEndpoints[upstream].translation;
  try {
    return writeRequest(codec, { ...plain, turns }, target);
  } catch (error) {
    if (error instanceof GatewayError && error.param === 'messages') return null;
    throw error;
  }
}

const says = (part: UserPart): boolean => part.kind !== 'text' || part.text !== '';
const asked: Turn = { role: 'user', parts: [{ kind: 'text', text: 'q' }] };

for (const upstream of textProtocols) {
  test(`toward ${upstream} any history is one that the vendor takes`, async () => {
    fc.assert(
      fc.property(histories, fc.boolean(), (turns, isAsked) => {
        const body = bodyOf(upstream, isAsked ? [...turns, asked] : turns);
        if (isAsked) assert.ok(body !== null);
        if (body !== null)
          assert.deepEqual(pairingFaults[upstream](JSON.parse(body) as JsonObject), [], body);
      }),
      { numRuns: cases(500) },
    );
  });

  test(`toward ${upstream} a mended history begins with what was sent before the model went on`, async () => {
    const closing = upstream === 'messages' || upstream === 'generateContent' ? ']}]}' : ']}';
    fc.assert(
      fc.property(histories, (turns) => {
        const whole = bodyOf(upstream, [...turns, asked]);
        turns.forEach((turn, index) => {
          const before = turns[index - 1];
          // What is sent ends with something that the user says.
          if (turn.role !== 'assistant' || before?.role !== 'user' || !before.parts.some(says)) return;
          const sent = bodyOf(upstream, turns.slice(0, index));
          if (sent !== null)
            assert.ok(whole?.startsWith(sent.slice(0, -closing.length)), `${sent}\n${whole}`);
        });
      }),
      { numRuns: cases(500) },
    );
  });
}
