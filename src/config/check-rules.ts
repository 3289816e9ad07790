import { type TextProtocolName, textProtocols } from '../conversation/request.js';
import { clash, eachObject, type MemberRule, placesOf } from '../wire/member-edits.js';
import { foldName } from '../wire/member-guard.js';
import { steeringMembers } from '../wire/routed-members.js';
import { passHeaderProblem, refusedHeaders, token } from './headers.js';
import { presetOf, presets } from './presets.js';
import { propertiesOf, propertyOf, type Report, textsOf } from './problem.js';
import { memberPath, namedRules } from './rules.js';
import type { Protocol, UpstreamKind } from './types.js';
import { kindTraits, nativeProtocols, translationProtocol } from './upstream-kinds.js';

type Path = readonly (string | number)[];

/** Where rules stand, and what they apply to. */
interface Place {
  /** Path of the upstream or target. */
  readonly path: Path;
  /** Kind of the upstream. Undefined if it has no valid one. */
  readonly kind: UpstreamKind | undefined;
  /** Protocols of the model. Null for an upstream, which may serve several models. */
  readonly protocols: readonly Protocol[] | null;
  /** `responses` of the target. Any value. */
  readonly responses: unknown;
  /** `keyHeader` of the upstream. Any value. */
  readonly keyHeader: unknown;
}

const deepest = 6;
const mostMembers = 64;
const longestValue = 16_384;

/** Members with which the gateway routes and counts calls, and answers them as clients expect. */
const ownMembers: ReadonlyMap<string, string> = new Map(
  [
    ['model', 'by it the gateway routes; "model" of the target sets it'],
    ['stream', 'by it the gateway knows how the answer comes'],
    ['stream_options', 'by it the usage of streams is asked for; see "injectUsage"'],
    ['background', 'an answer in the background is not metered'],
  ].map(([name = '', reason = '']) => [foldName(name), reason]),
);
/** Member of a body that contains the client's own words. */
const ownWords: Readonly<Record<TextProtocolName, string>> = {
  chat: 'messages',
  responses: 'input',
  messages: 'messages',
  generateContent: 'contents',
};
/**
 * Members that must not be added to a body. The number of answers is counted, and a client's words are checked under
 * their own names.
 */
const neverMade: ReadonlyMap<string, string> = new Map(
  [
    ['n', 'the gateway counts the answers that the client asks for'],
    ...Object.values(ownWords).map((name) => [name, 'what a client says is checked under its own name']),
  ].map(([name = '', reason = '']) => [foldName(name), reason]),
);
const steering = new Set(steeringMembers.map(foldName));
const credentials = new Set(
  ['api_key', 'extra_headers', 'user_config', 'litellm_credential_name'].map(foldName),
);

/** Protocols without a JSON body, and protocols of text. */
const bodiless: readonly Protocol[] = ['video', 'realtime'];
const texts: readonly Protocol[] = [...textProtocols, 'completions'];

/**
 * Checks the rules and the preset of an upstream or target. Accepts any shape, because the schema reports a wrong one.
 */
export function checkRules(report: Report, holder: unknown, place: Place): void {
  const preset = propertyOf(holder, 'preset');
  if (typeof preset === 'string' && preset !== '') checkPreset(report, preset, place);
  const rules = propertyOf(holder, 'rules');
  const at = (...rest: Path): Path => [...place.path, 'rules', ...rest];
  checkMembers(report, rules, at);
  checkHeaders(report, propertyOf(rules, 'headers'), at, place.keyHeader);
  if (place.kind !== undefined) checkUse(report, rules, at, { ...place, kind: place.kind });
}

function checkPreset(report: Report, name: string, { path, kind }: Place): void {
  const at = [...path, 'preset'];
  const preset = presetOf(name);
  if (preset === null) report.addUnknown(at, 'preset', name, Object.keys(presets));
  else if (kind !== undefined && kind !== 'simulator' && !preset.kinds.includes(kind))
    report.add(at, `is for upstreams of kind ${preset.kinds.join(' or ')}, and this one's is ${kind}`);
}

