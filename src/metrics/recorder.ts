import type { Target } from '../config/types.js';
import type { Usage } from '../conversation/usage.js';
import { atOnce, type Steps } from '../wire/steps.js';
import { type CallRecord, isCall } from './call-record.js';
import { type CounterName, noLabel, otherLabel } from './families.js';
import { type GaugeReadings, gaugeSteps, targetLabel } from './gauges.js';
import type { AttemptResult } from './results.js';
import { noPlace } from './series.js';
import { type MetricsSnapshot, snapshotSteps } from './snapshot.js';
import {
  CallHistograms,
  type CallTimes,
  createTables,
  defaultCaps,
  type SeriesCaps,
  type Tables,
  type TimeTables,
} from './tables.js';

/**
 * Members whose loss is counted by name, the last name of a path alone; all others are one. A client is free to invent
 * names, and these are the ones that clients of the text protocols send, and that their upstreams answer with.
 */
const counted: ReadonlySet<string> = new Set([
  ...['cache_control', 'citations', 'context_management', 'defer_loading', 'eager_input_streaming', 'name'],
  ...[
    'service_tier',
    'metadata',
    'prompt_cache_breakpoint',
    'prompt_cache_key',
    'prompt_cache_options',
    'prompt_cache_retention',
    'store',
  ],
  ...['temperature', 'top_p', 'top_k', 'seed', 'presence_penalty', 'frequency_penalty', 'verbosity', 'user'],
  ...['user_id', 'parallel_tool_calls', 'disable_parallel_tool_use', 'strict', 'detail', 'truncation'],
  ...['max_tool_calls', 'include', 'phase', 'client_metadata', 'prediction', 'moderation'],
  ...['reasoning_content', 'signature', 'encrypted_content', 'thoughtSignature', 'web_search_options'],
  ...['topP', 'topK', 'presencePenalty', 'frequencyPenalty', 'mediaResolution', 'safetySettings', 'labels'],
  ...['allowed_domains', 'blocked_domains', 'user_location', 'max_uses', 'search_context_size'],
  ...['external_web_access', 'excludeDomains', 'tool_choice', 'server_tool_use', 'web_search_tool_result'],
  ...['anyOf', 'oneOf', 'allOf', 'additionalProperties', 'pattern', 'format', 'multipleOf'],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'],
  ...['minLength', 'maxLength', 'minItems', 'maxItems', 'uniqueItems'],
  // Of answers.
  ...['web_search_call', 'annotations', 'logprobs', 'stop_sequence', 'groundingChunks', 'groundingSupports'],
  ...['inlineData', 'executableCode', 'codeExecutionResult', 'toolCall', 'toolResponse', 'audio'],
  ...['code_execution_tool_result', 'bash_code_execution_tool_result', 'web_fetch_tool_result'],
  ...['mcp_tool_use', 'mcp_tool_result', 'tool_search_tool_result', 'container_upload', 'compaction'],
  ...['file_search_call', 'code_interpreter_call', 'image_generation_call', 'mcp_call', 'shell_call'],
  ...[
    'googleSearch',
    'web_search',
    'file_search',
    'code_interpreter',
    'mcp',
    'tool_search',
    'image_generation',
  ],
]);

/** The label value for a name of `LeftOut`. */
function leftOutLabel(name: string): string {
  const last = name.slice(name.lastIndexOf('.') + 1);
  return counted.has(last) ? last : otherLabel;
}

/** A target is another object after each reload, and its name then the same. */
const targetNames = new WeakMap<Target, string>();

/** Upstream and model there, as people read it; made once for each target. */
export function targetName(target: Target): string {
  let name = targetNames.get(target);
  if (name === undefined) {
    name = targetLabel(target.upstream.name, target.model);
    targetNames.set(target, name);
  }
  return name;
}

/** What is counted of calls that have ended alike, but for their times: of each, and the sums of them all. */
export interface CountedCalls
  extends Pick<
    CallRecord,
    'keyId' | 'protocol' | 'model' | 'status' | 'bytesIn' | 'bytesOut' | 'costNanoUsd' | 'outcome'
  > {
  /** Null where no tokens are counted. */
  readonly usage: TokenCounts | null;
}

