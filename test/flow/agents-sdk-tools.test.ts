import { test } from 'tap';
import { isObject, type JsonObject, listOf, parseObject } from '../../src/wire/json.js';
import { postJson } from '../support/post-json.js';
import { startStrictStage } from '../support/strict-upstream/stage.js';

/* The tools that `shellTool()` and `applyPatchTool()` of @openai/agents 0.20 declare, and the items that it sends back. */

const tools = {
  shell: { type: 'shell', environment: { type: 'local' } },
  apply_patch: { type: 'apply_patch' },
} as const;
const outputs: Readonly<Record<keyof typeof tools, JsonObject>> = {
  shell: {
    type: 'shell_call_output',
    output: [{ stdout: 'lighthouse-42', stderr: '', outcome: { type: 'exit', exit_code: 0 } }],
  },
  apply_patch: { type: 'apply_patch_call_output', status: 'completed', output: 'Created lighthouse-42' },
};
const made = {
  shell: { action: { commands: [/^printf /], timeout_ms: null, max_output_length: null } },
  apply_patch: { operation: { type: 'create_file', path: 'lighthouse', diff: '+42' } },
};

for (const wire of ['chat', 'messages', 'generateContent'] as const) {
  for (const name of ['shell', 'apply_patch'] as const) {
    test(`${name} of the client's own is called on ${wire}`, async (t) => {
      const { url, upstream } = await startStrictStage(t, wire);
      const ask = async (input: readonly unknown[]): Promise<JsonObject[]> => {
        const answer = await postJson(`${url}/v1/responses`, {
          model: 'm',
          input,
          tools: [tools[name]],
          include: [],
          stream: false,
        });
        t.equal(answer.headers.get('x-gateway-left-out'), null);
        return listOf(parseObject(await answer.text())?.output).filter(isObject);
      };
      const asked = { role: 'user', content: 'cell:tool' };
      const first = await ask([asked]);
      const call = first.find(({ type }) => type === `${name}_call`) ?? {};
      t.match(call, { status: 'completed', ...made[name] });
      const { call_id } = call;
      const second = await ask([asked, ...first, { ...outputs[name], call_id }]);
      t.match(second.at(-1)?.content, [{ text: 'The tools said: lighthouse-42.' }]);
      t.strictSame([...new Set(upstream.heard.map(({ broken }) => broken))], [null]);
    });
  }
}
