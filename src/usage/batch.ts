import type { CallTimes } from '../metrics/call-times.js';
import type { CallSums } from '../metrics/recorder.js';
import type { LedgerLine } from '../store/store.js';
import type { AlikeCalls, CallTable } from './call-table.js';
import type { EndedCall } from './ended-call.js';
import { isTime } from './entry.js';
import { writePage } from './page.js';
import { addAlike, SumCollector } from './sums.js';

/** What a batch adds to the ledger: pages of calls as its lines, and what these add to the sums. */
export interface UsageBatchContent {
  readonly lines: readonly LedgerLine[];
  readonly sums: ReturnType<SumCollector['sums']>;
}

/** Calls that go to the ledger together. Each page is written when it is full, so that of those that wait only texts are kept. */
export class UsageBatch {
  readonly #lines: LedgerLine[] = [];
  readonly #sums = new SumCollector();
  readonly #table: CallTable;
  readonly #record: (sums: CallSums) => CallTimes;
  #entries = 0;

  /**
   * @param table of no other batch until this one has ended
   * @param record counts calls in the metrics, and gives what counts their times
   */
  constructor(table: CallTable, record: (sums: CallSums) => CallTimes) {
    this.#table = table;
    this.#record = record;
  }

  /** How many calls it holds. */
  get entries(): number {
    return this.#entries;
  }

  /**
   * Takes a call, of which the table keeps what it says.
   * @param at whole Unix milliseconds: when it ended
   * @returns false when the call has no time that a calendar has, and cannot be taken
   */
  add(call: EndedCall, at: number, costNanoUsd: number): boolean {
    const table = this.#table;
    if (!table.hasRoom(at)) {
      if (!isTime(at)) return false;
      this.#endPage();
      table.begin(at);
    }
    table.add(call, at, costNanoUsd);
    this.#entries++;
    return true;
  }

  /** Has those calls counted that are not yet: they are when their page ends. */
  count(): void {
    this.#table.count(this.#countAlike);
  }

  /** Writes what is left, and has it counted; nothing is added from then on. */
  end(): UsageBatchContent {
    this.#endPage();
    return { lines: this.#lines, sums: this.#sums.sums() };
  }

  readonly #countAlike = (alike: AlikeCalls): CallTimes => {
    const { keyId, model } = alike.manner;
    addAlike(this.#sums.totalsOf(this.#table.at, keyId, model), alike);
    return this.#record(callSums(alike));
  };

  #endPage(): void {
    const table = this.#table;
    if (table.length === 0) return;
    table.count(this.#countAlike);
    this.#lines.push({ at: table.at, value: writePage(table) });
    table.end();
  }
}

/** As they are counted in the metrics. */
function callSums({ manner, calls, ...sums }: AlikeCalls): CallSums {
  return {
    calls,
    protocol: manner.protocol,
    model: manner.model,
    key: manner.keyId,
    status: manner.status,
    outcome: manner.outcome,
    requestBytes: sums.bytesIn,
    responseBytes: sums.bytesOut,
    usage:
      manner.tokensKnown === 'none'
        ? null
        : {
            input: sums.inputTokens,
            output: sums.outputTokens,
            cached: sums.cachedTokens,
            reasoning: sums.reasoningTokens,
          },
    costNanos: sums.costNanoUsd,
  };
}
