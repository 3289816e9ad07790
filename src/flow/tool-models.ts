import type { Upstream } from '../config/types.js';
import { OPEN_BRACE } from '../wire/bytes.js';
import { escapesWith, hasEscape } from '../wire/escapes.js';
import { isList, isObject, memberError, parseJson } from '../wire/json.js';
import { elementsOf } from '../wire/json-scan.js';
import { contains, type Needle, needleOf, skipSpace, withoutMembers } from '../wire/json-skip.js';
import { foldName, MemberGuard } from '../wire/member-guard.js';
import { hasRepeatedNames } from '../wire/repeated-names.js';
import { itemsMember, toolsMember } from '../wire/routed-members.js';
import type { ResolvedCall } from './call.js';
import { closedModelError } from './inner-model.js';
import { getsUnknown } from './resolve.js';

/** Prefix of the types of OpenRouter's tools (https://openrouter.ai/docs/guides/features/server-tools/fusion). */
const ofOpenRouter = 'openrouter:';
/**
 * The JSON of a tool that a model runs has one of these, unless its letters are escaped: another model that gives advice, with
 * a date (https://platform.claude.com/docs/en/agents-and-tools/tool-use/advisor-tool), or one that makes images.
 */
const toolMarks: readonly Needle[] = [
  { whole: Buffer.from('advisor_2'), part: Buffer.from('_2'), partAt: 'advisor'.length },
  needleOf('image_generation'),
  needleOf(ofOpenRouter),
];
/** Escapes of characters of the marks: `2`, `:`, `_` and letters. Most in the descriptions of tools are of others. */
const escapesOfMarks = escapesWith('32', '3a', '5f', '6', '7');
/** Most tools that are read. No upstream takes as many. */
const mostTools = 4096;
/** Most models that the tools of a request may name: each is looked up at each upstream. */
const mostNames = 256;
const ofTool: ReadonlySet<string> = new Set(['type', 'model', 'parameters']);
const ofHolder: ReadonlySet<string> = new Set([toolsMember]);
const ofBody: ReadonlySet<string> = new Set([itemsMember]);
/** No model runs a tool of some types, whose other members do not matter. */
const guardOfType = new MemberGuard({ reads: ['type'] });
const guardOfTool = new MemberGuard({ reads: [...ofTool] });
const guardOfItem = new MemberGuard({ reads: [...ofHolder] });

/**
 * Refuses a call whose tools are run by a model of the config that its key may not use. Translations name no such model.
 * @throws {GatewayError} `model_not_found` for such a model, and of status 400 for a tool that parsers may read differently, or
 * for too many of them or of their models
 */
export function refuseClosedToolModels(call: ResolvedCall): void {
  const { tools, itemTools } = call.checkedBody();
  const reached = call.model.targets.filter((target) => getsUnknown(call, target));
  if (reached.length === 0) return;
  const upstreams = new Set(reached.map(({ upstream }) => upstream));
  const judged = new Set<string>();
  const judge = (list: Buffer): void =>
    judgeTools(list, (name) => {
      if (judged.has(name)) return;
      if (judged.size === mostNames)
        throw memberError(
          'invalid_value',
          'tools',
          `The tools of the request name more than ${mostNames} models: name fewer.`,
        );
      judged.add(name);
      judgeModel(call, upstreams, name);
    });
  const body = call.wholeBody();
  // The span in a body that had to be parsed is all of it.
  if (tools !== null) judge(tools.start > 0 ? body.subarray(tools.start, tools.end) : toolsIn(body));
  if (!itemTools) return;
  for (const item of elementsIn(withoutMembers(body, ofBody)?.taken.get(itemsMember) ?? '')) {
    const bytes = objectIn(item);
    if (bytes === null) continue;
    guardOfItem.look(bytes, 0, 'input item');
    judge(toolsIn(bytes));
  }
}

/** @param tools JSON of a list of tools, or of one */
function judgeTools(tools: Buffer, judge: (name: string) => void): void {
  if (!mayBeRun(tools)) return;
  const text = tools.toString('utf8');
  let count = 0;
  for (const tool of [...elementsIn(text), text]) {
    const bytes = objectIn(tool);
    if (bytes === null || !mayBeRun(bytes)) continue;
    if (++count > mostTools)
      throw memberError('invalid_value', 'tools', `The request has more than ${mostTools} tools.`);
    judgeNames(bytes, judge);
  }
}

function toolsIn(holder: Buffer): Buffer {
  return Buffer.from(withoutMembers(holder, ofHolder)?.taken.get(toolsMember) ?? '');
}

function mayBeRun(tools: Buffer): boolean {
  return toolMarks.some((mark) => contains(tools, mark)) || hasEscape(tools, escapesOfMarks);
}

/** The name is sent on as it is. */
function judgeModel({ key, running }: ResolvedCall, upstreams: ReadonlySet<Upstream>, name: string): void {
  for (const upstream of upstreams) {
    const error = closedModelError(name, toolsMember, 'run a tool', {
      snapshot: running.snapshot,
      key,
      upstream,
    });
    if (error !== null) throw error;
  }
}

/** Judges the names of the models that run a tool. */
function judgeNames(tool: Buffer, judge: (name: string) => void): void {
  guardOfType.look(tool, 0, 'tool');
  const taken = withoutMembers(tool, ofTool)?.taken;
  const [type, model] = ['type', 'model'].map((name) => parseJson(taken?.get(name) ?? 'null'));
  if (typeof type !== 'string' || type === 'function' || type === 'custom') return;
  guardOfTool.look(tool, 0, 'tool');
  judgeIn(model, true, judge);
  if (!type.startsWith(ofOpenRouter)) return;
  const text = taken?.get('parameters') ?? 'null';
  const parameters = parseJson(text);
  if (parameters === undefined || hasRepeatedNames(Buffer.from(text))) throw unclearParameters;
  judgeIn(parameters, false, judge);
}

const unclearParameters = memberError(
  'invalid_request_body',
  'tools',
  `The 'parameters' of a tool have a name twice, and parsers differ on which one counts, or they are too large to read: ` +
    'send fewer, and each name once.',
);

/**
 * Judges the names of models at any depth: tools of OpenRouter may have others for their own models.
 * @param isName whether the texts in the value name models
 */
function judgeIn(value: unknown, isName: boolean, judge: (name: string) => void): void {
  if (typeof value === 'string') {
    if (isName && value !== '') judge(value);
  } else if (isList(value)) {
    for (const each of value) judgeIn(each, isName, judge);
  } else if (isObject(value)) {
    for (const [name, inner] of Object.entries(value)) judgeIn(inner, isName || namesModels(name), judge);
  }
}

/** Whether a member names models, such as `model` and `analysis_models`. */
function namesModels(member: string): boolean {
  const name = foldName(member);
  return name.endsWith('model') || name.endsWith('models');
}

function elementsIn(text: string): readonly string[] {
  return elementsOf(Buffer.from(text)) ?? [];
}

/** Returns the bytes of a JSON object without white space before it; null for other JSON. */
function objectIn(text: string): Buffer | null {
  const bytes = Buffer.from(text);
  const open = skipSpace(bytes, 0);
  return bytes[open] === OPEN_BRACE ? bytes.subarray(open) : null;
}
