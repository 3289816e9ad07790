import type { Bench, WorkReport } from './bench.js';

/** Formats a table with aligned columns: the first to the left, the others to the right. */
function table(columns: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = columns.map((title, at) =>
    Math.max(title.length, ...rows.map((row) => (row[at] ?? '').length)),
  );
  const line = (cells: readonly string[]): string =>
    widths
      .map((width, at) => (at === 0 ? (cells[at] ?? '').padEnd(width) : (cells[at] ?? '').padStart(width)))
      .join('  ');
  return [line(columns), widths.map((width) => '-'.repeat(width)).join('  '), ...rows.map(line)];
}

/** Formats the report of one work as text. */
export function reportText(report: WorkReport): string {
  const notes = report.notes.map((note) => `  ${note}`);
  return [
    '',
    `${report.work}: ${report.title}`,
    '',
    ...table(report.columns, report.rows),
    '',
    ...notes,
    '',
  ].join('\n');
}

/** Formats one work's report as Markdown: its table with the spread of each figure, and what limited it. */
export function reportMarkdown(report: WorkReport): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.trim().replaceAll('|', '\\|')).join(' | ')} |`;
  return [
    '',
    `### ${report.work}`,
    '',
    `${report.title}:`,
    '',
    line(report.columns),
    line(report.columns.map(() => '---')),
    ...report.rows.map(line),
    '',
    ...report.notes.map((note) => `- ${note}`),
    '',
  ].join('\n');
}

/**
 * Returns the first lines of the report as Markdown.
 * @param commit the measured commit
 * @param day of the run, as `2026-11-23`
 */
export function preambleMarkdown(bench: Bench, commit: string, day: string): string {
  const lines = preamble(bench).trimEnd().split('\n');
  return [`commit    ${commit}, ${day}`, ...lines]
    .map((line) => `- ${line.replace(/^(\w+)\s+/, '$1: ')}\n`)
    .join('');
}

/** Describes what the figures are measured on and how, for the first lines of the report. */
export function preamble(bench: Bench): string {
  const { machine, cores, load, options } = bench;
  const version = (name: 'nginx' | 'haproxy' | 'wrk' | 'taskset'): string =>
    `${name} ${machine[name]?.version ?? 'not installed'}`;
  const lines = [
    `machine   ${machine.cpu}, ${machine.cores} cores, ${machine.memoryGb} GB, Linux ${machine.kernel}`,
    `versions  node ${machine.node}, ${version('nginx')}, ${version('haproxy')}, ${version('wrk')}`,
    `method    ${options.rounds} rounds of ${options.seconds} s, ${options.warm ? 'processes stay where the work allows' : 'fresh process each'}, order reversed every round; load client ${load.name}`,
  ];
  if (cores.contender !== null) {
    lines.push(
      `cores     contender on ${cores.contender}, load client on ${cores.load}, bench upstream on ${cores.upstream}`,
    );
  } else if (!machine.taskset) {
    lines.push('cores     NOT PINNED: taskset is not installed; the system places the processes as it likes');
  } else {
    lines.push('cores     NOT PINNED: there is only one core; contender, load client and upstream share it');
  }
  for (const name of ['nginx', 'haproxy'] as const) {
    if (!machine[name]) lines.push(`missing   ${name} is not installed: no comparison with it`);
  }
  if (!machine.wrk)
    lines.push('missing   wrk is not installed: autocannon will be the limit of fast contenders');
  return `${lines.join('\n')}\n`;
}
