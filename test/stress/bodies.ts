import { setTimeout as pause } from 'node:timers/promises';
import { openConnection } from '../support/load/connection.js';
import { isWhole } from '../support/load/load.js';
import { loadRequest } from '../support/load/request.js';
import { peakResidentMb, residentMb } from '../support/process-memory.js';
import { onStage } from './stage.js';

interface BodiesPlan {
  readonly connections: number;
  readonly bodyBytes: number;
  /** Time from the last answer to the second reading of the memory. */
  readonly restSeconds: number;
}

interface BodiesFigures {
  readonly answered: number;
  /** Other failures, each once. */
  readonly problems: readonly string[];
  readonly beforeMb: number;
  readonly peakMb: number;
  readonly afterMb: number;
}

/** Many concurrent clients with large bodies, none of which is answered before all have arrived. */
export function bodies(plan: BodiesPlan): Promise<BodiesFigures> {
  return onStage({}, async ({ gateway, worker }) => {
    const beforeMb = residentMb(worker);
    const request = loadRequest(
      { does: 'gate', requests: plan.connections },
      { promptLength: plan.bodyBytes },
    );
    const problems = new Set<string>();
    let answered = 0;
    const one = async (): Promise<void> => {
      try {
        const connection = await openConnection(gateway.port);
        const answer = await connection.ask(request);
        connection.close();
        if (isWhole(answer)) answered += 1;
        else problems.add(`status ${answer.status} ${answer.text}`);
      } catch (error) {
        problems.add(error instanceof Error ? error.message : String(error));
      }
    };
    await Promise.all(Array.from({ length: plan.connections }, one));
    const peakMb = peakResidentMb(worker);
    await pause(plan.restSeconds * 1000);
    return { answered, problems: [...problems], beforeMb, peakMb, afterMb: residentMb(worker) };
  });
}
