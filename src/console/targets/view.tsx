import type { TargetView } from '../../metrics/live-state.js';
import { Badge } from '../badge.js';
import { ago, count, moment, percent, whole } from '../format.js';
import { share } from '../rates.js';
import { useSession } from '../session.js';
import { type Column, Table } from '../table.js';
import { failuresOf, illFirst, targetStates } from './target.js';

/** The targets with their health, unhealthy ones first. */
export function TargetsView() {
  const targets = useSession().state.value?.targets ?? [];
  return (
    <section>
      <div class="view-head">
        <h2>Targets</h2>
        <p class="hint" role="status">
          {healthOf(targets)}
        </p>
      </div>
      <div class="panel">
        <Table
          label="Targets"
          columns={columns}
          rows={illFirst(targets)}
          keyOf={({ name }) => `target:${name}`}
          order={{ key: 'state', descending: true }}
          empty="No target is known yet."
        />
      </div>
    </section>
  );
}

function healthOf(targets: readonly TargetView[]): string {
  const ill = targets.filter(({ state }) => state !== 'closed').length;
  if (targets.length === 0) return '';
  return ill === 0 ? `All ${targets.length} are well.` : `${ill} of ${targets.length} are not well.`;
}

const columns: readonly Column<TargetView>[] = [
  { key: 'name', title: 'Target', value: ({ name }) => name },
  {
    key: 'state',
    title: 'State',
    hint: 'What the worst-off worker says',
    value: ({ state }) => targetStates[state].rank,
    attributes: ({ state }) => ({ 'data-state': state }),
    content: ({ state }) => <Badge tone={targetStates[state].tone}>{targetStates[state].title}</Badge>,
  },
  {
    key: 'workers',
    title: 'Workers',
    hint: 'Workers in this state',
    isNumber: true,
    value: ({ workersInState }) => workersInState,
  },
  {
    key: 'in-flight',
    title: 'In flight',
    isNumber: true,
    value: ({ inFlight }) => inFlight,
    content: ({ inFlight }) => count(inFlight),
  },
  {
    key: 'attempts',
    title: 'Attempts',
    isNumber: true,
    value: ({ attempts }) => attempts,
    content: ({ attempts }) => whole(attempts),
  },
  {
    key: 'retries',
    title: 'Retries',
    isNumber: true,
    value: ({ retries }) => retries,
    content: ({ retries }) => whole(retries),
  },
  {
    key: 'failures',
    title: 'Failures',
    isNumber: true,
    value: failuresOf,
    content: (target) => {
      const failures = failuresOf(target);
      const part = share(failures, target.attempts);
      return part === null || failures === 0 ? whole(failures) : `${whole(failures)} (${percent(part)})`;
    },
  },
  {
    key: 'results',
    title: 'By result',
    isProse: true,
    value: ({ failures }) => Object.keys(failures).join(' ') || null,
    content: ({ failures }) =>
      Object.entries(failures)
        .sort(([, a], [, b]) => b - a)
        .map(([result, number]) => `${result} ${whole(number)}`)
        .join(' · '),
  },
  {
    key: 'last-failure',
    title: 'Last error',
    isProse: true,
    value: ({ lastFailure }) => lastFailure?.at ?? null,
    attributes: ({ lastFailure }) => ({ title: lastFailure === null ? '' : moment(lastFailure.at) }),
    content: ({ lastFailure }) =>
      lastFailure === null ? '' : `${ago(lastFailure.at)}: ${lastFailure.message}`,
  },
];
