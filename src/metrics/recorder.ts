import type { Target } from '../config/types.js';
import type { Usage } from '../conversation/usage.js';
import { atOnce, type Steps } from '../wire/steps.js';
import { type CallRecord, isCall } from './call-record.js';
import { type CollectedMetrics, collectSteps } from './collected.js';
import { type CounterName, noLabel, otherLabel } from './families.js';
import { type GaugeReadings, gaugeSteps, targetLabel } from './gauges.js';
import type { AttemptResult } from './results.js';
import { noPlace } from './series.js';
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
 * Members whose loss is counted by name (the last name of a path); all others share one label. Clients are free to invent
 * names; these are the ones that clients of the text protocols send, and their upstreams return.
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
  ...['call_id', 'id'],
  ...['topP', 'topK', 'presencePenalty', 'frequencyPenalty', 'mediaResolution', 'safetySettings', 'labels'],
  ...['allowed_domains', 'blocked_domains', 'user_location', 'max_uses', 'search_context_size'],
  ...['external_web_access', 'excludeDomains', 'tool_choice', 'server_tool_use', 'web_search_tool_result'],
  ...['anyOf', 'oneOf', 'allOf', 'additionalProperties', 'pattern', 'format', 'multipleOf'],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'],
  ...['minLength', 'maxLength', 'minItems', 'maxItems', 'uniqueItems'],
  // Members of answers.
  ...[
    'web_search_call',
    'annotations',
    'logprobs',
    'stop_sequence',
    'tool_calls',
    'groundingChunks',
    'groundingSupports',
  ],
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

/**
 * Values by target object, of which a reload creates new ones. Keeps those of the running config and of the one before.
 * A single map would keep the targets of every config until V8 marks its heap, and copying it when it is full takes
 * milliseconds for those of several configs with thousands of targets.
 */
class TargetCache<Value> {
  readonly #make: (target: Target) => Value;
  #running = new WeakMap<Target, Value>();
  #former = new WeakMap<Target, Value>();

  constructor(make: (target: Target) => Value) {
    this.#make = make;
  }

  get(target: Target): Value {
    return this.#running.get(target) ?? this.#meet(target);
  }

  #meet(target: Target): Value {
    const value = this.#former.get(target) ?? this.#make(target);
    this.#running.set(target, value);
    return value;
  }

  /** Called when another config is in force. */
  renew(): void {
    this.#former = this.#running;
    this.#running = new WeakMap();
  }
}

const targetNames = new TargetCache(({ upstream, model }) => targetLabel(upstream.name, model));

/** The readable name of a target: its upstream and model. Built once per target. */
export function targetName(target: Target): string {
  return targetNames.get(target);
}

/** Ended calls with the same labels, as counted without their times: the common members, and the sums over all. */
export interface CountedCalls
  extends Pick<
    CallRecord,
    'keyId' | 'protocol' | 'model' | 'status' | 'bytesIn' | 'bytesOut' | 'costNanoUsd' | 'outcome'
  > {
  /** Null if no tokens are counted. */
  readonly usage: TokenCounts | null;
}

export type TokenCounts = Pick<Usage, 'input' | 'output' | 'cached' | 'reasoning'>;

/** The metrics of one worker. Only collecting them costs more than a few lookups. */
export interface Recorder {
  /** Counts an ended call, once. */
  record(call: CallRecord): void;
  /** Counts the members of a request or an answer that its translation left out. @param names see `LeftOut` */
  recordLeftOut(names: readonly string[], direction: 'request' | 'answer'): void;
  /** Counts ended calls with the same labels, once, without keeping `sums`. @returns a counter of their times */
  recordSums(sums: CountedCalls, calls: number): CallTimes;
  /** Counts an ended attempt at a target. */
  recordAttempt(target: Target, result: AttemptResult): void;
  /** Counts the time from the start of an attempt to the head of its answer. @param ms milliseconds */
  recordFirstByte(target: Target, ms: number): void;
  /** Counts an attempt at a target that follows another attempt of the same call. */
  recordRetry(target: Target): void;
  /** Called when another config is in force. Lets go of the targets of configs before the last. */
  renewTargets(): void;
  /** Adds to any other counter. @param a first label of the family; `b` is the second. Omit what it does not have. */
  count(family: CounterName, amount: number, a?: string, b?: string): void;
  /** Everything counted since the last `take`, as plain data. */
  collect(): CollectedMetrics;
  /** The same for a process that adds them up: clears the counts here, and lets busy series get numbers. */
  take(): CollectedMetrics;
  /** `take` in steps: counts between two steps are in these metrics or in the next. Runs one at a time. */
  takeSteps(): Steps<CollectedMetrics>;
}

/** For records that are not calls. */
const noTimes: CallTimes = { observe: () => {} };

/** For calls that are counted elsewhere. */
export const uncounted: Recorder['recordSums'] = () => noTimes;

/** The cached places of a target's series. */
class KnownTarget {
  readonly name: string;
  /** Places of the series of its successful attempts, which nearly all are, and of their first-byte times. */
  ok = noPlace;
  firstByte = noPlace;
  /** `renewals` of the series when the places were cached. */
  #renewals = 0;
  #firstByteRenewals = 0;

  constructor(name: string) {
    this.name = name;
  }

