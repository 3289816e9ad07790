import type { Tool } from '../../conversation/request.js';
import {
  isObject,
  type JsonObject,
  listOf,
  numberOrNull,
  objectOf,
  parseJson,
  textOf,
  textOrNull,
} from '../../wire/json.js';

/*
 * The client's own tools for which this protocol has item types: the search for more tools, and tools that work on the
 * client's machine, which are its shells and its file patches
 * (https://developers.openai.com/api/docs/guides/tools-tool-search, …/tools-local-shell, …/tools-shell and
 * …/tools-apply-patch). An upstream of another protocol gets them as functions. A search or a shell that the upstream
 * itself runs is not among them.
 */

export const clientToolTypes = ['tool_search', 'local_shell', 'shell', 'apply_patch'] as const;
export type ClientToolType = (typeof clientToolTypes)[number];

/** Returns the type of such a tool, or of such a tool's choice; null for any other. */
export function clientToolType({ type, execution, environment }: JsonObject): ClientToolType | null {
  if (type === 'local_shell' || type === 'apply_patch') return type;
  if (type === 'shell') return isObject(environment) && environment.type !== 'local' ? null : type;
  return type === 'tool_search' && typeof execution === 'string' && execution !== 'server' ? type : null;
}

const text = { type: 'string' };

/** Arguments of the function that replaces the shell. The item has the same, under names of its own. */
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

const commandsParameters: JsonObject = {
  type: 'object',
  properties: {
    commands: { type: 'array', items: text, description: 'Lines for the shell, each run for itself.' },
    timeout_ms: { type: 'integer', description: 'How long each may take, in milliseconds.' },
    max_output_length: { type: 'integer', description: 'How many characters of its output are wanted.' },
  },
  required: ['commands'],
};

const patchTypes = ['create_file', 'update_file', 'delete_file'] as const;

const patchParameters: JsonObject = {
  type: 'object',
  properties: {
    type: { type: 'string', enum: [...patchTypes] },
    path: { ...text, description: 'The file.' },
    diff: {
      ...text,
      description:
        'For create_file all lines of the file, each with a + before it. For update_file a section for each change: a ' +
        'line @@, and lines of the file from three before the change to three after it, each with a space before ' +
        'it where it stays, a - where it goes and a + where it is new; no line numbers. Not for delete_file.',
    },
  },
  required: ['type', 'path'],
};

const searchParameters: JsonObject = {
  type: 'object',
  properties: { query: { ...text, description: 'What the tools that are looked for should do.' } },
  required: ['query'],
};

/**
 * Returns the function that replaces such a tool.
 * @param name at the upstream
 */
export function functionOf(tool: JsonObject, type: ClientToolType, name: string): Tool {
  const [description, parameters] = functions[type];
  return {
    name,
    description: textOrNull(tool.description) ?? description,
    parameters: type === 'tool_search' && isObject(tool.parameters) ? tool.parameters : parameters,
    strict: null,
  };
}

const functions: Readonly<Record<ClientToolType, readonly [description: string, parameters: JsonObject]>> = {
  tool_search: ['Searches for more tools. Those that are found can be called afterwards.', searchParameters],
  local_shell: ['Runs a command on the machine of the user and gives its output.', shellParameters],
  shell: ['Runs commands on the machine of the user and gives their output.', commandsParameters],
  apply_patch: ['Creates, changes or deletes a file on the machine of the user.', patchParameters],
};

/** A call of such a tool, as a call of a function. */
interface ClientCall {
  readonly type: ClientToolType;
  readonly id: string;
  /** JSON text of the arguments. */
  readonly input: string;
}

/** @returns null for an item of another type, and for a search that the upstream ran itself, which has no id */
export function clientCallOf(item: JsonObject): ClientCall | null {
  const id = callIdOf(item);
  if (id === null) return null;
  const action = objectOf(item.action);
  switch (item.type) {
    case 'tool_search_call': {
      const { arguments: given } = item;
      const input = typeof given === 'string' ? given : JSON.stringify(given ?? {});
      return { type: 'tool_search', id, input };
    }
    case 'local_shell_call': {
      const { command = [], working_directory: workdir, timeout_ms, env, user } = action;
      return { type: 'local_shell', id, input: inputOf({ command, workdir, timeout_ms, env, user }) };
    }
    case 'shell_call': {
      const { commands = [], timeout_ms, max_output_length } = action;
      return { type: 'shell', id, input: inputOf({ commands, timeout_ms, max_output_length }) };
    }
    case 'apply_patch_call': {
      const { type, path, diff } = objectOf(item.operation);
      return { type: 'apply_patch', id, input: inputOf({ type, path, diff }) };
    }
    default:
      return null;
  }
}