export type TokenCounts = Pick<Usage, 'input' | 'output' | 'cached' | 'reasoning'>;

/** What one worker counts. Only `snapshot` costs more than some look-ups. */
export interface Recorder {
  /** Counts a call that has ended, once. */
  record(call: CallRecord): void;
  /** Counts the members of a request or an answer that its translation left out. @param names see `LeftOut` */
  recordLeftOut(names: readonly string[], direction: 'request' | 'answer'): void;
  /** Counts calls that have ended alike, once, and keeps nothing of what it is told. @returns what counts their times */
  recordSums(sums: CountedCalls, calls: number): CallTimes;
  /** Counts an attempt at a target that has ended. */
  recordAttempt(target: Target, result: AttemptResult): void;
  /** Counts the time from the beginning of an attempt to the head of its answer. @param ms milliseconds */
  recordFirstByte(target: Target, ms: number): void;
  /** Counts an attempt at a target that follows another one of the same call. */
  recordRetry(target: Target): void;
  /** Adds to what is counted of anything else. @param a label of the family, as is `b`; none where it has none */
  count(family: CounterName, amount: number, a?: string, b?: string): void;
  /** All that was counted since it was last taken, as plain data. */
  snapshot(): MetricsSnapshot;
  /** The same for another process that adds up what it is told: it is forgotten here, and busy series get a place. */
  take(): MetricsSnapshot;
  /** Does that in steps: what is counted between two of them is in this snapshot or in the next one. One at a time. */
  takeSteps(): Steps<MetricsSnapshot>;
}

/** Of what is no call. */
const noTimes: CallTimes = { observe: () => {} };

/** For calls that are counted elsewhere. */
export const uncounted: Recorder['recordSums'] = () => noTimes;

/** What is known of a target once it was counted. */
class KnownTarget {
  readonly name: string;
  /** Place of the series of its attempts that went well, as nearly all do, and of that of their times. */
  ok = noPlace;
  firstByte = noPlace;
  /** Of the series that are counted in, when the places were noted. */
  #renewals = 0;
  #firstByteRenewals = 0;

  constructor(name: string) {
    this.name = name;
  }

