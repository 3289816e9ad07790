import type {
  AssistantPart,
  ConversationRequest,
  MediaPart,
  TextPart,
  TextProtocolName,
  ToolCallPart,
  ToolResultPart,
} from '../../../conversation/request.js';
import { signatureFor } from '../../../conversation/signature.js';
import { GatewayError } from '../../../errors.js';
import { isObjectText } from '../../../wire/json.js';
import { unsupportedAt, unsupportedSetting } from '../../unsupported.js';
import { legalCallId } from '../call-ids.js';
import { encodeBlock, encodeResult, encodeText, isBlank } from './content-encode.js';

export interface EncodedMessages {
  /** JSON text of the array. */
  readonly text: string;
  /**
   * Thinking with a budget can be on: the upstream wants the turn whose calls have just been answered to begin with the
   * thinking that led to them, and none for an answer that is begun in the request.
   */
  readonly mayThink: boolean;
}

/** What holds the conversation in the protocols of clients. */
const conversationNames: Readonly<Record<TextProtocolName, string>> = {
  chat: 'messages',
  responses: 'input',
  messages: 'messages',
  generateContent: 'contents',
};

/** Turns of one role in a row are one message. */
type Message = UserMessage | AssistantMessage;

interface UserMessage {
  readonly role: 'user';
  readonly results: ToolResultPart[];
  readonly rest: (TextPart | MediaPart)[];
}

interface AssistantMessage {
  readonly role: 'assistant';
  /** In the order in which it was written. */
  readonly spoken: Spoken[];
  readonly calls: ToolCallPart[];
}

/** A text, or the JSON text of a thinking block. */
type Spoken = { readonly text: string } | { readonly thinking: string };

/**
 * Writes `messages`. Instructions in the middle of the conversation become texts of the user where they stand;
 * reasoning is kept where an upstream of this protocol signed it. A message is written the same way in every later
 * request of the conversation.
 * @throws {GatewayError} of status 400, naming the client's field, for parts that the protocol cannot say, and for a
 * conversation that does not begin with the user
 */
export function encodeMessages(request: ConversationRequest): EncodedMessages {
  const messages = collect(request);
  trimPrefill(messages);
  const [first] = messages;
  if (first === undefined) throw nothingSaid(request.from);
  if (first.role !== 'user')
    throw unsupportedSetting(request, 'prefill', 'messages', 'beginning with a turn of the assistant');
  return { text: `[${messages.map(encodeMessage).join(',')}]`, mayThink: mayThink(messages) };
}

/** The 400 for a conversation that has instructions at the most. */
function nothingSaid(from: TextProtocolName): GatewayError {
  const param = conversationNames[from];
  return new GatewayError(
    'invalid_value',
    `Invalid value for '${param}': this model needs at least one message of the user that is not empty. ` +
      'Send what the model is to answer as a message of the user.',
    { param },
  );
}

function collect({ turns }: ConversationRequest): Message[] {
  const messages: Message[] = [];
  for (const turn of turns) {
    if (turn.role === 'system') {
      if (!isBlank(turn.text)) userMessage(messages).rest.push({ kind: 'text', text: turn.text });
    } else if (turn.role === 'user') {
      for (const part of turn.parts) {
        if (part.kind === 'toolResult') userMessage(messages).results.push(part);
        else if (part.kind !== 'text' || !isBlank(part.text)) userMessage(messages).rest.push(part);
      }
    } else {
      for (const part of turn.parts) addAssistantPart(messages, part);
    }
  }
  return messages;
}

function userMessage(messages: Message[]): UserMessage {
  const last = messages.at(-1);
  if (last?.role === 'user') return last;
  const message: UserMessage = { role: 'user', results: [], rest: [] };
  messages.push(message);
  return message;
}

function assistantMessage(messages: Message[]): AssistantMessage {
  const last = messages.at(-1);
  if (last?.role === 'assistant') return last;
  const message: AssistantMessage = { role: 'assistant', spoken: [], calls: [] };
  messages.push(message);
  return message;
}

function addAssistantPart(messages: Message[], part: AssistantPart): void {
  if (part.kind === 'toolCall') {
    assistantMessage(messages).calls.push(part);
  } else if (part.kind === 'reasoning') {
    const signature = signatureFor('messages', part.signature);
    if (signature === null) return;
    const value = JSON.stringify(signature.value);
    const thinking = signature.redacted
      ? `{"type":"redacted_thinking","data":${value}}`
      : `{"type":"thinking","thinking":${JSON.stringify(part.text)},"signature":${value}}`;
    assistantMessage(messages).spoken.push({ thinking });
  } else if (part.kind === 'text' || part.kind === 'refusal') {
    if (!isBlank(part.text)) assistantMessage(messages).spoken.push({ text: part.text });
  } else {
    throw unsupportedAt(part.at, 'messages', `(${part.kind} of the assistant)`);
  }
}

/** The upstream goes on where a last message of the assistant ends: it wants no white space there, and no thinking. */
function trimPrefill(messages: Message[]): void {
  const last = messages.at(-1);
  if (last?.role !== 'assistant') return;
  const texts = last.spoken.filter((each) => 'text' in each);
  const final = texts.pop();
  last.spoken.length = 0;
  last.spoken.push(...texts);
  if (final !== undefined) last.spoken.push({ text: final.text.trimEnd() });
  if (last.spoken.length === 0 && last.calls.length === 0) messages.pop();
}

function mayThink(messages: readonly Message[]): boolean {
  const last = messages.at(-1);
  if (last?.role !== 'user') return false;
  const answered = messages.at(-2);
  if (last.results.length === 0 || answered?.role !== 'assistant') return true;
  const [first] = answered.spoken;
  return first !== undefined && 'thinking' in first;
}

function encodeMessage(message: Message): string {
  const blocks =
    message.role === 'user'
      ? [...message.results.map(encodeResult), ...message.rest.map(encodeBlock)]
      : [...message.spoken.map(encodeSpoken), ...message.calls.map(encodeCall)];
  return `{"role":"${message.role}","content":[${blocks.join(',')}]}`;
}

function encodeSpoken(spoken: Spoken): string {
  return 'text' in spoken ? encodeText(spoken.text) : spoken.thinking;
}

/** The arguments are passed on as they were written: so large numbers keep all their digits. */
function encodeCall({ id, name, input, custom, at }: ToolCallPart): string {
  if (custom) throw unsupportedAt(at, 'messages', '(call of a custom tool)');
  if (!isObjectText(input)) {
    throw new GatewayError(
      'invalid_value',
      `Invalid value for '${at}': the arguments of the call of '${name}' are not a JSON object.`,
      { param: at },
    );
  }
  return `{"type":"tool_use","id":${JSON.stringify(legalCallId(id))},"name":${JSON.stringify(name)},"input":${input}}`;
}