function inputOf(members: JsonObject): string {
  return JSON.stringify(Object.fromEntries(Object.entries(members).filter(([, value]) => value != null)));
}

/**
 * Returns the result of a call of a shell or of a patch as text.
 * @returns null for an item of another type, and for an output that is neither a text nor a list of texts
 */
export function clientOutputOf({ type, output, status }: JsonObject): string | null {
  if (type === 'apply_patch_call_output')
    return [status === 'failed' ? 'Failed.' : 'Done.', textOf(output)].join(' ').trim();
  if (type !== 'shell_call_output') return null;
  return listOf(output).filter(isObject).map(resultOf).join('\n');
}

function resultOf({ stdout, stderr, outcome }: JsonObject): string {
  const { type, exit_code } = objectOf(outcome);
  const end = type === 'timeout' ? '[timed out]' : `[exit code ${numberOrNull(exit_code) ?? 'unknown'}]`;
  return [textOrNull(stdout), textOrNull(stderr), end]
    .filter((text) => text !== null && text !== '')
    .join('\n');
}

/** Returns the id that a call and its output share. For a shell, some clients send only the id of the item. */
export function callIdOf({ type, call_id, id }: JsonObject): string | null {
  const isShell = type === 'local_shell_call' || type === 'local_shell_call_output';
  const found = textOrNull(call_id) ?? (isShell ? textOrNull(id) : null);
  return found === '' ? null : found;
}

/**
 * Returns the members of the item of a call, with commas before them.
 * @param input arguments as the model wrote them, perhaps incomplete
 */
export function clientCallMembers(type: ClientToolType, input: string): string {
  const parsed = parseJson(input);
  if (type === 'tool_search') {
    // Clients read an object. If the model wrote anything else, the client reports that to it.
    const given = isObject(parsed) ? parsed : input === '' ? {} : { input };
    return `,"execution":"client","arguments":${JSON.stringify(given)}`;
  }
  const given = objectOf(parsed);
  if (type === 'local_shell') return `,"action":${JSON.stringify(actionOf(given))}`;
  if (type === 'shell') return `,"action":${JSON.stringify(commandsOf(given))},"environment":null`;
  return `,"operation":${JSON.stringify(operationOf(given))}`;
}

/** A single line may replace the list. */
function commandsOf({ commands, timeout_ms, max_output_length }: JsonObject): JsonObject {
  const lines = typeof commands === 'string' ? [commands] : listOf(commands);
  return {
    commands: lines.every((line) => typeof line === 'string') ? lines : [],
    timeout_ms: numberOrNull(timeout_ms),
    max_output_length: numberOrNull(max_output_length),
  };
}

/** The path is empty, which the client refuses, if the model wrote none. */
function operationOf({ type, path, diff }: JsonObject): JsonObject {
  const known = patchTypes.find((each) => each === type) ?? 'update_file';
  const operation = { type: known, path: textOf(path) };
  return known === 'delete_file' ? operation : { ...operation, diff: textOf(diff) };
}

/** Omits members of a wrong type: a command without words runs nothing. */
function actionOf({ command, workdir, working_directory, timeout_ms, env, user }: JsonObject): JsonObject {
  const folder = textOrNull(workdir) ?? textOrNull(working_directory);
  const timeout = numberOrNull(timeout_ms);
  const name = textOrNull(user);
  return {
    type: 'exec',
    command: wordsOf(command),
    env: Object.fromEntries(Object.entries(objectOf(env)).filter(([, value]) => typeof value === 'string')),
    ...(folder === null ? {} : { working_directory: folder }),
    ...(timeout === null ? {} : { timeout_ms: timeout }),
    ...(name === null ? {} : { user: name }),
  };
}

/** A single line instead of words is a command for a shell. */
function wordsOf(command: unknown): readonly string[] {
  if (typeof command === 'string') return command === '' ? [] : ['bash', '-lc', command];
  const words = listOf(command);
  return words.every((word) => typeof word === 'string') ? words : [];
}