  /** Forgets places that hold no more, for the series that are counted in have been renewed. */
  forgetPlaces(renewals: number, firstByteRenewals: number): void {
    if (renewals !== this.#renewals) this.ok = noPlace;
    if (firstByteRenewals !== this.#firstByteRenewals) this.firstByte = noPlace;
    this.#renewals = renewals;
    this.#firstByteRenewals = firstByteRenewals;
  }
}

/**
 * Counts from zero.
 * @param read is asked for the gauges with each snapshot
 * @param caps most series of a family; more share the label value `other`
 */
export function createRecorder(read: () => GaugeReadings, caps: SeriesCaps = defaultCaps): Recorder {
  const tables = createTables(caps);
  const { counters, histograms } = tables;
  let shortcuts = new Shortcuts(caps.numbers);
  const requests = counters.gateway_requests_total;
  const keyRequests = counters.gateway_key_requests_total;
  const tokens = counters.gateway_tokens_total;
  const requestBytes = counters.gateway_request_bytes_total;
  const responseBytes = counters.gateway_response_bytes_total;
  const leftOut = counters.gateway_left_out_total;
  const times: TimeTables = {
    duration: histograms.gateway_request_duration_seconds,
    firstByte: histograms.gateway_first_byte_seconds,
    own: histograms.gateway_own_seconds.numbered(0),
  };
  const recordSums = (sums: CountedCalls, calls: number): CallTimes => {
    const { usage, outcome } = sums;
    const protocol = sums.protocol ?? noLabel;
    const model = sums.model ?? noLabel;
    if (!isCall(outcome)) return correctCost(counters, model, sums.costNanoUsd);
    const key = sums.keyId ?? noLabel;
    const status = statusLabel(sums.status);
    const known = shortcuts.ofCall(protocol, model);
    const ending = known.placeOf(status, outcome);
    const place = requests.addAt(ending, calls, protocol, model, status, outcome);
    if (ending !== place) known.remember(status, outcome, place);

    const ofKey = shortcuts.ofKey(key);
    const statusClass = typeof status === 'number' ? Math.floor(status / 100) : 0;
    ofKey[statusClass] = keyRequests.addAt(
      ofKey[statusClass] as number,
      calls,
      key,
      classes[statusClass] as string,
    );

    requestBytes.addAt(0, sums.bytesIn);
    responseBytes.addAt(0, sums.bytesOut);
    if (usage !== null) {
      known.input = tokens.addAt(known.input, usage.input, model, 'input');
      known.output = tokens.addAt(known.output, usage.output, model, 'output');
      known.cached = tokens.addAt(known.cached, usage.cached, model, 'cached');
      known.reasoning = tokens.addAt(known.reasoning, usage.reasoning, model, 'reasoning');
    }
    known.cost = counters.gateway_cost_usd_total.addAt(known.cost, sums.costNanoUsd, model);
    known.times ??= new CallHistograms(times, protocol, model);
    return known.times;
  };

  function* takeSteps(): Steps<MetricsSnapshot> {
    const gauges = yield* gaugeSteps(read(), caps);
    noteOverflow(tables);
    // What overflows from here on is told with the next one.
    for (const { series } of [...Object.values(counters), ...Object.values(histograms)])
      series.overflowed = 0;
    return yield* snapshotSteps(tables, gauges, undefined, (table) => {
      table.clear();
      if (table.renew()) shortcuts = new Shortcuts(caps.numbers);
    });
  }

  return {
    record(call) {
      recordSums(call, 1).observe(call.durationMs, call.firstByteMs, call.ownMs);
    },
    recordLeftOut(names, direction) {
      for (const name of names) leftOut.add(1, leftOutLabel(name), direction);
    },
    recordSums,
    ...targetRecorder(tables),
    count: (family, amount, a, b) => counters[family].add(amount, a, b),
    snapshot() {
      noteOverflow(tables);
      return atOnce(snapshotSteps(tables, atOnce(gaugeSteps(read(), caps))));
    },
    take: () => atOnce(takeSteps()),
    takeSteps,
  };
}

/** What counts attempts at targets. */
function targetRecorder({
  counters,
  histograms,
}: Tables): Pick<Recorder, 'recordAttempt' | 'recordFirstByte' | 'recordRetry'> {
  const attempts = counters.gateway_upstream_attempts_total;
  const retries = counters.gateway_retries_total;
  const firstBytes = histograms.gateway_target_first_byte_seconds;
  // A target is another object after each reload, and its name then the same.
  const knownTargets = new WeakMap<Target, KnownTarget>();
  const knownOf = (target: Target): KnownTarget => {
    let known = knownTargets.get(target);
    if (known === undefined) {
      known = new KnownTarget(targetName(target));
      knownTargets.set(target, known);
    }
    known.forgetPlaces(attempts.series.renewals, firstBytes.series.renewals);
    return known;
  };
  return {
    recordAttempt(target, result) {
      const known = knownOf(target);
      if (result === 'ok') known.ok = attempts.addAt(known.ok, 1, known.name, result);
      else attempts.add(1, known.name, result);
    },
    recordFirstByte(target, ms) {
      const known = knownOf(target);
      const { series } = firstBytes;
      if (known.firstByte === noPlace) known.firstByte = series.placeOf(known.name);
      firstBytes.numbered(series.numberAt(known.firstByte)).observe(ms / 1000);
    },
    recordRetry: (target) => retries.add(1, knownOf(target).name),
  };
}

/** Counts what puts the price of earlier calls right: counters never fall. */
function correctCost(
  { gateway_cost_usd_total: cost, gateway_cost_given_back_usd_total: givenBack }: Tables['counters'],
  model: string,
  nanoUsd: number,
): CallTimes {
  if (nanoUsd < 0) givenBack.add(-nanoUsd, model);
  else cost.add(nanoUsd, model);
  return noTimes;
}

/** Brings the counter of what had no series of its own up to date. */
function noteOverflow({ counters, histograms }: Tables): void {
  const { series: families, values } = counters.gateway_metrics_overflow_total;
  for (const [name, { series }] of [...Object.entries(counters), ...Object.entries(histograms)]) {
    if (series !== families && series.overflowed > 0) values[families.find(name)] = series.overflowed;
  }
}

/** A status as it is looked up. There are never more than 501 of them, whatever an upstream answers. */
function statusLabel(status: number): number | string {
  return status >= 100 && status < 600 && Number.isInteger(status) ? status : noLabel;
}

/** By the first digit of a status. */
const classes = [noLabel, '1xx', '2xx', '3xx', '4xx', '5xx'];

/** Status and outcome of most calls are among the first few of their model. */
const mostEndings = 8;
/** Classes of a status: none, and 1xx to 5xx. */
const classCount = 6;
/** How calls for a model by a protocol have ended, with the place of the series of those. */
interface Ending {
  readonly status: number | string;
  readonly outcome: string;
  readonly place: number;
}

/** The places of the series that calls for one model by one protocol count in, once they are known. */
class CallShortcut {
  readonly endings: Ending[] = [];
  input = noPlace;
  output = noPlace;
  cached = noPlace;
  reasoning = noPlace;
  cost = noPlace;
  times: CallHistograms | null = null;

  /** The place of a series of requests, or `noPlace`. */
  placeOf(status: number | string, outcome: string): number {
    const { endings } = this;
    for (let i = 0; i < endings.length; i++) {
      const ending = endings[i] as Ending;
      if (ending.status === status && ending.outcome === outcome) return ending.place;
    }
    return noPlace;
  }

  /** Notes the place that goes with them, for as long as there is room. */
  remember(status: number | string, outcome: string, place: number): void {
    if (this.endings.length < mostEndings) this.endings.push({ status, outcome, place });
  }

  /** Makes it as new. */
  forget(): void {
    this.endings.length = 0;
    this.input = noPlace;
    this.output = noPlace;
    this.cached = noPlace;
    this.reasoning = noPlace;
    this.cost = noPlace;
    this.times = null;
  }
}

/** Pairs of protocol and model whose places are remembered, about 400 bytes each. */
const mostPairs = 8192;

/**
 * Spares most calls most look-ups: a dozen of them, one for each label of each family, cost three times as much. Holds
 * no counts. A pair of protocol and model that comes when there are many finds nothing known, each time anew.
 */
class Shortcuts {
  readonly #mostKeys: number;
  readonly #calls = new Map<string, Map<string, CallShortcut>>();
  #callCount = 0;
  readonly #keys = new Map<string, Int32Array>();
  readonly #noCall = new CallShortcut();
  /** Of any key for which there is no more room: it finds nothing known, each time anew. */
  readonly #noKey = new Int32Array(classCount);

  /** @param mostSeries of the family of keys */
  constructor(mostSeries: number) {
    this.#mostKeys = mostSeries;
  }

  /** Good until the next one is asked for. */
  ofCall(protocol: string, model: string): CallShortcut {
    return this.#calls.get(protocol)?.get(model) ?? this.#addCall(protocol, model);
  }

  /** The places of the series of a key by the class of a status. */
  ofKey(key: string): Int32Array {
    return this.#keys.get(key) ?? this.#addKey(key);
  }

  #addCall(protocol: string, model: string): CallShortcut {
    if (this.#callCount >= mostPairs) {
      this.#noCall.forget();
      return this.#noCall;
    }
    let models = this.#calls.get(protocol);
    if (models === undefined) {
      models = new Map();
      this.#calls.set(protocol, models);
    }
    const made = new CallShortcut();
    models.set(model, made);
    this.#callCount++;
    return made;
  }

  #addKey(key: string): Int32Array {
    if (this.#keys.size >= this.#mostKeys) return this.#noKey.fill(noPlace);
    const made = new Int32Array(classCount).fill(noPlace);
    this.#keys.set(key, made);
    return made;
  }
}
