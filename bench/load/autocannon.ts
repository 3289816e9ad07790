import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LoadClient, LoadResult } from './load.js';
import { readJson, startScript } from './script.js';

/** autocannon, for machines without wrk: slower than what it measures, which the report then says. */
export const autocannon: LoadClient = {
  name: 'autocannon',
  async start(plan) {
    // As a file: the system takes no argument as long as the names of thousands.
    const planFile = join(plan.directory, 'autocannon-plan.json');
    writeFileSync(planFile, JSON.stringify(plan));
    const process = await startScript('autocannon-process.js', { planFile }, plan.core);
    return { process, result: readJson<LoadResult>(process) };
  },
};
