import type { LoadClient, LoadResult } from './load.js';
import { readJson, startScript } from './script.js';

/** autocannon, for machines without wrk: slower than what it measures, which the report then says. */
export const autocannon: LoadClient = {
  name: 'autocannon',
  async start(plan) {
    const process = await startScript('autocannon-process.js', plan, plan.core);
    return { process, result: readJson<LoadResult>(process) };
  },
};
