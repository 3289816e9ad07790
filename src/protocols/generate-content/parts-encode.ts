import type { ToolCallPart } from '../../conversation/request.js';
import { tokenAsBytes } from '../../conversation/signature.js';
import { objectArguments } from '../../conversation/tool-calls.js';
import { quoted } from '../../wire/quoted.js';

/*
 * JSON texts of the parts of an answer, the same in a stream and in a whole answer. The signature of reasoning stands
 * where the vendor's models have it: on the next call, even after a text, or on an empty text at the end. Clients that
 * join the chunks of a streamed text drop its signature (@langchain/google).
 */

/**
 * Writes a text.
 * @param signature null if there is none
 */
export function textPart(text: string, signature: string | null): string {
  return `{"text":${quoted(text)}${signatureMember(signature)}}`;
}

/** Writes a thought that is shown. */
export function thoughtPart(text: string): string {
  return `{"text":${quoted(text)},"thought":true}`;
}

/** The call of a function. */
export type Call = Pick<ToolCallPart, 'id' | 'name' | 'input' | 'custom'>;

/** Writes a function call. Arguments that are not an object, which some upstreams write, are wrapped in one. */
export function callPart({ id, name, input, custom }: Call, signature: string | null): string {
  const args = custom ? `{"input":${JSON.stringify(input)}}` : singleLine(objectArguments(input));
  const call = `"id":${JSON.stringify(id)},"name":${JSON.stringify(name)},"args":${args}`;
  return `{"functionCall":{${call}}${signatureMember(signature)}}`;
}

/** Writes the signature. Its type is bytes: Python's SDK refuses anything but base64. */
function signatureMember(signature: string | null): string {
  return signature === null ? '' : `,"thoughtSignature":"${tokenAsBytes(signature)}"`;
}

/** Replaces line breaks, which would break a stream's events. In a JSON text they are only space between values. */
function singleLine(args: string): string {
  return args.includes('\n') || args.includes('\r') ? args.replaceAll('\n', ' ').replaceAll('\r', ' ') : args;
}
