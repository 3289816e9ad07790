import type { TargetOptions } from '../../../conversation/codec.js';
import type { ConversationRequest, Tool, ToolChoice } from '../../../conversation/request.js';
import type { JsonObject } from '../../../wire/json.js';
import { refuseHostedTools, unsupportedSetting } from '../../unsupported.js';
import { encodeSchema } from '../schema-encode.js';

const noParameters: JsonObject = { type: 'object', properties: {} };

/**
 * Writes `tools`, or undefined where there are none; `strict` is dropped.
 * @throws {GatewayError} of status 400, naming the client's field, for tools that are no functions
 */
export function encodeTools(request: ConversationRequest, target: TargetOptions): JsonObject[] | undefined {
  const { tools } = request;
  refuseHostedTools(request, target, 'generateContent');
  const custom = tools.find((tool) => tool.custom !== undefined);
  if (custom !== undefined)
    throw unsupportedSetting(
      request,
      'customTools',
      'generateContent',
      `with the custom tool '${custom.name}', which takes free text,`,
    );
  if (tools.length === 0) return undefined;
  return [{ functionDeclarations: tools.map((tool) => encodeFunction(tool, target)) }];
}

/**
 * Writes `toolConfig`.
 * @throws {GatewayError} of status 400, naming the client's field, for a choice among no tools
 */
export function encodeToolChoice(request: ConversationRequest, choice: ToolChoice): JsonObject {
  // An empty list of names stands for all of them.
  if (choice.mode === 'allowed' && choice.names.length === 0)
    throw unsupportedSetting(request, 'toolChoice', 'generateContent', 'that allows no tool at all');
  return { functionCallingConfig: callingConfig(choice) };
}

function callingConfig(choice: ToolChoice): JsonObject {
  switch (choice.mode) {
    case 'none':
      return { mode: 'NONE' };
    case 'auto':
      return { mode: 'AUTO' };
    case 'required':
      return { mode: 'ANY' };
    case 'named':
      return { mode: 'ANY', allowedFunctionNames: [choice.name] };
    case 'allowed':
      // Names are taken with `AUTO` by no version; `VALIDATED` is the mode that leaves the choice of text as well.
      return { mode: choice.required ? 'ANY' : 'VALIDATED', allowedFunctionNames: choice.names };
  }
}

function encodeFunction({ name, description, parameters }: Tool, target: TargetOptions): JsonObject {
  const described = { name, description: description ?? undefined };
  if (target.jsonSchema) return { ...described, parametersJsonSchema: parameters ?? noParameters };
  if (parameters === null) return described;
  return { ...described, parameters: encodeSchema(parameters) ?? undefined };
}