interface Named {
  readonly path: Path;
  readonly rule: MemberRule;
}

function checkMembers(report: Report, rules: unknown, at: (...rest: Path) => Path): void {
  const found = namedRules(rules).map((named) => ({ path: at(...named.at), rule: named.rule }));
  if (found.length > mostMembers) report.add(at(), `name at most ${mostMembers} members`);
  for (const { path, rule } of found) {
    const problem =
      placesOf(rule)
        .map(pathProblem)
        .find((each) => each !== null) ?? ruleProblem(rule);
    if (problem != null) report.add(path, problem);
  }
  found.forEach(({ path, rule }, index) => {
    const other = found.slice(0, index).find((before) => clash(before.rule, rule));
    if (other !== undefined) report.add(path, `cannot apply beside ${nameOf(other)}`);
  });
  for (const [member, to] of propertiesOf(propertyOf(rules, 'rename'))) {
    if (typeof to !== 'string' || to === '') continue;
    const [from, target] = [memberPath(member), memberPath(to)];
    const isBeside = from.slice(0, -1).join('.') === target.slice(0, -1).join('.');
    if (!isBeside)
      report.add(at('rename', member), 'must stay in its object: give the new name with the same path');
  }
}

function nameOf({ path }: Named): string {
  return `"${path.at(-2)}" of the same member, or of one that holds it or is in it`;
}

function pathProblem(path: readonly string[]): string | null {
  const names = path.filter((name) => name !== eachObject);
  if (names.includes(''))
    return 'a member is named by names with dots between them, and one of the objects in a list as in "list[].name"';
  if (names.length > deepest) return `a member may lie at most ${deepest} levels deep`;
  const reason = ownMembers.get(foldName(path[0] ?? ''));
  return reason === undefined ? null : `may not be changed: ${reason}`;
}

function ruleProblem(rule: MemberRule): string | null {
  const isInList = rule.path.includes(eachObject);
  if (isInList && rule.kind !== 'drop' && rule.kind !== 'keep')
    return 'cannot apply: members of the objects in a list can only be dropped';
  if (rule.kind === 'clamp') return boundsProblem(rule.min, rule.max);
  if (rule.kind === 'set' && rule.json.length > longestValue)
    return `the JSON of a value may have at most ${longestValue} characters`;
  if (rule.kind !== 'set' && rule.kind !== 'rename') return null;
  const made = placesOf(rule).at(-1) ?? [];
  const name = foldName(made[0] ?? '');
  const reason = made.length === 1 ? neverMade.get(name) : undefined;
  if (reason !== undefined) return `may not be put into a body: ${reason}`;
  if (credentials.has(name))
    return 'may not be put into a body: it carries a credential; put it into apiKeys';
  if (rule.kind === 'rename' && steering.has(name))
    return 'may not be the new name of a member: by it a client could lead the upstream elsewhere';
  return null;
}

function boundsProblem(min: number | null, max: number | null): string | null {
  if (min === null && max === null) return 'needs a min or a max';
  return min !== null && max !== null && min > max ? 'has a min above its max' : null;
}

