import type { Tool } from '../../conversation/request.js';
import { type JsonObject, numberOrNull, textOf } from '../../wire/json.js';

/*
 * Tools whose schemas the vendor's models know and that the client runs itself
 * (https://platform.claude.com/docs/en/agents-and-tools/tool-use/bash-tool, …/text-editor-tool and …/memory-tool). An
 * upstream of another protocol gets them as functions, and their calls and results as those of any tool. Tools that
 * need a screen (`computer_*`) are not among them.
 */

const text = (description: string): JsonObject => ({ type: 'string', description });

function commands(names: readonly string[], members: JsonObject): JsonObject {
  const command = { type: 'string', enum: names, description: 'What to do.' };
  return { type: 'object', properties: { command, ...members }, required: ['command'] };
}

const bash: JsonObject = {
  type: 'object',
  properties: {
    command: text('The command to run. Required unless the tool is restarted.'),
    restart: { type: 'boolean', description: 'Starts the shell anew.' },
  },
};

/** Members that both tools for files have. */
const fileMembers: JsonObject = {
  path: text('The file or folder.'),
  file_text: text('For create: what the file is to hold.'),
  view_range: {
    type: 'array',
    items: { type: 'integer' },
    description: 'For view of a file: its first and last line, counted from 1; -1 for the end.',
  },
  old_str: text('For str_replace: a text that stands in the file once.'),
  new_str: text('For str_replace: what takes its place.'),
  insert_line: {
    type: 'integer',
    description: 'For insert: the line to insert behind, 0 for the beginning.',
  },
};
const edits = ['view', 'create', 'str_replace', 'insert'];

interface ClientTool {
  /** Prefix of the tool's type. A date follows. */
  readonly prefix: string;
  readonly description: string;
  parametersOf(type: string): JsonObject;
}

const tools: readonly ClientTool[] = [
  {
    prefix: 'bash_',
    description: 'Runs commands in a shell on the machine of the user, which keeps its state between calls.',
    parametersOf: () => bash,
  },
  {
    prefix: 'text_editor_',
    description: 'Shows, makes and edits files of text on the machine of the user.',
    // Versions before `text_editor_20250429` have an undo command.
    parametersOf: (type) =>
      commands(type < 'text_editor_20250429' ? [...edits, 'undo_edit'] : edits, {
        ...fileMembers,
        new_str: text('For str_replace: what takes its place. For insert: the text.'),
      }),
  },
  {
    prefix: 'memory_',
    description:
      'Keeps files under /memories between conversations. Look there for what is known before a task, and write down what is ' +
      'worth knowing later.',
    parametersOf: () =>
      commands([...edits, 'delete', 'rename'], {
        ...fileMembers,
        insert_text: text('For insert: the text.'),
        old_path: text('For rename: the path as it is.'),
        new_path: text('For rename: the path as it is to be.'),
      }),
  },
];

/** @returns the function that replaces a tool of such a type, or null for any other type */
export function clientFunctionOf(tool: JsonObject): Tool | null {
  const type = textOf(tool.type);
  const name = textOf(tool.name);
  const known = tools.find(({ prefix }) => type.startsWith(prefix));
  if (known === undefined || name === '') return null;
  const most = numberOrNull(tool.max_characters);
  const bound = most === null ? '' : ` At most ${most} characters of a file are shown.`;
  return {
    name,
    description: known.description + bound,
    parameters: known.parametersOf(type),
    strict: null,
  };
}
