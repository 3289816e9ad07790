import type {
  AssistantPart,
  MediaPart,
  ReasoningPart,
  TextPart,
  ToolCallPart,
  ToolResultPart,
  Turn,
  UserPart,
} from '../../../conversation/request.js';
import { unsupportedAt } from '../../unsupported.js';
import { legalCallId } from '../ids.js';
import { openReasoning } from '../reasoning.js';
import { contentPart, encodeOutput, textPart } from './content-encode.js';

/**
 * Encodes turns as items: each message, call, output and reasoning is one of its own.
 * @returns the JSON text of each. What a turn becomes depends on the turns before it alone.
 * @throws {GatewayError} naming the part that the protocol cannot say
 */
export function encodeInput(turns: readonly Turn[]): string[] {
  const items: string[] = [];
  /** Calls whose outputs are of a type of their own. */
  const customCalls = new Set<string>();
  for (const turn of turns) {
    if (turn.role === 'system') items.push(messageItem('developer', textPart('input_text', turn.text)));
    else if (turn.role === 'user') encodeUser(turn.parts, customCalls, items);
    else encodeAssistant(turn.parts, customCalls, items);
  }
  return items;
}

function messageItem(role: string, parts: string): string {
  return `{"type":"message","role":"${role}","content":[${parts}]}`;
}

function encodeUser(parts: readonly UserPart[], customCalls: ReadonlySet<string>, items: string[]): void {
  let content = '';
  for (const part of parts) {
    if (part.kind === 'toolResult') items.push(outputItem(part, customCalls));
    else content += (content === '' ? '' : ',') + contentPart(part);
  }
  if (content !== '') items.push(messageItem('user', content));
}

function encodeAssistant(parts: readonly AssistantPart[], customCalls: Set<string>, items: string[]): void {
  let content = '';
  const close = (): void => {
    if (content !== '') items.push(messageItem('assistant', content));
    content = '';
  };
  for (const part of parts) {
    switch (part.kind) {
      case 'text':
        content += (content === '' ? '' : ',') + textPart('output_text', part.text);
        break;
      case 'refusal':
        content += `${content === '' ? '' : ','}{"type":"refusal","refusal":${JSON.stringify(part.text)}}`;
        break;
      case 'toolCall':
        close();
        if (part.custom) customCalls.add(part.id);
        items.push(callItem(part));
        break;
      case 'reasoning': {
        const item = reasoningItem(part);
        if (item === null) break;
        close();
        items.push(item);
        break;
      }
      default:
        throw unsupportedAt(part.at, 'responses', `of the assistant (${part.kind})`);
    }
  }
  close();
}

function callItem({ id, name, input, custom }: ToolCallPart): string {
  const call = `"call_id":${JSON.stringify(legalCallId(id))},"name":${JSON.stringify(name)}`;
  return custom
    ? `{"type":"custom_tool_call",${call},"input":${JSON.stringify(input)}}`
    : `{"type":"function_call",${call},"arguments":${JSON.stringify(input)}}`;
}

/** Null for reasoning that another vendor's model wrote: the upstream takes only what it encrypted itself. */
function reasoningItem({ text, signature }: ReasoningPart): string | null {
  const encrypted = openReasoning(signature);
  if (encrypted === null) return null;
  const { id, content } = encrypted;
  const own = id === '' ? '' : `"id":${JSON.stringify(id)},`;
  const summary = text === '' ? '' : textPart('summary_text', text);
  return `{"type":"reasoning",${own}"summary":[${summary}],"encrypted_content":${JSON.stringify(content)}}`;
}

function outputItem(part: ToolResultPart, customCalls: ReadonlySet<string>): string {
  const { callId, isError } = part;
  // The protocol has no member for a failure: it says so in the text.
  const content: readonly (TextPart | MediaPart)[] = isError
    ? [{ kind: 'text', text: 'Error:' }, ...part.content]
    : part.content;
  const type = customCalls.has(callId) ? 'custom_tool_call_output' : 'function_call_output';
  return `{"type":"${type}","call_id":${JSON.stringify(legalCallId(callId))},"output":${encodeOutput(content, isError)}}`;
}
