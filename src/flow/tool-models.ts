import { GatewayError } from '../errors.js';
import { OPEN_BRACE } from '../wire/bytes.js';
import { memberError, parseJson } from '../wire/json.js';
import { elementsOf } from '../wire/json-scan.js';
import { contains, type Needle, needleOf, skipSpace, withoutMembers } from '../wire/json-skip.js';
import { MemberGuard } from '../wire/member-guard.js';
import type { ResolvedCall } from './call.js';
import { innerModel } from './inner-model.js';

/**
 * The JSON of a tool that a model runs has one of these, unless its letters are escaped: another model that gives advice, with
 * a date (https://platform.claude.com/docs/en/agents-and-tools/tool-use/advisor-tool), or one that makes images.
 */
const toolMarks: readonly Needle[] = [
  { whole: Buffer.from('advisor_2'), part: Buffer.from('_2'), partAt: 'advisor'.length },
  needleOf('image_generation'),
];
const escapeMark = Buffer.from('\\u');
/** Most tools that are read. No upstream takes as many. */
const mostTools = 4096;
const ofTool: ReadonlySet<string> = new Set(['type', 'model']);
const ofHolder: ReadonlySet<string> = new Set(['tools']);
const ofBody: ReadonlySet<string> = new Set(['input']);
const guardOfTool = new MemberGuard({ reads: [...ofTool] });
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
    const { type, model } = membersOf(bytes);
    if (type === null || model === null || type === 'function' || type === 'custom') continue;
    judgeModel(call, model);
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

/** Returns the type and the model of a tool, each null without a text. */
function membersOf(tool: Buffer): { readonly type: string | null; readonly model: string | null } {
  guardOfTool.look(tool, 0, 'tool');
  const taken = withoutMembers(tool, ofTool)?.taken;
  const [type = null, model = null] = [...ofTool].map((name) => {
    const value: unknown = parseJson(taken?.get(name) ?? 'null');
    return typeof value === 'string' && value !== '' ? value : null;
  });
  return { type, model };
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
