import type { Tool, ToolChoice } from '../../../conversation/request.js';

const plainText = { type: 'text' };
const noParameters = '{"type":"object","properties":{}}';

/** Writes a tool. */
export function encodeTool({ name, description, parameters, strict, custom }: Tool): string {
  let tool = `{"type":"${custom === undefined ? 'function' : 'custom'}","name":${JSON.stringify(name)}`;
  if (description !== null) tool += `,"description":${JSON.stringify(description)}`;
  if (custom !== undefined) return `${tool},"format":${JSON.stringify(custom.format ?? plainText)}}`;
  // Left out, `strict` would be taken for true, which it is in no other protocol.
  const schema = parameters === null ? noParameters : JSON.stringify(parameters);
  return `${tool},"parameters":${schema},"strict":${strict ?? false}}`;
}

/** Writes `tool_choice`. */
export function encodeToolChoice(choice: ToolChoice, tools: readonly Tool[]): string {
  switch (choice.mode) {
    case 'named':
      return namedTool(choice.name, tools);
    case 'allowed': {
      const named = choice.names.map((name) => namedTool(name, tools)).join(',');
      return `{"type":"allowed_tools","mode":"${choice.required ? 'required' : 'auto'}","tools":[${named}]}`;
    }
    default:
      return `"${choice.mode}"`;
  }
}

function namedTool(name: string, tools: readonly Tool[]): string {
  const isCustom = tools.some((tool) => tool.name === name && tool.custom !== undefined);
  return `{"type":"${isCustom ? 'custom' : 'function'}","name":${JSON.stringify(name)}}`;
}
