import type { TextProtocolName } from '../../src/conversation/request.js';
import type { JsonObject } from '../../src/wire/json.js';

/*
 * What the vendors check of the calls and results in a request, and with which role it may begin, as a list of what is
 * wrong with a body.
 */

type Blocks = readonly JsonObject[];

interface Message extends JsonObject {
  readonly role: string;
}

const idsOf = (blocks: Blocks, type: string, member: string): string[] =>
  blocks.filter((block) => block.type === type).map((block) => String(block[member]));

function differences(calls: readonly string[], results: readonly string[], at: string): string[] {
  const same = [...calls].sort().join() === [...results].sort().join();
  const unique = new Set(calls).size === calls.length;
  return [
    ...(same ? [] : [`${at}: calls ${calls.join()}, results ${results.join()}`]),
    ...(unique ? [] : [`${at}: one id of two calls`]),
  ];
}

/** `messages`: the results of all calls of a message begin the next one; the first message is the user's. */
function messagesFaults(messages: readonly Message[]): string[] {
  const faults = messages[0]?.role === 'user' ? [] : ['begins with the assistant'];
  let calls: string[] = [];
  messages.forEach(({ role, content }, index) => {
    const blocks = content as Blocks;
    const results = role === 'user' ? idsOf(blocks, 'tool_result', 'tool_use_id') : [];
    faults.push(...differences(calls, results, `message ${index}`));
    if (blocks.length === 0) faults.push(`message ${index} is empty`);
    if (!blocks.slice(0, results.length).every(({ type }) => type === 'tool_result') && results.length > 0)
      faults.push(`message ${index}: the results do not come first`);
    for (const block of blocks)
      if (block.type === 'tool_use' && (typeof block.input !== 'object' || Array.isArray(block.input)))
        faults.push(`message ${index}: a call without an object`);
    calls = role === 'assistant' ? idsOf(blocks, 'tool_use', 'id') : [];
  });
  return [...faults, ...differences(calls, [], 'the end')];
}

/** `chat`: behind a message with calls come their results, one message each, and nowhere else. */
function chatFaults(messages: readonly Message[]): string[] {
  const faults: string[] = [];
  for (let index = 0; index < messages.length; ) {
    const { role, tool_calls: called } = messages[index] as Message;
    if (role === 'tool') faults.push(`message ${index} answers nothing`);
    const calls = ((called ?? []) as Blocks).map(({ id }) => String(id));
    const results: string[] = [];
    for (index++; messages[index]?.role === 'tool' && calls.length > 0; index++)
      results.push(String(messages[index]?.tool_call_id));
    faults.push(...differences(calls, results, `before message ${index}`));
  }
  return faults;
}

/** `responses`: each output has its call before it, and each call an output. */
function responsesFaults(input: Blocks): string[] {
  const faults: string[] = [];
  const waiting: string[] = [];
  for (const item of input) {
    if (item.type === 'function_call') {
      if (waiting.includes(String(item.call_id))) faults.push(`one id of two calls: ${item.call_id}`);
      waiting.push(String(item.call_id));
    } else if (item.type === 'function_call_output') {
      const index = waiting.indexOf(String(item.call_id));
      if (index === -1) faults.push(`an output of no call: ${item.call_id}`);
      else waiting.splice(index, 1);
    }
  }
  if (waiting.length > 0) faults.push(`without an output: ${waiting.join()}`);
  return faults;
}

/** `generateContent`: as many responses as calls, in the content after them, which may not be the first. */
function contentsFaults(contents: readonly Message[]): string[] {
  const faults: string[] = [];
  let calls: string[] = [];
  contents.forEach(({ role, parts }, index) => {
    const idsIn = (member: string) =>
      (parts as Blocks).flatMap((part) =>
        part[member] === undefined ? [] : [String((part[member] as JsonObject).id)],
      );
    faults.push(...differences(calls, role === 'user' ? idsIn('functionResponse') : [], `content ${index}`));
    calls = role === 'model' ? idsIn('functionCall') : [];
    if (index === 0 && calls.length > 0) faults.push('begins with a call');
  });
  return [...faults, ...differences(calls, [], 'the end')];
}

/** @returns what a vendor would refuse a body for */
export const pairingFaults: Readonly<Record<TextProtocolName, (body: JsonObject) => string[]>> = {
  chat: ({ messages }) => chatFaults(messages as Message[]),
  responses: ({ input }) => responsesFaults(input as Blocks),
  messages: ({ messages }) => messagesFaults(messages as Message[]),
  generateContent: ({ contents }) => contentsFaults(contents as Message[]),
};
