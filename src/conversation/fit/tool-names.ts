import { createHash } from 'node:crypto';
import type { Answer, StreamEvent } from '../answer.js';
import type { ConversationRequest, ToolChoice, Turn } from '../request.js';
import { type AnswerRestorer, type FitContext, type Fitted, mapParts, withCalls } from './fitted.js';

const hashLength = 8;

/**
 * Keeps only the first of several tools with the same name: a model could not distinguish them, and messages and
 * generateContent refuse them ("Tool names must be unique", "Duplicate function declaration found").
 */
export function fitSameTools(request: ConversationRequest, { leftOut }: FitContext): Fitted | null {
  const names = new Set<string>();
  const tools = request.tools.filter(({ name }) => names.size < names.add(name).size);
  if (tools.length === request.tools.length) return null;
  leftOut.add('tools');
  return { request: { ...request, tools }, restorer: null };
}

/**
 * Replaces names of tools that a protocol refuses. The replacement is always the same: as much of the name as fits, and
 * a hash of the whole name. Calls of these tools are returned under the client's names.
 */
export function fitToolNames(
  request: ConversationRequest,
  { rules: { toolNames } }: FitContext,
): Fitted | null {
  const { longest, legal } = toolNames;
  const originals = new Map<string, string>();
  /** Replacements of the names seen so far. */
  const fitted = new Map<string, string>();
  const nameOf = (name: string): string => {
    const known = fitted.get(name);
    if (known !== undefined) return known;
    const made =
      name === '' || (name.length <= longest && legal.test(name)) ? name : shortened(name, longest);
    fitted.set(name, made);
    if (made !== name) originals.set(made, name);
    return made;
  };
  for (const { name } of request.tools) nameOf(name);
  for (const name of namesOf(request.turns)) nameOf(name);
  for (const name of namesIn(request.toolChoice)) nameOf(name);
  if (originals.size === 0) return null;
  return {
    request: {
      ...request,
      tools: request.tools.map((tool) => ({ ...tool, name: nameOf(tool.name) })),
      turns: request.turns.map((turn) => renamed(turn, nameOf)),
      toolChoice: renamedChoice(request.toolChoice, nameOf),
    },
    restorer: new CallNames(originals),
  };
}

/** Makes a name that every protocol accepts: letters, digits, `_` and `-`, beginning with a letter or `_`. */
function shortened(name: string, longest: number): string {
  const hash = createHash('sha256').update(name).digest('base64url').slice(0, hashLength);
  const plain = name.slice(0, longest - hashLength - 1).replaceAll(/[^A-Za-z0-9_-]/g, '_');
  return `${/^[A-Za-z_]/.test(plain) ? plain : `_${plain.slice(1)}`}_${hash}`;
}

type Rename = (name: string) => string;

function* namesOf(turns: readonly Turn[]): Generator<string> {
  for (const turn of turns) {
    if (turn.role === 'system') continue;
    for (const part of turn.parts)
      if (part.kind === 'toolCall' || part.kind === 'toolResult') yield part.name;
  }
}

function renamed(turn: Turn, nameOf: Rename): Turn {
  if (turn.role === 'user')
    return {
      ...turn,
      parts: turn.parts.map((part) =>
        part.kind === 'toolResult' ? { ...part, name: nameOf(part.name) } : part,
      ),
    };
  return withCalls(turn, (call) => ({ ...call, name: nameOf(call.name) }));
}

function namesIn(choice: ToolChoice | null): readonly string[] {
  if (choice?.mode === 'named') return [choice.name];
  return choice?.mode === 'allowed' ? choice.names : [];
}

function renamedChoice(choice: ToolChoice | null, nameOf: Rename): ToolChoice | null {
  if (choice?.mode === 'named') return { ...choice, name: nameOf(choice.name) };
  return choice?.mode === 'allowed' ? { ...choice, names: choice.names.map(nameOf) } : choice;
}

class CallNames implements AnswerRestorer {
  readonly changesText = false;
  /** The client's names, by the names at the upstream. */
  readonly #originals: ReadonlyMap<string, string>;

  constructor(originals: ReadonlyMap<string, string>) {
    this.#originals = originals;
  }

  event(event: StreamEvent, out: StreamEvent[]): void {
    out.push(event.kind === 'callStart' ? { ...event, name: this.#original(event.name) } : event);
  }

  answer(answer: Answer): Answer {
    return mapParts(answer, (part) =>
      part.kind === 'toolCall' ? { ...part, name: this.#original(part.name) } : part,
    );
  }

  #original(name: string): string {
    return this.#originals.get(name) ?? name;
  }
}
