import { GatewayError } from '../errors.js';
import { OPEN_BRACE } from '../wire/bytes.js';
import { listOf, memberError, objectOf, parseJson } from '../wire/json.js';
import { elementsOf } from '../wire/json-scan.js';
import { contains, type Needle, needleOf, skipSpace, withoutMembers } from '../wire/json-skip.js';
import { MemberGuard } from '../wire/member-guard.js';
import type { ResolvedCall } from './call.js';
import { innerModel } from './inner-model.js';

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
const escapeMark = Buffer.from('\\u');
/** Most tools that are read. No upstream takes as many. */
const mostTools = 4096;
const ofTool: ReadonlySet<string> = new Set(['type', 'model', 'parameters']);
const ofHolder: ReadonlySet<string> = new Set(['tools']);
const ofBody: ReadonlySet<string> = new Set(['input']);
const guardOfTool = new MemberGuard({
  reads: [...ofTool],
  within: { parameters: { reads: ['model', 'analysis_models'] } },
});
const guardOfItem = new MemberGuard({ reads: [...ofHolder] });

/**
 * Refuses a call whose tools are run by a model of the config that its key may not use.
 * @throws {GatewayError} `model_not_found` for such a model, and of status 400 for a tool that parsers may read differently, or
 * for too many
 */
export function refuseClosedToolModels(call: ResolvedCall): void {
  const { tools, itemTools } = call.checkedBody();
  if (tools === null && !itemTools) return;
  const body = call.wholeBody();
  // The span in a body that had to be parsed is all of it.
  if (tools !== null)
    judgeTools(call, tools.start > 0 ? body.subarray(tools.start, tools.end) : toolsIn(body));
  if (!itemTools) return;
  for (const item of elementsIn(withoutMembers(body, ofBody)?.taken.get('input') ?? '')) {
    const bytes = objectIn(item);
    if (bytes === null) continue;
    guardOfItem.look(bytes, 0, 'input item');
    judgeTools(call, toolsIn(bytes));
  }
}

/** @param tools JSON of a list of tools, or of one */
function judgeTools(call: ResolvedCall, tools: Buffer): void {
  if (!mayBeRun(tools)) return;
  const text = tools.toString('utf8');
  let count = 0;
  for (const tool of [...elementsIn(text), text]) {
    const bytes = objectIn(tool);
    if (bytes === null || !mayBeRun(bytes)) continue;
    if (++count > mostTools)
      throw memberError('invalid_value', 'tools', `The request has more than ${mostTools} tools.`);
    for (const name of namesIn(bytes)) judgeModel(call, name);
  }
}

function toolsIn(holder: Buffer): Buffer {
  return Buffer.from(withoutMembers(holder, ofHolder)?.taken.get('tools') ?? '');
}

function mayBeRun(tools: Buffer): boolean {
  return toolMarks.some((mark) => contains(tools, mark)) || tools.includes(escapeMark);
}

function judgeModel({ key, model, running }: ResolvedCall, name: string): void {
  for (const { upstream } of model.targets) {
    const named = innerModel(name, 'tools', 'run a tool', { snapshot: running.snapshot, key, upstream });
    if (named instanceof GatewayError) throw named;
  }
}

/** Returns the names of the models that run a tool. */
function namesIn(tool: Buffer): readonly string[] {
  guardOfTool.look(tool, 0, 'tool');
  const taken = withoutMembers(tool, ofTool)?.taken;
  const [type, model, parameters] = [...ofTool].map((name) => parseJson(taken?.get(name) ?? 'null'));
  if (typeof type !== 'string' || type === 'function' || type === 'custom') return [];
  const inner = objectOf(type.startsWith(ofOpenRouter) ? parameters : null);
  const names = [model, inner.model, ...listOf(inner.analysis_models)];
  return names.filter((name): name is string => typeof name === 'string' && name !== '');
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
