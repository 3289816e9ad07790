/** A sample of the text format. */
interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A family with everything that belongs to it. */
export interface ParsedFamily {
  readonly help: string;
  readonly type: string;
  readonly samples: readonly Sample[];
}

const namePattern = /[a-zA-Z_:][a-zA-Z0-9_:]*/y;
const labelPattern = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"/y;
const valuePattern = / ([+-]?(?:\d+(?:\.\d+)?(?:e[+-]\d+)?|Inf)|NaN)$/y;
const headPattern = /^# HELP (\S+) ((?:[^\\\n]|\\[\\n])*)\n# TYPE (\S+) (counter|gauge|histogram)$/;

/**
 * Reads the text format, version 0.0.4, as strictly as it is meant: every family once, with its help and type first,
 * no series twice, buckets that ascend and cumulate.
 * @throws Error that says what is wrong
 */
export function parseText(text: string): Map<string, ParsedFamily> {
  if (!text.endsWith('\n')) throw new Error('the last line has no end');
  const families = new Map<string, ParsedFamily>();
  for (const block of text.split(/^(?=# HELP )/m)) {
    const lines = block.slice(0, -1).split('\n');
    const [, name = '', help = '', typed, type = ''] = headPattern.exec(lines.slice(0, 2).join('\n')) ?? [];
    if (name === '' || typed !== name)
      throw new Error(`no head of a family: ${lines.slice(0, 2).join(' | ')}`);
    if (families.has(name)) throw new Error(`${name} comes twice`);
    const samples = lines.slice(2).map(parseSample);
    const family = { help: unescaped(help), type, samples };
    checkSamples(name, family);
    families.set(name, family);
  }
  return families;
}

function parseSample(line: string): Sample {
  const fail = (): never => {
    throw new Error(`no sample: ${line}`);
  };
  const match = (pattern: RegExp, at: number): RegExpExecArray => {
    pattern.lastIndex = at;
    return pattern.exec(line) ?? fail();
  };
  const [name] = match(namePattern, 0);
  const labels: Record<string, string> = {};
  let at = name.length;
  if (line[at] === '{') {
    do {
      const [pair, label = '', value = ''] = match(labelPattern, at + 1);
      if (Object.hasOwn(labels, label)) fail();
      labels[label] = unescaped(value);
      at += 1 + pair.length;
    } while (line[at] === ',');
    if (line[at++] !== '}') fail();
  }
  const [, number = ''] = match(valuePattern, at);
  return { name, labels, value: Number(number.replace('Inf', 'Infinity')) };
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/g, (_, character: string) => (character === 'n' ? '\n' : character));
}

function checkSamples(name: string, { type, samples }: ParsedFamily): void {
  const series = samples.map(({ name: own, labels }) => JSON.stringify([own, Object.entries(labels).sort()]));
  if (new Set(series).size !== series.length) throw new Error(`${name} has a series twice`);
  if (type === 'histogram') {
    checkHistograms(name, samples);
    return;
  }
  for (const sample of samples) {
    if (sample.name !== name) throw new Error(`${sample.name} stands with ${name}`);
    if (type === 'counter' && !(sample.value >= 0)) throw new Error(`${name} is ${sample.value}`);
  }
}

/** Buckets up to `+Inf`, a sum and a count, for one series after the other. */
function checkHistograms(name: string, samples: readonly Sample[]): void {
  let at = 0;
  while (at < samples.length) {
    const own = JSON.stringify(withoutBound(samples[at] as Sample));
    let bound = Number.NEGATIVE_INFINITY;
    let count = 0;
    while (bound < Number.POSITIVE_INFINITY) {
      const bucket = samples[at++];
      if (bucket?.name !== `${name}_bucket`) throw new Error(`${name} lacks a bucket`);
      const next = Number(bucket.labels.le?.replace('Inf', 'Infinity'));
      if (!(next > bound) || bucket.value < count) throw new Error(`${name} does not ascend`);
      if (JSON.stringify(withoutBound(bucket)) !== own) throw new Error(`${name} mixes its series`);
      bound = next;
      count = bucket.value;
    }
    const [sum, total] = [samples[at++], samples[at++]];
    if (sum?.name !== `${name}_sum` || total?.name !== `${name}_count`) throw new Error(`${name} has no sum`);
    if (JSON.stringify(sum.labels) !== own || JSON.stringify(total.labels) !== own) {
      throw new Error(`${name} mixes its series`);
    }
    if (total.value !== count) throw new Error(`${name} counts ${total.value}, and ${count} in buckets`);
  }
}

function withoutBound({ labels: { le: _, ...labels } }: Sample): Record<string, string> {
  return labels;
}
