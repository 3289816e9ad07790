import { entryOf } from '../../wire/entry-of.js';
import type {
  ContentPart,
  ConversationRequest,
  TextPart,
  ToolCallPart,
  ToolResultPart,
  Turn,
  UserPart,
} from '../request.js';
import { type FitContext, type Fitted, withCalls } from './fitted.js';

type AssistantTurn = Extract<Turn, { readonly role: 'assistant' }>;

/** Result for the model if the client gave none. */
const interrupted = 'The call was interrupted: it has no result.';

/**
 * Every protocol requires each call of the model to be followed by exactly one result, and no other results. The
 * history of an interrupted agent, or a shortened one, may violate that and would always be refused. A call without a
 * result therefore gets one that says so. A result without its call becomes a text of the user. Each call gets a unique
 * id: servers of open models restart with every answer (`call_0`), which messages and responses refuse.
 *
 * What is written for a turn depends only on what precedes the model's next one. A result after that becomes a text as
 * well, so that the beginning of a conversation remains what an upstream has cached.
 *
 * Sources: https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls (results immediately follow
 * their calls), https://platform.openai.com/docs/guides/function-calling (one `tool` message or output for each call).
 * The generateContent service requires as many responses as calls.
 */
export function fitToolResults(
  request: ConversationRequest,
  { rules: { uniqueCalls } }: FitContext,
): Fitted | null {
  const { turns } = request;
  const mended: Turn[] = [];
  let ids = new CallIds();
  let at = 0;
  while (at < turns.length) {
    const { calling, behind, end } = exchangeAt(turns, at);
    if (uniqueCalls === 'answer') ids = new CallIds();
    const waiting = new WaitingCalls(ids);
    for (const turn of calling) mended.push(withCalls(turn, (call) => waiting.add(call)));
    const answering = behind.map((turn) => withPairedResults(turn, waiting));
    const missing = waiting.rest();
    if (missing.length > 0) mended.push({ role: 'user', parts: missing.map(missingResult) });
    for (const turn of answering) mended.push(turn);
    at = end;
  }
  const isSame = mended.length === turns.length && mended.every((turn, index) => turn === turns[index]);
  return isSame ? null : { request: { ...request, turns: mended }, restorer: null };
}

/** Turns of the model, and everything before its next one. */
interface Exchange {
  readonly calling: readonly AssistantTurn[];
  readonly behind: readonly Turn[];
  /** Index of the next turn. */
  readonly end: number;
}

/** Instructions between the calls of one answer are moved after all of them, since results must follow the calls. */
function exchangeAt(turns: readonly Turn[], start: number): Exchange {
  const calling: AssistantTurn[] = [];
  const behind: Turn[] = [];
  let hasCalls = false;
  let end = start;
  for (let turn = turns[end]; turn !== undefined && turn.role !== 'user'; turn = turns[++end]) {
    if (turn.role === 'assistant') {
      if (!hasCalls && behind.length > 0) return { calling, behind, end };
      calling.push(turn);
      hasCalls ||= turn.parts.some(({ kind }) => kind === 'toolCall');
    } else behind.push(turn);
  }
  for (let turn = turns[end]; turn !== undefined && turn.role !== 'assistant'; turn = turns[++end])
    behind.push(turn);
  return { calling, behind, end };
}

/** Ids of the calls of an answer, or of a conversation. */
class CallIds {
  /** How often each id was requested. */
  readonly #wanted = new Map<string, number>();

  /** @returns the id, or one derived from it if an earlier call has the same */
  own(wanted: string): string {
    let id = wanted;
    let number = this.#wanted.get(wanted) ?? 0;
    while (this.#wanted.has(id)) id = `${wanted}_${++number}`;
    this.#wanted.set(wanted, Math.max(number, 1));
    if (id !== wanted) this.#wanted.set(id, 1);
    return id;
  }
}

/** Calls of one exchange that have no result yet. */
class WaitingCalls {
  readonly #ids: CallIds;
  readonly #calls = new Set<ToolCallPart>();
  /** By the client's ids. */
  readonly #byId = new Map<string, ToolCallPart[]>();

  constructor(ids: CallIds) {
    this.#ids = ids;
  }

  /** @returns the call, with another id if an earlier call has the same */
  add(call: ToolCallPart): ToolCallPart {
    const id = this.#ids.own(call.id);
    const own = id === call.id ? call : { ...call, id };
    this.#calls.add(own);
    entryOf(this.#byId, call.id, (): ToolCallPart[] => []).push(own);
    return own;
  }

  /** Removes and returns the call that a result answers. */
  take(id: string): ToolCallPart | undefined {
    const call = this.#byId.get(id)?.shift();
    if (call !== undefined) this.#calls.delete(call);
    return call;
  }

  rest(): ToolCallPart[] {
    return [...this.#calls];
  }
}

function withPairedResults(turn: Turn, waiting: WaitingCalls): Turn {
  if (turn.role !== 'user' || !turn.parts.some(isResult)) return turn;
  const results: ToolResultPart[] = [];
  const rest: UserPart[] = [];
  let isSame = true;
  for (const part of turn.parts) {
    const call = isResult(part) ? waiting.take(part.callId) : undefined;
    if (!isResult(part)) rest.push(part);
    else if (call === undefined) rest.push(...spoken(part));
    else results.push(call.id === part.callId ? part : { ...part, callId: call.id });
    isSame &&= !isResult(part) || results.at(-1) === part;
  }
  return isSame ? turn : { role: 'user', parts: [...results, ...rest] };
}

function isResult(part: UserPart): part is ToolResultPart {
  return part.kind === 'toolResult';
}

function missingResult({ id, name, at }: ToolCallPart): ToolResultPart {
  const content: readonly TextPart[] = [{ kind: 'text', text: interrupted }];
  return { kind: 'toolResult', callId: id, name, content, isError: true, at };
}

/** Converts a result that answers no call to text of the user. */
function spoken({ callId, name, content, isError }: ToolResultPart): ContentPart[] {
  const call = [name === '' ? '' : ` of the tool '${name}'`, callId === '' ? '' : ` (call ${callId})`].join(
    '',
  );
  const texts = content.flatMap((part) => (part.kind === 'text' ? [part.text] : []));
  const media = content.filter((part) => part.kind !== 'text');
  const said = [`${isError ? 'Error' : 'Result'}${call}:`, ...texts].join('\n');
  return [{ kind: 'text', text: said }, ...media];
}
