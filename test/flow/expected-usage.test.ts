import { test } from 'tap';
import type { Call } from '../../src/flow/call.js';
import { expectedUsage } from '../../src/flow/expected-usage.js';
import { validateBody } from '../../src/flow/validate.js';
import { generateContent } from '../../src/protocols/generate-content/index.js';
import { generateContentRequest } from '../../src/protocols/generate-content/request/schema.js';

const outputLimit = { within: null, fields: ['max_completion_tokens', 'max_tokens'], choices: ['n'] };

/** The output that a call with these members is taken for. */
function outputOf(members: string): number {
  const body = Buffer.from(`{"model":"m"${members}}`);
  const call = { body, route: { endpoint: { outputLimit } }, upload: null, validated: null };
  return expectedUsage(call as unknown as Call).output;
}

test('a call is taken for its output limit, in whatever form the number stands', (t) => {
  t.equal(outputOf(',"max_tokens":256'), 256);
  t.equal(outputOf(',"max_tokens":1'), 1);
  t.equal(outputOf(',"max_tokens":999999999'), 999_999_999);
  t.equal(outputOf(',"max_tokens":1234567890'), 1_234_567_890);
  t.equal(outputOf(',"max_tokens":2.56e2'), 256);
  t.equal(outputOf(',"max_completion_tokens":64,"max_tokens":256'), 64);
  t.equal(outputOf(',"max_tokens":256,"n":3'), 768);
  t.end();
});

test('a limit counts in either of the spellings that generateContent has', (t) => {
  for (const config of [
    '"generationConfig":{"maxOutputTokens":64,"candidateCount":2}',
    '"generation_config":{"max_output_tokens":64,"candidate_count":2}',
    '"generation_config":{"maxOutputTokens":64,"candidate_count":2}',
  ]) {
    const body = Buffer.from(`{"contents":[{"parts":[{"text":"hi"}]}],${config}}`);
    for (const validated of [null, validateBody(body, generateContentRequest)]) {
      const call = { body, route: { endpoint: generateContent }, upload: null, validated };
      t.equal(expectedUsage(call as unknown as Call).output, 128, config);
    }
  }
  t.end();
});

test('where it sets no limit, or none that is a whole number above 0, a thousand tokens are presumed', (t) => {
  for (const members of [
    '',
    ',"max_tokens":0',
    ',"max_tokens":-5',
    ',"max_tokens":1.5',
    ',"max_tokens":null',
  ])
    t.equal(outputOf(members), 1000, members);
  t.equal(outputOf(',"max_tokens":1e400'), 1000);
  t.equal(outputOf(',"max_tokens":99999999999999999999'), 1000);
  t.end();
});
