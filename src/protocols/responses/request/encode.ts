import type { TargetOptions } from '../../../conversation/codec.js';
import type { ConversationRequest } from '../../../conversation/request.js';
import { refuseHostedTools, unsupportedSetting } from '../../unsupported.js';
import { hashOf } from '../ids.js';
import { encodeTool, encodeToolChoice } from './tools-encode.js';
import { encodeInput } from './turns-encode.js';

/** The protocol takes no lower limit of output tokens. */
const leastOutputTokens = 16;
/** Nor a longer id of a user. */
const longestUser = 64;
const formatName = 'response';
/**
 * Encodes a request for an upstream of this protocol; see `TextCodec.encodeRequest`. Nothing is stored there, so
 * reasoning is asked for in its encrypted form, which the client carries.
 */
export function encodeRequest(request: ConversationRequest, target: TargetOptions): string {
  refuse(request, target);
  const { tools, toolChoice } = request;
  let body = `{"model":${JSON.stringify(target.model)}`;
  if (request.stream) body += ',"stream":true';
  body += ',"store":false';
  if (request.maxTokens !== null)
    body += `,"max_output_tokens":${Math.max(leastOutputTokens, request.maxTokens)}`;
  if (request.temperature !== null) body += `,"temperature":${request.temperature}`;
  if (request.topP !== null) body += `,"top_p":${request.topP}`;
  if (request.user !== null) body += `,"safety_identifier":${JSON.stringify(userId(request.user))}`;
  body += textSettings(request) + reasoningSettings(request) + included(request);
  if (request.system.length > 0) body += `,"instructions":${JSON.stringify(request.system.join('\n\n'))}`;
  if (tools.length > 0) {
    body += `,"tools":[${tools.map(encodeTool).join(',')}]`;
    if (toolChoice !== null) body += `,"tool_choice":${encodeToolChoice(toolChoice, tools)}`;
    if (request.parallelCalls !== null) body += `,"parallel_tool_calls":${request.parallelCalls}`;
  }
  return `${body},"input":[${encodeInput(request.turns).join(',')}]}`;
}

/** The user by an id as the protocol takes it; of a longer one, what always stands for it. */
function userId(user: string): string {
  return user.length > longestUser ? hashOf(user) : user;
}

function refuse(request: ConversationRequest, target: TargetOptions): void {
  if (request.stop.length > 0) throw unsupportedSetting(request, 'stop', 'responses');
  if (request.candidates > 1)
    throw unsupportedSetting(request, 'candidates', 'responses', 'with more than one answer');
  if (request.logitBias !== null && Object.keys(request.logitBias).length > 0)
    throw unsupportedSetting(request, 'logitBias', 'responses');
  refuseHostedTools(request, target, 'responses');
  if (request.turns.at(-1)?.role === 'assistant')
    throw unsupportedSetting(request, 'prefill', 'responses', "with a last message of the assistant's");
}

function textSettings({ format, verbosity }: ConversationRequest): string {
  if (format === null && verbosity === null) return '';
  let text = '';
  if (format?.kind === 'object') text = '"format":{"type":"json_object"}';
  else if (format !== null) {
    const { name, description, schema, strict } = format;
    text = `"format":{"type":"json_schema","name":${JSON.stringify(name ?? formatName)}`;
    if (description !== null) text += `,"description":${JSON.stringify(description)}`;
    text += `,"schema":${JSON.stringify(schema)}`;
    text += strict === null ? '}' : `,"strict":${strict}}`;
  }
  if (verbosity !== null) text += `${text === '' ? '' : ','}"verbosity":${JSON.stringify(verbosity)}`;
  return `,"text":{${text}}`;
}

function reasoningSettings({ reasoning }: ConversationRequest): string {
  if (reasoning === null) return '';
  const { effort, show } = reasoning;
  const summary = reasoning.summary ?? (show ? 'auto' : null);
  const members: string[] = [];
  if (effort !== null) members.push(`"effort":"${effort}"`);
  if (summary !== null) members.push(`"summary":${JSON.stringify(summary)}`);
  return members.length === 0 ? '' : `,"reasoning":{${members.join(',')}}`;
}

function included({ reasoning, logprobs }: ConversationRequest): string {
  const include: string[] = [];
  if (reasoning !== null && reasoning.effort !== 'none') include.push('"reasoning.encrypted_content"');
  if (logprobs !== null) include.push('"message.output_text.logprobs"');
  if (include.length === 0) return '';
  return `,"include":[${include.join(',')}]${logprobs === null ? '' : `,"top_logprobs":${logprobs}`}`;
}
