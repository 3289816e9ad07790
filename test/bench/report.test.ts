import { test } from 'tap';
import { reportMarkdown } from '../../bench/report.js';

test('a report as Markdown is a table with its notes below', async (t) => {
  const report = {
    work: '1kb',
    title: '1 KB chat',
    columns: ['contender', 'req/s'],
    rows: [
      ['gateway', '  50,000 ± 2 %'],
      ['a|b', '1'],
    ],
    notes: ['gateway: the contender was the limit.'],
    figures: null,
  };
  t.equal(
    reportMarkdown(report),
    '\n### 1kb\n\n1 KB chat:\n\n| contender | req/s |\n| --- | --- |\n| gateway | 50,000 ± 2 % |\n| a\\|b | 1 |\n\n' +
      '- gateway: the contender was the limit.\n',
  );
});
