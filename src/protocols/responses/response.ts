import type { AnswerContext } from '../../conversation/codec.js';
import type { Usage } from '../../conversation/usage.js';
import type { GatewayError } from '../../errors.js';
import { isObject, type JsonObject } from '../../wire/json.js';
import { encodeUsage } from './answer/usage.js';

/** State of an answer. */
export interface ResponseState {
  readonly status: 'in_progress' | 'completed' | 'incomplete' | 'failed';
  /** Why the answer is incomplete. */
  readonly reason?: 'max_output_tokens' | 'content_filter' | undefined;
  readonly error?: GatewayError;
  /** JSON texts of the items, with commas. */
  readonly output: string;
  /** Undefined while it cannot be known. */
  readonly usage?: Usage | null;
}

/** The parts of a response object that do not change while it is written. */
export interface ResponseFrame {
  readonly head: string;
  /** The settings before `output`, those after it, and those after `usage`. */
  readonly before: string;
  readonly after: string;
  readonly last: string;
}

/** Makes the frame of an answer's response objects, with the client's settings. */
export function frameResponse({
  id,
  created,
  model,
  echo,
}: Pick<AnswerContext, 'id' | 'created' | 'model' | 'echo'>): ResponseFrame {
  const settings = echo ?? {};
  return {
    head: `{"id":"resp_${id}","object":"response","created_at":${created}`,
    before: `${members(settings, leading)},"model":${JSON.stringify(model)}`,
    after: members(settings, following),
    last: members(settings, trailing),
  };
}

/** Consecutive members of a response object. */
interface Members {
  readonly list: readonly Member[];
  /** Their text if the client has set none of them. */
  readonly unset: string;
}

interface Member {
  readonly name: string;
  /** The member's text up to its value, with a comma before it. */
  readonly before: string;
  /** Offset of the member's own text in the text of all. */
  readonly start: number;
  readonly end: number;
}

const leading = membersOf([
  ['instructions', 'null'],
  ['max_output_tokens', 'null'],
  ['max_tool_calls', 'null'],
]);
const following = membersOf([
  ['frequency_penalty', '0'],
  ['parallel_tool_calls', 'true'],
  ['presence_penalty', '0'],
  ['previous_response_id', 'null'],
  ['prompt_cache_key', 'null'],
  ['reasoning', '{"effort":null,"summary":null}'],
  ['safety_identifier', 'null'],
  ['service_tier', '"default"'],
  ['store', 'false'],
  ['temperature', '1'],
  ['text', '{"format":{"type":"text"}}'],
  ['tool_choice', '"auto"'],
  ['tools', '[]'],
  ['top_logprobs', '0'],
  ['top_p', '1'],
  ['truncation', '"disabled"'],
]);
const trailing = membersOf([
  ['user', 'null'],
  ['metadata', '{}'],
]);

/**
 * Members that are not the client's to set: those that refer to other responses, and penalties, which a request has no
 * member for (https://www.openresponses.org/reference requires them in a response, as OpenAI writes them).
 */
const ownMembers = ['previous_response_id', 'store', 'frequency_penalty', 'presence_penalty'];

/** Settings of a request that its response repeats. */
export const echoedSettings = [leading, following, trailing].flatMap(({ list }) =>
  list.flatMap(({ name }) => (ownMembers.includes(name) ? [] : name)),
);

/** @param values JSON texts of the members that the client does not set */
function membersOf(values: readonly (readonly [name: string, unset: string])[]): Members {
  let unset = '';
  const list = values.map(([name, value]) => {
    const before = `,"${name}":`;
    const start = unset.length;
    unset += before + value;
    return { name, before, start, end: unset.length };
  });
  return { list, unset };
}

/** @returns JSON text of the members, each with a comma before it */
function members(settings: JsonObject, { list, unset }: Members): string {
  let text = '';
  let from = 0;
  for (const { name, before, start, end } of list) {
    const value = memberText(name, settings[name]);
    if (value === null) continue;
    text += unset.slice(from, start) + before + value;
    from = end;
  }
  return text + unset.slice(from);
}

function memberText(name: string, value: unknown): string | null {
  if (value === undefined) return null;
  if (typeof value === 'number') return String(value);
  if (name !== 'reasoning' && name !== 'text') return JSON.stringify(value);
  if (!isObject(value)) return null;
  if (name === 'reasoning') return JSON.stringify({ effort: null, summary: null, ...value });
  return JSON.stringify({ ...value, format: value.format ?? { type: 'text' } });
}

/** Returns the JSON text of a response object. */
export function responseText(frame: ResponseFrame, state: ResponseState): string {
  const { status, reason, error, output, usage } = state;
  // Only a completed response has it (https://platform.openai.com/docs/api-reference/responses/object).
  const completedAt = status === 'completed' ? Math.floor(Date.now() / 1000) : null;
  return (
    `${frame.head},"status":"${status}","background":false,"completed_at":${completedAt}` +
    `,"error":${error === undefined ? 'null' : JSON.stringify({ code: errorCode(error), message: error.message })}` +
    `,"incomplete_details":${reason === undefined ? 'null' : `{"reason":"${reason}"}`}` +
    `${frame.before},"output":[${output}]${frame.after},"usage":${usage === undefined ? 'null' : encodeUsage(usage)}${frame.last}}`
  );
}

function errorCode({ kind, code }: GatewayError): string {
  if (kind === 'rate_limit_exceeded') return kind;
  // The upstream's reason for refusing the request: clients act on it.
  return kind === 'invalid_request' && code !== null ? code : 'server_error';
}
