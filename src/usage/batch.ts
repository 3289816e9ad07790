import type { CallRecord } from '../metrics/call-record.js';
import type { CallTimes } from '../metrics/call-times.js';
import type { CountedCalls, Recorder, TokenCounts } from '../metrics/recorder.js';
import type { LedgerLine } from '../store/store.js';
import type { CallTable } from './call-table.js';
import { isTime } from './ledger-record.js';
import { writePage } from './page.js';
import type { CallGroupSums } from './sums.js';
import { addGroup, SumCollector } from './sums.js';

/** What a batch adds to the ledger: a line for each page of calls, and the sums of their calls. */
export interface UsageBatchContent {
  readonly lines: readonly LedgerLine[];
  readonly sums: ReturnType<SumCollector['sums']>;
}

/** Calls that go to the ledger together. Each page is written when it is full, so that of those that wait only texts are kept. */
export class UsageBatch {
  readonly #lines: LedgerLine[] = [];
  readonly #sums = new SumCollector();
  readonly #table: CallTable;
  readonly #record: Recorder['recordSums'];
  #records = 0;

  /**
   * @param table of no other batch until this one has ended
   * @param record counts calls in the metrics, and gives what counts their times
   */
  constructor(table: CallTable, record: Recorder['recordSums']) {
    this.#table = table;
    this.#record = record;
  }

  /** How many calls it holds. */
  get records(): number {
    return this.#records;
  }

  /**
   * Takes a call, of which the table keeps what it says.
   * @param at whole Unix milliseconds: when it ended
   * @returns false when the call has no time that a calendar has, and cannot be taken
   */
  add(call: CallRecord, at: number): boolean {
    const table = this.#table;
    if (!table.hasRoom(at)) {
      if (!isTime(at)) return false;
      this.#endPage();
      table.begin(at);
    }
    table.add(call, at);
    this.#records++;
    return true;
  }

  /** Has those calls counted that are not yet: they are when their page ends. */
  count(): void {
    this.#table.count(this.#countGroup);
  }

  /** Writes what is left, and has it counted; nothing is added from then on. */
  end(): UsageBatchContent {
    this.#endPage();
    return { lines: this.#lines, sums: this.#sums.sums() };
  }

  readonly #countGroup = (sums: CallGroupSums): CallTimes => {
    const { keyId, model } = sums.group;
    addGroup(this.#sums.totalsOf(this.#table.at, keyId, model), sums);
    return this.#record(countedOf(sums), sums.calls);
  };

  #endPage(): void {
    const table = this.#table;
    if (table.length === 0) return;
    table.count(this.#countGroup);
    this.#lines.push({ at: table.at, value: writePage(table) });
    table.end();
  }
}

/** As they are counted in the metrics. Without spreads, which took ten times as long where each call has another key. */
function countedOf(sums: CallGroupSums): CountedCalls {
  const { keyId, protocol, model, status, outcome, tokensKnown } = sums.group;
  return {
    keyId,
    protocol,
    model,
    status,
    outcome,
    bytesIn: sums.bytesIn,
    bytesOut: sums.bytesOut,
    costNanoUsd: sums.costNanoUsd,
    usage: tokensKnown === 'none' ? null : tokensOf(sums),
  };
}

function tokensOf(sums: CallGroupSums): TokenCounts {
  return {
    input: sums.inputTokens,
    output: sums.outputTokens,
    cached: sums.cachedTokens,
    reasoning: sums.reasoningTokens,
  };
}
