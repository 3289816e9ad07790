import { effortOfWord } from '../../conversation/effort.js';
import type { ConversationRequest, OutputFormat, Reasoning } from '../../conversation/request.js';
import {
  invalidValue,
  isObject,
  type JsonObject,
  listOf,
  missingValue,
  objectOf,
  textOrNull,
} from '../../wire/json.js';
import { decodeSchema } from '../openai-shared/settings.js';
import { ofType, untranslatable } from '../unsupported.js';

/** Type of an item of the input that changes settings from its place on, until the next such item. */
export const updateType = 'configuration_update';

/**
 * Reads the settings that items of the input can change: the last one counts.
 * @param body of `POST /v1/responses`
 * @throws {GatewayError} of status 400, naming the field
 */
export function decodeConfiguration(body: JsonObject): Pick<ConversationRequest, 'format' | 'reasoning'> {
  const reasoning = objectOf(body.reasoning);
  let effort = reasoning.effort;
  let effortAt = 'reasoning.effort';
  let format = objectOf(body.text).format;
  let formatAt = 'text.format';
  listOf(body.input).forEach((item, index) => {
    if (!isObject(item) || item.type !== updateType) return;
    const update = { effort: objectOf(item.reasoning).effort, format: objectOf(item.text).format };
    if (typeof update.effort === 'string') {
      effort = update.effort;
      effortAt = `input[${index}].reasoning.effort`;
    }
    if (isObject(update.format)) {
      format = update.format;
      formatAt = `input[${index}].text.format`;
    }
  });
  return { format: decodeFormat(format, formatAt), reasoning: decodeReasoning(reasoning, effort, effortAt) };
}

function decodeFormat(format: unknown, at: string): OutputFormat | null {
  if (!isObject(format) || format.type === 'text') return null;
  if (format.type === 'json_object') return { kind: 'object' };
  if (format.type !== 'json_schema') throw untranslatable(at, ofType(format.type));
  if (!isObject(format.schema)) throw missingValue(`${at}.schema`, 'an object');
  return decodeSchema(format, format.schema);
}

function decodeReasoning(value: JsonObject, effortWord: unknown, at: string): Reasoning | null {
  const word = textOrNull(effortWord);
  const effort = word === null ? null : effortOfWord(word);
  if (word !== null && effort === null) throw invalidValue(at, `'${word.slice(0, 64)}' is no effort`);
  const wanted = textOrNull(value.summary) ?? textOrNull(value.generate_summary);
  const summary = wanted === 'none' ? null : wanted;
  if (effort === null && summary === null) return null;
  return { effort, budget: null, show: summary !== null, summary };
}
