import { effortOfBudget, effortOfWord } from '../../../conversation/effort.js';
import {
  type ConversationRequest,
  type Effort,
  efforts,
  type OutputFormat,
  type Reasoning,
} from '../../../conversation/request.js';
import { isObject, type JsonObject, numberOrNull, textOrNull } from '../../../wire/json.js';
import { decodeStop, wrongValue } from '../../../wire/reading.js';
import { untranslatable } from '../../unsupported.js';
import { decodeTexts } from './content-decode.js';
import { decodeParallelCalls, decodeToolChoice, decodeTools } from './tools-decode.js';
import { decodeMessages } from './turns-decode.js';

/**
 * Reads the body of `POST /v1/messages` or of its question for the number of tokens; see `TextCodec.decodeRequest`.
 * What no other protocol can say is dropped where the answer is the same without it.
 * @throws {GatewayError} of status 400, naming the field
 */
export function decodeRequest(body: JsonObject, stream: boolean): ConversationRequest {
  refuseServerState(body);
  const system = decodeTexts(body.system, 'system');
  const turns = decodeMessages(body.messages, system);
  const { tools, hostedTools } = decodeTools(body.tools);
  const maxTokens = numberOrNull(body.max_tokens);
  return {
    from: 'messages',
    stream,
    system,
    turns,
    tools,
    hostedTools,
    toolChoice: decodeToolChoice(body.tool_choice),
    parallelCalls: decodeParallelCalls(body.tool_choice),
    format: decodeFormat(body.output_config),
    reasoning: decodeReasoning(body),
    // Zero only warms a cache; elsewhere the least is one.
    maxTokens: maxTokens === null ? null : Math.max(1, maxTokens),
    temperature: numberOrNull(body.temperature),
    topP: numberOrNull(body.top_p),
    topK: numberOrNull(body.top_k),
    stop: decodeStop(body.stop_sequences),
    candidates: 1,
    seed: null,
    presencePenalty: null,
    frequencyPenalty: null,
    logitBias: null,
    logprobs: null,
    verbosity: null,
    user: isObject(body.metadata) ? textOrNull(body.metadata.user_id) : null,
    includeUsage: true,
    echo: null,
    compaction: null,
  };
}

/** What lives at the vendor, or is reached from there, is not in the conversation. */
function refuseServerState(body: JsonObject): void {
  if ((body.container ?? null) !== null) throw untranslatable('container');
  if (Array.isArray(body.mcp_servers) && body.mcp_servers.length > 0) throw untranslatable('mcp_servers');
}

function decodeFormat(config: unknown): OutputFormat | null {
  const format = isObject(config) ? config.format : null;
  if (!isObject(format)) return null;
  const at = 'output_config.format';
  if (format.type !== 'json_schema') throw untranslatable(at, `of type '${String(format.type)}'`);
  if (!isObject(format.schema)) throw wrongValue(`${at}.schema`, 'an object');
  return { kind: 'schema', name: null, description: null, schema: format.schema, strict: null };
}

/**
 * Reads `thinking` and `output_config.effort`. Without `thinking` an effort counts, but nothing is shown: the client
 * did not ask to see any of it.
 * @throws {GatewayError} of status 400 for an effort or a type of thinking that is none of the documented ones
 */
function decodeReasoning(body: JsonObject): Reasoning | null {
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
