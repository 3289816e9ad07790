import type {
  MediaPart,
  TextPart,
  ToolCallPart,
  ToolResultPart,
  Turn,
} from '../../../conversation/request.js';
import { quoted } from '../../../wire/quoted.js';
import { unsupportedAt } from '../../unsupported.js';
import { encodeUserContent } from './content-encode.js';

/**
 * Writes the messages, as the JSON text of each. Reasoning is dropped: the protocol has no field in which it could be told to be genuine.
 * @param system becomes one system message at the start
 * @throws {GatewayError} of status 400, naming the client's field, for parts that the protocol cannot say
 */
export function encodeMessages(system: readonly string[], turns: readonly Turn[]): string[] {
  const messages: string[] = [];
  if (system.length > 0) messages.push(systemMessage(system.join('\n\n')));
  const deferred: string[] = [];
  for (let index = 0; index < turns.length; ) {
    index =
      turns[index]?.role === 'assistant'
        ? addAssistantTurns(turns, index, messages, deferred)
        : addOtherTurns(turns, index, messages, deferred);
  }
  messages.push(...deferred);
  return messages;
}

function systemMessage(text: string): string {
  return `{"role":"system","content":${quoted(text)}}`;
}

/**
 * Writes the turns from `start` up to the next one of the assistant. The results among them come first: tool messages
 * must follow the calls that they answer at once.
 * @param deferred instructions that stood between the calls: they come after the results
 * @returns the index after them
 */
function addOtherTurns(
  turns: readonly Turn[],
  start: number,
  messages: string[],
  deferred: string[],
): number {
  const spoken = deferred.splice(0);
  let index = start;
  for (let turn = turns[index]; turn !== undefined && turn.role !== 'assistant'; turn = turns[++index]) {
    if (turn.role === 'system') {
      spoken.push(systemMessage(turn.text));
      continue;
    }
    const rest: (TextPart | MediaPart)[] = [];
    for (const part of turn.parts) {
      if (part.kind === 'toolResult') messages.push(toolMessage(part, rest));
      else rest.push(part);
    }
    if (rest.length > 0) spoken.push(`{"role":"user","content":${encodeUserContent(rest)}}`);
  }
  messages.push(...spoken);
  return index;
}

/** @param moved takes the result's media, which a tool message cannot hold */
function toolMessage(result: ToolResultPart, moved: (TextPart | MediaPart)[]): string {
  const texts: string[] = [];
  const media: MediaPart[] = [];
  for (const part of result.content) {
    if (part.kind === 'text') texts.push(part.text);
    else media.push(part);
  }
  let text = texts.join('\n');
  if (media.length > 0) {
    moved.push({ kind: 'text', text: `Attachments of the result of tool call ${result.callId}:` }, ...media);
    if (text === '') text = 'See the attachments in the next user message.';
  }
  if (result.isError) text = `Error: ${text}`;
  return `{"role":"tool","tool_call_id":${JSON.stringify(result.callId)},"content":${quoted(text)}}`;
}

/**
 * Writes the assistant turn at `start`. Turns that follow one with tool calls join it: their calls must stand in one
 * message, before the results.
 * @param deferred takes the instructions between them
 * @returns the index after them
 */
function addAssistantTurns(
  turns: readonly Turn[],
  start: number,
  messages: string[],
  deferred: string[],
): number {
  let text: string | null = null;
  let refusal: string | null = null;
  const calls: string[] = [];
  let index = start;
  for (let turn = turns[index]; turn !== undefined && turn.role !== 'user'; turn = turns[++index]) {
    if (index > start && calls.length === 0) break;
    if (turn.role === 'system') {
      deferred.push(systemMessage(turn.text));
      continue;
    }
    for (const part of turn.parts) {
      if (part.kind === 'text') text = (text ?? '') + part.text;
      else if (part.kind === 'refusal') refusal = (refusal ?? '') + part.text;
      else if (part.kind === 'toolCall') calls.push(toolCall(part));
      else if (part.kind !== 'reasoning')
        throw unsupportedAt(part.at, 'chat', `(${part.kind} of the assistant)`);
    }
  }
  if (text === null && refusal === null && calls.length === 0) return index;
  const refused = refusal === null ? '' : `,"refusal":${quoted(refusal)}`;
  const called = calls.length === 0 ? '' : `,"tool_calls":[${calls.join(',')}]`;
  messages.push(`{"role":"assistant","content":${text === null ? 'null' : quoted(text)}${refused}${called}}`);
  return index;
}

function toolCall({ id, name, input, custom }: ToolCallPart): string {
  const type = custom ? 'custom' : 'function';
  const call = `"name":${JSON.stringify(name)},"${custom ? 'input' : 'arguments'}":${quoted(input)}`;
  return `{"id":${JSON.stringify(id)},"type":"${type}","${type}":{${call}}}`;
}