function checkHeaders(
  report: Report,
  headers: unknown,
  at: (...rest: Path) => Path,
  keyHeader: unknown,
): void {
  const named: [Path, string, string | null][] = [
    ...propertiesOf(propertyOf(headers, 'set')).map(([field]): [Path, string, string | null] => {
      const isKey = field.toLowerCase() === keyHeader;
      const reason = isKey ? 'apiKeys are sent there' : refusedHeaders.get(field.toLowerCase());
      return [
        at('headers', 'set', field),
        field,
        reason === undefined ? null : `may not be set here: ${reason}`,
      ];
    }),
    ...textsOf(propertyOf(headers, 'pass')).map(([index, field]): [Path, string, string | null] => {
      const reason = passHeaderProblem(field.toLowerCase());
      return [at('headers', 'pass', index), field, reason === null ? null : `may not be passed: ${reason}`];
    }),
    ...textsOf(propertyOf(headers, 'drop')).map(([index, field]): [Path, string, string | null] => {
      const reason = refusedHeaders.get(field.toLowerCase());
      const isVersion = field.toLowerCase() === 'anthropic-version';
      const needed = isVersion ? 'an upstream of kind messages needs it' : reason;
      return [
        at('headers', 'drop', index),
        field,
        needed === undefined ? null : `may not be left out: ${needed}`,
      ];
    }),
  ];
  const seen = new Set<string>();
  for (const [path, field, problem] of named) {
    if (field === '') continue;
    if (!token.test(field)) report.add(path, 'is not a valid header name');
    else if (problem !== null) report.add(path, problem);
    else if (seen.has(field.toLowerCase())) report.add(path, 'is named twice among the headers');
    seen.add(field.toLowerCase());
  }
}

/** Reports rules that can never change anything for the upstream or model. */
function checkUse(
  report: Report,
  rules: unknown,
  at: (...rest: Path) => Path,
  place: Place & { readonly kind: UpstreamKind },
): void {
  const { kind, protocols } = place;
  const cannot = (name: string, reason: string): void => {
    if (propertyOf(rules, name) !== undefined) report.add(at(name), `cannot apply: ${reason}`);
  };
  const { writesBodies, isOpenaiCompatible, hasBetas } = kindTraits[kind];
  const hasBody = !writesBodies && (protocols === null || protocols.some((each) => !bodiless.includes(each)));
  const hasText = !writesBodies && (protocols === null || protocols.some((each) => texts.includes(each)));
  const noBody = writesBodies
    ? `bodies for an upstream of kind ${kind} are written by the gateway`
    : `calls of ${(protocols ?? []).join(', ')} have no body in JSON that is passed on`;
  if (!hasBody) for (const name of ['drop', 'keep', 'set', 'rename', 'clamp']) cannot(name, noBody);
  if (!hasText) {
    for (const name of ['efforts', 'roles', 'sampling', 'thinking', 'fillReasoning'])
      cannot(name, 'it is about calls of text, of which there are none');
  } else {
    const forms = protocols === null ? null : textForms(kind, protocols, place.responses);
    if (forms !== null && [...forms].every((form) => form === 'completions'))
      for (const name of ['efforts', 'roles', 'fillReasoning'])
        cannot(name, 'calls of completions have none');
    if (kind !== 'simulator') checkThinking(report, propertyOf(rules, 'thinking'), at, { kind, forms });
  }
  if (!writesBodies && !isOpenaiCompatible && kind !== 'messages')
    cannot('fillReasoning', 'it is for upstreams of kind chat and messages');
  if (!hasBetas) cannot('betas', `an upstream of kind ${kind} has no header of betas`);
}

/** Returns the protocols in which a target receives its text calls. */
function textForms(
  kind: UpstreamKind,
  protocols: readonly Protocol[],
  responses: unknown,
): ReadonlySet<Protocol | null> {
  const taken = responses === true || responses === 'only' ? responses : false;
  const native = nativeProtocols(kind, taken);
  const offered = protocols.filter((protocol) => texts.includes(protocol));
  return new Set(offered.map((each) => (native.has(each) ? each : translationProtocol(kind, taken))));
}

function checkThinking(
  report: Report,
  form: unknown,
  at: (...rest: Path) => Path,
  { kind, forms }: { readonly kind: UpstreamKind; readonly forms: ReadonlySet<Protocol | null> | null },
): void {
  if (typeof form !== 'string') return;
  const wanted = form === 'adaptive' ? 'messages' : 'chat';
  if (kind !== wanted) report.add(at('thinking'), `cannot apply: ${form} is for upstreams of kind ${wanted}`);
  else if (forms?.has(wanted) === false)
    report.add(
      at('thinking'),
      `cannot apply: ${form} changes bodies of ${wanted}, and this target gets none (${[...forms].join(', ')})`,
    );
}
