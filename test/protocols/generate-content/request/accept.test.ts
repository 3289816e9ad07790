import assert from 'node:assert/strict';
import { test } from 'tap';
import { passedGenerateContentRequest } from '../../../../src/protocols/generate-content/request/schema.js';
import { cases, fc } from '../../../support/seed.js';

const body = {
  contents: [
    { role: 'user', parts: [{ text: 'hi' }, { inlineData: { mimeType: 'image/png', data: 'AA==' } }] },
    { role: 'model', parts: [{ functionCall: { name: 'f', args: {} }, thoughtSignature: 's' }] },
    { role: 'user', parts: { functionResponse: { name: 'f', response: {}, parts: [] } } },
  ],
  system_instruction: { parts: [{ text: 'x' }] },
  tools: [{ functionDeclarations: [{ name: 'f', parameters: {} }] }],
  generationConfig: { temperature: 1, stopSequences: ['a'], thinkingConfig: { thinkingBudget: 1 } },
};

/** Paths of all values inside. */
function pathsOf(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [path];
  return [path, ...Object.entries(value).flatMap(([key, inner]) => pathsOf(inner, [...path, key]))];
}

function withValue(value: unknown, [key, ...rest]: readonly string[], put: unknown): unknown {
  if (key === undefined) return put;
  const copy = (Array.isArray(value) ? [...(value as unknown[])] : { ...(value as object) }) as Record<
    string,
    unknown
  >;
  copy[key] = withValue(copy[key], rest, put);
  return copy;
}

test('what is accepted by its bytes, the whole check takes too', async () => {
  const paths = pathsOf(body);
  let accepted = 0;
  fc.assert(
    fc.property(fc.constantFrom(...paths), fc.jsonValue({ maxDepth: 2 }), (path, put) => {
      const changed = withValue(body, path, put);
      const taken = passedGenerateContentRequest.check(changed);
      const byBytes = passedGenerateContentRequest.accept(Buffer.from(JSON.stringify(changed))) !== null;
      if (byBytes) accepted++;
      assert.ok(taken || !byBytes, 'accepted, though it is not valid');
      if (!taken) assert.equal(passedGenerateContentRequest.explain(changed).status, 400);
    }),
    { numRuns: cases(1000) },
  );
  assert.ok(accepted > cases(50));
});
