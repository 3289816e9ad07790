import { objectArguments } from '../../conversation/call-arguments.js';
import type { ToolCallPart } from '../../conversation/request.js';
import { tokenAsBytes } from '../../conversation/signature.js';
import { quoted } from '../../wire/json.js';

/*
 * JSON texts of the parts of an answer, the same in a stream and in a whole answer. The signature of reasoning stands where
 * the vendor's models have it: on the call that comes next, also behind a text, or on an empty text at the end. Clients that
 * join the pieces of a streamed text keep no signature of it (@langchain/google).
 */

/** A text. @param signature null where there is none */
export function textPart(text: string, signature: string | null): string {
  return `{"text":${quoted(text)}${signatureMember(signature)}}`;
}

/** A thought that is shown. */
export function thoughtPart(text: string): string {
  return `{"text":${quoted(text)},"thought":true}`;
}

/** What a function is called with. */
type Call = Pick<ToolCallPart, 'id' | 'name' | 'input' | 'custom'>;

/** A function call. Arguments that are no object, as upstreams do write them, are put into one. */
export function callPart({ id, name, input, custom }: Call, signature: string | null): string {
  const args = custom ? `{"input":${JSON.stringify(input)}}` : singleLine(objectArguments(input));
  const call = `"id":${JSON.stringify(id)},"name":${JSON.stringify(name)},"args":${args}`;
  return `{"functionCall":{${call}}${signatureMember(signature)}}`;
}

/** The field is bytes: python's SDK refuses what is no base64. */
function signatureMember(signature: string | null): string {
  return signature === null ? '' : `,"thoughtSignature":"${tokenAsBytes(signature)}"`;
}

/** A stream's events must not be broken by them: a line break in a JSON text is space between its values. */
function singleLine(args: string): string {
  return args.includes('\n') || args.includes('\r') ? args.replaceAll('\n', ' ').replaceAll('\r', ' ') : args;
}
