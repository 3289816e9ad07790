import type { TargetOptions } from '../../../conversation/codec.js';
import type { ConversationRequest, Tool, ToolChoice } from '../../../conversation/request.js';
import type { JsonObject } from '../../../wire/json.js';
import { refuseHostedTools, unsupportedSetting } from '../../unsupported.js';

export interface EncodedTools {
  /** Undefined where there are none. */
  readonly tools: readonly JsonObject[] | undefined;
  readonly toolChoice: JsonObject | undefined;
  /** The answer must be a call, which the upstream does not allow beside thinking. */
  readonly forced: boolean;
}

/**
 * Writes `tools` and `tool_choice`. A choice among some of the tools leaves out the others.
 * @throws {GatewayError} of status 400, naming the client's field, for tools that the protocol does not know
 */
export function encodeTools(request: ConversationRequest, target: TargetOptions): EncodedTools {
  refuseHostedTools(request, target, 'messages');
  const custom = request.tools.find((tool) => tool.custom !== undefined);
  if (custom !== undefined)
    throw unsupportedSetting(request, 'customTools', 'messages', `with the custom tool '${custom.name}'`);
  // The upstream refuses a choice where there is nothing to choose from.
  if (request.tools.length === 0) return { tools: undefined, toolChoice: undefined, forced: false };
  const choice = presentChoice(request);
  const tools =
    choice?.mode === 'allowed'
      ? request.tools.filter(({ name }) => choice.names.includes(name))
      : request.tools;
  const toolChoice = encodeToolChoice(choice, request.parallelCalls);
  const forced = toolChoice?.type === 'any' || toolChoice?.type === 'tool';
  return { tools: tools.map(encodeTool), toolChoice, forced };
}

/**
 * Leaves out of a choice the names that no tool has, since they may be of tools that were dropped: null for one that
 * names no other.
 */
function presentChoice({ tools, toolChoice }: ConversationRequest): ToolChoice | null {
  const has = (wanted: string) => tools.some(({ name }) => name === wanted);
  if (toolChoice?.mode === 'named') return has(toolChoice.name) ? toolChoice : null;
  if (toolChoice?.mode !== 'allowed') return toolChoice;
  const names = toolChoice.names.filter(has);
  return names.length === 0 ? null : { ...toolChoice, names };
}

function encodeTool({ name, description, parameters, strict }: Tool): JsonObject {
  return {
    name,
    description: description ?? undefined,
    input_schema: inputSchema(parameters),
    strict: strict === true ? true : undefined,
  };
}

/** The upstream wants the type to be said. */
function inputSchema(parameters: JsonObject | null): JsonObject {
  if (parameters === null) return { type: 'object', properties: {} };
  return parameters.type === undefined ? { type: 'object', ...parameters } : parameters;
}

function encodeToolChoice(choice: ToolChoice | null, parallelCalls: boolean | null): JsonObject | undefined {
  const single = parallelCalls === false ? true : undefined;
  switch (choice?.mode) {
    case undefined:
      return single === undefined ? undefined : { type: 'auto', disable_parallel_tool_use: true };
    case 'none':
      return { type: 'none' };
    case 'named':
      return { type: 'tool', name: choice.name, disable_parallel_tool_use: single };
    case 'required':
      return { type: 'any', disable_parallel_tool_use: single };
    case 'auto':
      return { type: 'auto', disable_parallel_tool_use: single };
    case 'allowed':
      return { type: choice.required ? 'any' : 'auto', disable_parallel_tool_use: single };
  }
}
