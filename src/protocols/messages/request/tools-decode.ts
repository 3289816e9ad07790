import type { ConversationRequest, Tool, ToolChoice } from '../../../conversation/request.js';
import { isObject, textOrNull } from '../../../wire/json.js';
import { wrongValue } from '../../../wire/reading.js';
import { untranslatable } from '../../unsupported.js';

type HostedTools = ConversationRequest['hostedTools'];

/**
 * Reads `tools`. Those with a type of their own, such as `web_search_20250305`, have schemas and runners that their
 * vendor alone has.
 * @throws {GatewayError} of status 400 for a tool without a name
 */
export function decodeTools(list: unknown): { readonly tools: Tool[]; readonly hostedTools: HostedTools } {
  const tools: Tool[] = [];
  const hostedTools: HostedTools[number][] = [];
  const entries: readonly unknown[] = Array.isArray(list) ? list : [];
  entries.forEach((tool, index) => {
    const at = `tools[${index}]`;
    if (!isObject(tool)) throw wrongValue(at, 'an object');
    const type = tool.type ?? 'custom';
    if (type !== 'custom') {
      hostedTools.push({ type: String(type), at });
      return;
    }
    const { name } = tool;
    if (typeof name !== 'string' || name === '') throw wrongValue(`${at}.name`, 'a name that is not empty');
    tools.push({
      name,
      description: textOrNull(tool.description),
      parameters: isObject(tool.input_schema) ? tool.input_schema : null,
      strict: typeof tool.strict === 'boolean' ? tool.strict : null,
    });
  });
  return { tools, hostedTools };
}

/**
 * Reads `tool_choice`, apart from what it says of parallel calls.
 * @throws {GatewayError} of status 400 for a choice that is none of the documented forms
 */
export function decodeToolChoice(choice: unknown): ToolChoice | null {
  if (choice === undefined || choice === null) return null;
  if (!isObject(choice)) throw wrongValue('tool_choice', "an object with a 'type'");
  switch (choice.type) {
    case 'auto':
    case 'none':
      return { mode: choice.type };
    case 'any':
      return { mode: 'required' };
    case 'tool':
      if (typeof choice.name !== 'string' || choice.name === '')
        throw wrongValue('tool_choice.name', "the tool's name");
      return { mode: 'named', name: choice.name };
    default:
      throw untranslatable('tool_choice', `of type '${String(choice.type)}'`);
  }
}

/** Whether calls may come several at once, as `tool_choice` says it: by the opposite. Null where it says nothing. */
export function decodeParallelCalls(choice: unknown): boolean | null {
  const disabled = isObject(choice) ? choice.disable_parallel_tool_use : null;
  return typeof disabled === 'boolean' ? !disabled : null;
}
