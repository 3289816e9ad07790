import type { Work } from '../bench.js';
import { transferReport } from '../transfer-report.js';
import { mediaContenders, runTransfers } from '../transfers.js';

/** Forms with a file of 64 MiB, passed on while they arrive. */
export const uploadWork: Work = {
  name: 'upload',
  byDefault: false,
  async run(bench) {
    const all = await runTransfers(bench, {
      direction: 'up',
      connections: [1, 8],
      contenders: mediaContenders(bench, [null]),
      pathOf: async ({ prefix }) => `${prefix}/v1/audio/transcriptions`,
    });
    return transferReport(
      bench,
      { work: 'upload', title: 'forms with a file of 64 MiB to transcribe, one after the other' },
      all,
    );
  },
};
