import { isObject, type JsonObject } from './json.js';
import { refuse } from './messages-turns.js';
import type { ToolChoice } from './prompt.js';
import { RequestError } from './protocol-route.js';

const leastBudget = 1024;

/** How the model shall think, and whether the answer shows what it thought. */
export interface Thinking {
  readonly mode: 'off' | 'enabled' | 'adaptive';
  readonly shown: boolean;
}

/**
 * Reads `thinking`, and checks the settings that it does not go with.
 * @throws RequestError
 */
export function readThinking(body: JsonObject, toolChoice: ToolChoice, maxTokens: number): Thinking {
  const thinking = body.thinking ?? { type: 'disabled' };
  if (!isObject(thinking)) {
    throw refuse('thinking', 'Input should be an object');
  }
  const mode = modeOf(thinking, maxTokens);
  checkSampling(body, mode !== 'off');
  if (mode !== 'off' && (toolChoice.mode === 'required' || toolChoice.mode === 'named')) {
    throw new RequestError(400, 'Thinking may not be enabled when tool_choice forces tool use.');
  }
  const display = thinking.display ?? 'summarized';
  if (display !== 'summarized' && display !== 'omitted') {
    throw refuse(`thinking.${String(thinking.type)}.display`, "Input should be 'summarized' or 'omitted'");
  }
  return { mode, shown: display === 'summarized' };
}

function modeOf(thinking: JsonObject, maxTokens: number): Thinking['mode'] {
  switch (thinking.type) {
    case 'disabled':
      return 'off';
    case 'adaptive':
    case 'between_tools':
      return 'adaptive';
    case 'enabled':
      checkBudget(thinking.budget_tokens, maxTokens);
      return 'enabled';
    default:
      throw refuse(
        'thinking',
        "Input tag found using 'type' does not match any of the expected tags: 'adaptive', 'disabled', 'enabled'",
      );
  }
}

function checkBudget(budget: unknown, maxTokens: number): void {
  const path = 'thinking.enabled.budget_tokens';
  if (typeof budget !== 'number' || !Number.isInteger(budget)) {
    throw refuse(path, budget === undefined ? 'Field required' : 'Input should be a valid integer');
  }
  if (budget < leastBudget) {
    throw refuse(path, `Input should be greater than or equal to ${leastBudget}`);
  }
  if (budget >= maxTokens) {
    throw new RequestError(400, '`max_tokens` must be greater than `thinking.budget_tokens`.');
  }
}

function checkSampling(body: JsonObject, thinks: boolean): void {
  const temperature = numberIn(body, 'temperature', 1);
  const topP = numberIn(body, 'top_p', 1);
  const topK = numberIn(body, 'top_k', Infinity);
  if (!thinks) {
    return;
  }
  if (temperature !== null && temperature !== 1) {
    throw new RequestError(
      400,
      '`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.',
    );
  }
  if (topP !== null && topP < 0.95) {
    throw new RequestError(
      400,
      '`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled or in adaptive mode.',
    );
  }
  if (topK !== null) {
    throw new RequestError(400, '`top_k` must be unset when thinking is enabled or in adaptive mode.');
  }
}

function numberIn(body: JsonObject, name: string, most: number): number | null {
  const value = body[name] ?? null;
  if (value !== null && typeof value !== 'number') {
    throw refuse(name, 'Input should be a valid number');
  }
  if (value !== null && (value < 0 || value > most)) {
    throw refuse(
      name,
      most === Infinity ? 'Input should be greater than or equal to 0' : `range: 0..${most}`,
    );
  }
  return value;
}
