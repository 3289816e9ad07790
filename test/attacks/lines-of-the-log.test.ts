import { execFileSync } from 'node:child_process';
import { test } from 'tap';

test('nothing that a terminal obeys stands in a line of the log as it came', async (t) => {
  const said = 'a\u009b31m\u007f\u202e\u2028\u2069\u001b[0m\n\u00e9\u4e2d';
  const module = new URL('../../src/supervisor/log.js', import.meta.url).href;
  const script = `
    const { createLog } = await import(${JSON.stringify(module)});
    const log = createLog('worker', 'info');
    await new Promise((resolve) => setTimeout(resolve, 50));
    log.logger.info({ path: ${JSON.stringify(said)} }, 'request');
  `;
  const line = execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
  t.equal((JSON.parse(line) as { path: string }).path, said, 'it can be read back');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
  t.notMatch(line.trimEnd(), /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/);
});
