import type { Tool } from '../../conversation/request.js';
import { isObject, type JsonObject, listOf, numberOrNull, parseJson, textOrNull } from '../../wire/json.js';

/*
 * Tools of the client's own for which this protocol has types of items: the search for more tools, and the shell on
 * the client's machine (https://developers.openai.com/api/docs/guides/tools-tool-search and …/tools-local-shell). At
 * an upstream of another protocol they are functions. What runs a search at the upstream itself is none of them.
 */

export const clientToolTypes = ['tool_search', 'local_shell'] as const;
export type ClientToolType = (typeof clientToolTypes)[number];

/** Whether a tool of a client's list, or a choice of one, is of such a type. */
export function clientToolType({ type, execution }: JsonObject): ClientToolType | null {
  if (type === 'local_shell') return type;
  return type === 'tool_search' && typeof execution === 'string' && execution !== 'server' ? type : null;
}

const text = { type: 'string' };

/** Arguments of the function that stands for the shell; the item has the same, under names of its own. */
const shellParameters: JsonObject = {
  type: 'object',
  properties: {
    command: { type: 'array', items: text, description: 'The program and its arguments, each for itself.' },
    workdir: { ...text, description: 'The folder to run it in.' },
    timeout_ms: { type: 'integer', description: 'How long it may take, in milliseconds.' },
    env: { type: 'object', additionalProperties: text, description: 'Environment variables to set.' },
    user: { ...text, description: 'The user to run it as.' },
  },
  required: ['command'],
};

const searchParameters: JsonObject = {
  type: 'object',
  properties: { query: { ...text, description: 'What the tools that are looked for should do.' } },
  required: ['query'],
};

/** The function that stands for such a tool. @param name at the upstream */
export function functionOf(tool: JsonObject, type: ClientToolType, name: string): Tool {
  const description = textOrNull(tool.description);
  if (type === 'local_shell')
    return {
      name,
      description: description ?? 'Runs a command on the machine of the user and gives its output.',
      parameters: shellParameters,
      strict: null,
    };
  const parameters = isObject(tool.parameters) ? tool.parameters : searchParameters;
  return {
    name,
    description: description ?? 'Searches for more tools. Those that are found can be called afterwards.',
    parameters,
    strict: null,
  };
}

/** A call of such a tool as that of a function. */
interface ClientCall {
  readonly type: ClientToolType;
  readonly id: string;
  /** JSON text of its arguments. */
  readonly input: string;
}

/** @returns null for an item of another type, and for a search that the upstream ran itself, which has no id */
export function clientCallOf(item: JsonObject): ClientCall | null {
  const id = callIdOf(item);
  if (id === null) return null;
  if (item.type === 'tool_search_call') {
    const { arguments: given } = item;
    return {
      type: 'tool_search',
      id,
      input: typeof given === 'string' ? given : JSON.stringify(given ?? {}),
    };
  }
  if (item.type !== 'local_shell_call') return null;
  const action = isObject(item.action) ? item.action : {};
  const { command = [], working_directory: workdir, timeout_ms, env, user } = action;
  const given = Object.entries({ command, workdir, timeout_ms, env, user }).filter(
    ([, value]) => value != null,
  );
  return { type: 'local_shell', id, input: JSON.stringify(Object.fromEntries(given)) };
}

/** The id that a call and its output share. Of a shell's, some clients know only the item's own. */
export function callIdOf({ type, call_id, id }: JsonObject): string | null {
  const isShell = type === 'local_shell_call' || type === 'local_shell_call_output';
  const found = textOrNull(call_id) ?? (isShell ? textOrNull(id) : null);
  return found === '' ? null : found;
}

/**
 * The members of the item that stands for a call, with commas before them.
 * @param input arguments as the model wrote them, as far as they are there
 */
export function clientCallMembers(type: ClientToolType, input: string): string {
  const parsed = parseJson(input);
  if (type === 'tool_search') {
    // An object is what clients read; a model that wrote another thing is told so by the client.
    const given = isObject(parsed) ? parsed : input === '' ? {} : { input };
    return `,"execution":"client","arguments":${JSON.stringify(given)}`;
  }
  return `,"action":${JSON.stringify(actionOf(isObject(parsed) ? parsed : {}))}`;
}

/** What is not as it should be is left out: a command without words runs nothing. */
function actionOf({ command, workdir, working_directory, timeout_ms, env, user }: JsonObject): JsonObject {
  const folder = textOrNull(workdir) ?? textOrNull(working_directory);
  const timeout = numberOrNull(timeout_ms);
  const name = textOrNull(user);
  return {
    type: 'exec',
    command: wordsOf(command),
    env: Object.fromEntries(
      Object.entries(isObject(env) ? env : {}).filter(([, value]) => typeof value === 'string'),
    ),
    ...(folder === null ? {} : { working_directory: folder }),
    ...(timeout === null ? {} : { timeout_ms: timeout }),
    ...(name === null ? {} : { user: name }),
  };
}

/** A line in the place of words is one for a shell. */
function wordsOf(command: unknown): readonly string[] {
  if (typeof command === 'string') return command === '' ? [] : ['bash', '-lc', command];
  const words = listOf(command);
  return words.every((word) => typeof word === 'string') ? words : [];
}
