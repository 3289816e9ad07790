import { readEffort } from '../../conversation/effort.js';
import type { EffortWord } from '../../conversation/request.js';
import { type JsonObject, objectOf } from '../../wire/json.js';

/**
 * Returns whether the model no longer sees the text of a system message: a message of the user has come after it
 * (`clear_at`).
 * @param lastUser index of the last message of the user
 */
export function isCleared({ clear_at: end }: JsonObject, index: number, lastUser: number): boolean {
  return end === 'next_user_message' && index < lastUser;
}

/**
 * Returns the effort that system messages set for the answer. One that stands behind new input of the user applies at
 * once, any other from the next input on (https://platform.claude.com/docs/en/build-with-claude/effort-per-message).
 * @returns null if none has been set
 * @throws {GatewayError} with status 400 for a value that cannot be an effort
 */
export function effortOfMessages(messages: readonly JsonObject[]): EffortWord | null {
  let current: EffortWord | null = null;
  let next: EffortWord | null = null;
  let isAfterInput = false;
  messages.forEach(({ role, content, output_config: config }, index) => {
    if (role === 'system') {
      const effort = readEffort(objectOf(config).effort, `messages[${index}].output_config.effort`);
      if (effort === null) return;
      next = effort;
      if (isAfterInput) current = effort;
    } else {
      isAfterInput = role === 'user' && isInput(content);
      if (isAfterInput) current = next;
    }
  });
  return current;
}

/** Tells whether a message of the user has more than results of tools. */
function isInput(content: unknown): boolean {
  return !Array.isArray(content) || content.some((block) => objectOf(block).type !== 'tool_result');
}