  /** Clears places that a renewal of the series has made invalid. */
  forgetPlaces(renewals: number, firstByteRenewals: number): void {
    if (renewals !== this.#renewals) this.ok = noPlace;
    if (firstByteRenewals !== this.#firstByteRenewals) this.firstByte = noPlace;
    this.#renewals = renewals;
    this.#firstByteRenewals = firstByteRenewals;
  }
}

/**
 * Creates a recorder with all counts at zero.
 * @param read reads the gauges each time that the metrics are collected
 * @param caps most series of a family; further ones share the label value `other`
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

  function* takeSteps(): Steps<CollectedMetrics> {
    const gauges = yield* gaugeSteps(read(), caps);
    countOverflow(tables);
    // Overflows from here on are reported with the next metrics.
    for (const { series } of [...Object.values(counters), ...Object.values(histograms)])
      series.overflowed = 0;
    return yield* collectSteps(tables, gauges, undefined, (table) => {
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
    collect() {
      countOverflow(tables);
      return atOnce(collectSteps(tables, atOnce(gaugeSteps(read(), caps))));
    },
    take: () => atOnce(takeSteps()),
    takeSteps,
  };
}

/** Creates the functions that count attempts at targets. */
function targetRecorder({
  counters,
  histograms,
}: Tables): Pick<Recorder, 'recordAttempt' | 'recordFirstByte' | 'recordRetry' | 'renewTargets'> {
  const attempts = counters.gateway_upstream_attempts_total;
  const retries = counters.gateway_retries_total;
  const firstBytes = histograms.gateway_target_first_byte_seconds;
  const knownTargets = new TargetCache((target) => new KnownTarget(targetName(target)));
  const knownOf = (target: Target): KnownTarget => {
    const known = knownTargets.get(target);
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
    renewTargets() {
      knownTargets.renew();
      targetNames.renew();
    },
  };
}

/** Counts a correction of earlier calls' prices. Counters never fall, so a reduction has a counter of its own. */
function correctCost(
  { gateway_cost_usd_total: cost, gateway_cost_given_back_usd_total: givenBack }: Tables['counters'],
  model: string,
  nanoUsd: number,
): CallTimes {
  if (nanoUsd < 0) givenBack.add(-nanoUsd, model);
  else cost.add(nanoUsd, model);
  return noTimes;
}

/** Updates the counter of uses that had no series of their own. */
function countOverflow({ counters, histograms }: Tables): void {
  const { series: families, values } = counters.gateway_metrics_overflow_total;
  for (const [name, { series }] of [...Object.entries(counters), ...Object.entries(histograms)]) {
    if (series !== families && series.overflowed > 0) values[families.find(name)] = series.overflowed;
  }
}

/** The label of a status. There are at most 501 values, whatever an upstream answers. */
function statusLabel(status: number): number | string {
  return status >= 100 && status < 600 && Number.isInteger(status) ? status : noLabel;
}

/** Status classes by the first digit of a status. */
const classes = [noLabel, '1xx', '2xx', '3xx', '4xx', '5xx'];

/** Cached pairs of status and outcome per model: the first few cover most calls. */
const maxEndings = 8;
/** Classes of a status: none, and 1xx to 5xx. */
const classCount = 6;
/** A status and outcome of calls of one protocol and model, with the place of their series. */
interface Ending {
  readonly status: number | string;
  readonly outcome: string;
  readonly place: number;
}

/** The cached places of the series of one protocol and model. */
class CallShortcut {
  readonly endings: Ending[] = [];
  input = noPlace;
  output = noPlace;
  cached = noPlace;
  reasoning = noPlace;
  cost = noPlace;
  times: CallHistograms | null = null;

  /** The cached place of a series of requests, or `noPlace`. */
  placeOf(status: number | string, outcome: string): number {
    const { endings } = this;
    for (let i = 0; i < endings.length; i++) {
      const ending = endings[i] as Ending;
      if (ending.status === status && ending.outcome === outcome) return ending.place;
    }
    return noPlace;
  }

  /** Caches a place, if there is room. */
  remember(status: number | string, outcome: string, place: number): void {
    if (this.endings.length < maxEndings) this.endings.push({ status, outcome, place });
  }

  /** Clears all places. */
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

/** Most cached pairs of protocol and model, about 400 bytes each. */
const maxPairs = 8192;

/**
 * Caches places, so that most calls need few lookups: a dozen of them, one per label of each family, cost three times as
 * much. Holds no counts. Pairs of protocol and model beyond the bound are never cached.
 */
class Shortcuts {
  readonly #mostKeys: number;
  readonly #calls = new Map<string, Map<string, CallShortcut>>();
  #callCount = 0;
  readonly #keys = new Map<string, Int32Array>();
  readonly #noCall = new CallShortcut();
  /** For keys beyond the bound: always empty. */
  readonly #noKey = new Int32Array(classCount);

  /** @param mostSeries bound of the family with the key label */
  constructor(mostSeries: number) {
    this.#mostKeys = mostSeries;
  }

  /** Returns the places of a protocol and model; valid until the next call of this method. */
  ofCall(protocol: string, model: string): CallShortcut {
    return this.#calls.get(protocol)?.get(model) ?? this.#addCall(protocol, model);
  }

  /** Returns the places of a key's series by status class. */
  ofKey(key: string): Int32Array {
    return this.#keys.get(key) ?? this.#addKey(key);
  }

  #addCall(protocol: string, model: string): CallShortcut {
    if (this.#callCount >= maxPairs) {
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
