import { effortOfBudget, effortOfWord } from '../../conversation/effort.js';
import { isObject, type JsonObject, numberOrNull } from '../../conversation/json.js';
import { wrongValue } from '../../conversation/reading.js';
import { type Effort, efforts, type Reasoning } from '../../conversation/request.js';
import { untranslatable } from '../../conversation/unsupported.js';

/**
 * Reads `thinking` and `output_config.effort`. Without `thinking` an effort counts, but nothing is shown: the client
 * did not ask to see any of it.
 * @throws {GatewayError} of status 400 for an effort or a type of thinking that is none of the documented ones
 */
export function decodeReasoning(body: JsonObject): Reasoning | null {
  const effort = decodeEffort(body.output_config);
  const { thinking } = body;
  if (thinking === undefined || thinking === null)
    return effort === null ? null : { effort, budget: null, show: false, summary: null };
  if (!isObject(thinking)) throw wrongValue('thinking', "an object with a 'type'");
  const show = thinking.display !== 'omitted';
  switch (thinking.type) {
    case 'enabled': {
      const budget = numberOrNull(thinking.budget_tokens);
      if (budget === null) throw wrongValue('thinking.budget_tokens', 'a number');
      return { effort: effortOfBudget(budget), budget, show, summary: null };
    }
    case 'adaptive':
    case 'between_tools':
      return { effort, budget: null, show, summary: null };
    case 'disabled':
      return { effort: 'none', budget: null, show: false, summary: null };
    default:
      throw untranslatable('thinking', `of type '${String(thinking.type)}'`);
  }
}

function decodeEffort(config: unknown): Effort | null {
  const word = isObject(config) ? config.effort : null;
  if (word === undefined || word === null) return null;
  const effort = typeof word === 'string' ? effortOfWord(word) : null;
  if (effort === null) throw wrongValue('output_config.effort', `one of ${efforts.join(', ')}`);
  return effort;
}
