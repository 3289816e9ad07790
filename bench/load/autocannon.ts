import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LoadClient, LoadResult } from './load.js';
import { readJson, startScript } from './script.js';

/** autocannon, for machines without wrk. It is slower than what it measures, and the report says so. */
export const autocannon: LoadClient = {
  name: 'autocannon',
  async start(plan) {
    // Passed as a file, since the names of thousands of callers exceed the system's limit for arguments.
    const planFile = join(plan.directory, 'autocannon-plan.json');
    writeFileSync(planFile, JSON.stringify(plan));
    const process = await startScript('autocannon-process.js', { planFile }, plan.core);
    return { process, result: readJson<LoadResult>(process) };
  },
};
