import type {
  AssistantPart,
  MediaPart,
  ReasoningPart,
  TextPart,
  ToolCallPart,
  ToolResultPart,
  Turn,
} from '../../../conversation/request.js';
import { carriedSignature } from '../../../conversation/signature.js';
import { isObject, type JsonObject, textOrNull } from '../../../wire/json.js';
import { requireText, wrongValue } from '../../../wire/reading.js';
import { untranslatable } from '../../unsupported.js';
import { originalCallId } from '../call-ids.js';
import { blocksOf, decodeBlock, decodeTexts } from './content-decode.js';

/** Names of the tools by the ids of their calls: results name the id alone. */
type ToolNames = Map<string, string>;

/**
 * Reads `messages`, each as a turn of its own; those without content are left out.
 * @param system takes the texts of system messages before any other
 * @throws {GatewayError} of status 400 for roles and blocks that cannot be translated
 */
export function decodeMessages(messages: unknown, system: string[]): Turn[] {
  if (!Array.isArray(messages)) throw wrongValue('messages', 'an array');
  const turns: Turn[] = [];
  const toolNames: ToolNames = new Map();
  messages.forEach((message: unknown, index) => {
    const at = `messages[${index}]`;
    if (!isObject(message)) throw wrongValue(at, "an object with a 'role'");
    const { role, content } = message;
    const contentAt = `${at}.content`;
    if (role === 'user') {
      const parts = decodeUser(blocksOf(content, contentAt), contentAt, toolNames);
      if (parts.length > 0) turns.push({ role, parts });
    } else if (role === 'assistant') {
      const parts = decodeAssistant(blocksOf(content, contentAt), contentAt, toolNames);
      if (parts.length > 0) turns.push({ role, parts });
    } else if (role === 'system') {
      const texts = decodeTexts(content, contentAt);
      if (turns.length === 0) system.push(...texts);
      else if (texts.length > 0) turns.push({ role, text: texts.join('\n\n') });
    } else {
      throw untranslatable(at, `with the role '${String(role)}'`);
    }
  });
  return turns;
}

function decodeUser(
  blocks: readonly JsonObject[],
  at: string,
  toolNames: ToolNames,
): (TextPart | MediaPart | ToolResultPart)[] {
  const results: ToolResultPart[] = [];
  const rest: (TextPart | MediaPart)[] = [];
  blocks.forEach((block, index) => {
    const blockAt = `${at}[${index}]`;
    if (block.type === 'tool_result') results.push(decodeResult(block, blockAt, toolNames));
    else decodeBlock(block, blockAt, rest);
  });
  return results.length === 0 ? rest : [...results, ...rest];
}

function decodeResult(block: JsonObject, at: string, toolNames: ToolNames): ToolResultPart {
  const callId = originalCallId(requireText(block, 'tool_use_id', at));
  const content: (TextPart | MediaPart)[] = [];
  blocksOf(block.content, `${at}.content`).forEach((inner, index) => {
    decodeBlock(inner, `${at}.content[${index}]`, content);
  });
  const name = toolNames.get(callId) ?? '';
  return { kind: 'toolResult', callId, name, content, isError: block.is_error === true, at };
}

function decodeAssistant(blocks: readonly JsonObject[], at: string, toolNames: ToolNames): AssistantPart[] {
  const parts: AssistantPart[] = [];
  blocks.forEach((block, index) => {
    const blockAt = `${at}[${index}]`;
    switch (block.type) {
      case 'text':
        // An empty text is none: some clients put one beside their calls.
        if (block.text !== '') parts.push({ kind: 'text', text: requireText(block, 'text', blockAt) });
        return;
      case 'tool_use': {
        const call = decodeCall(block, blockAt);
        toolNames.set(call.id, call.name);
        parts.push(call);
        return;
      }
      case 'thinking':
      case 'redacted_thinking':
        parts.push(decodeReasoning(block));
        return;
      default:
        throw untranslatable(blockAt, `of type '${String(block.type)}' in a turn of the assistant`);
    }
  });
  return parts;
}

function decodeCall(block: JsonObject, at: string): ToolCallPart {
  const { input } = block;
  if (input !== undefined && !isObject(input)) throw wrongValue(`${at}.input`, 'an object');
  const name = requireText(block, 'name', at);
  if (name === '') throw wrongValue(`${at}.name`, "the tool's name");
  return {
    kind: 'toolCall',
    id: originalCallId(requireText(block, 'id', at)),
    name,
    input: input === undefined ? '{}' : JSON.stringify(input),
    custom: false,
    at,
  };
}

/** A signature that is missing or empty is that of reasoning from a protocol that has none. */
function decodeReasoning(block: JsonObject): ReasoningPart {
  if (block.type === 'redacted_thinking')
    return {
      kind: 'reasoning',
      text: '',
      signature: carriedSignature('messages', textOrNull(block.data) ?? '', true),
    };
  return {
    kind: 'reasoning',
    text: textOrNull(block.thinking) ?? '',
    signature: carriedSignature('messages', textOrNull(block.signature) ?? '', false),
  };
}
