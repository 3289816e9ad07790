import type { LeftOut } from './left-out.js';
import type { ContentPart, ConversationRequest, TextProtocolName, UserPart } from './request.js';

/**
 * Paths of a setting's members. The first is the name for clients of the protocol. None if the protocol has no member
 * for the setting, or only members within lists, which paths do not reach.
 */
type Paths = Readonly<Record<TextProtocolName, readonly string[]>>;

/** Settings of a tool or an image, which every protocol has in lists. */
const inLists: Paths = { chat: [], responses: [], messages: [], generateContent: [] };

/** As in the vendors' references. */
const settings = {
  temperature: sampling('temperature', 'temperature'),
  topP: sampling('top_p', 'topP'),
  topK: sampling('top_k', 'topK'),
  seed: sampling('seed', 'seed'),
  presencePenalty: sampling('presence_penalty', 'presencePenalty'),
  frequencyPenalty: sampling('frequency_penalty', 'frequencyPenalty'),
  stop: {
    chat: ['stop'],
    responses: [],
    messages: ['stop_sequences'],
    generateContent: ['generationConfig.stopSequences'],
  },
  maxTokens: {
    chat: ['max_completion_tokens', 'max_tokens'],
    responses: ['max_output_tokens'],
    messages: ['max_tokens'],
    generateContent: ['generationConfig.maxOutputTokens'],
  },
  reasoning: {
    chat: ['reasoning_effort'],
    responses: ['reasoning.effort'],
    messages: ['thinking', 'output_config.effort'],
    generateContent: [
      'generationConfig.thinkingConfig',
      'generationConfig.thinkingConfig.thinkingLevel',
      'generationConfig.thinkingConfig.thinkingBudget',
    ],
  },
  format: {
    chat: ['response_format'],
    responses: ['text.format'],
    messages: ['output_config.format'],
    generateContent: ['generationConfig.responseJsonSchema', 'generationConfig.responseSchema'],
  },
  /** The description of an answer's format, which is beside the schema. */
  formatDescription: {
    chat: ['response_format.json_schema.description'],
    responses: ['text.format.description'],
    messages: [],
    generateContent: [],
  },
  verbosity: {
    chat: ['verbosity'],
    responses: ['text.verbosity'],
    messages: [],
    generateContent: [],
  },
  user: {
    chat: ['user', 'safety_identifier'],
    responses: ['user', 'safety_identifier'],
    messages: ['metadata.user_id'],
    generateContent: [],
  },
  tools: {
    chat: ['tools'],
    responses: ['tools'],
    messages: ['tools'],
    generateContent: ['tools'],
  },
  toolChoice: {
    chat: ['tool_choice'],
    responses: ['tool_choice'],
    messages: ['tool_choice'],
    generateContent: ['toolConfig.functionCallingConfig'],
  },
  parallelCalls: {
    chat: ['parallel_tool_calls'],
    responses: ['parallel_tool_calls'],
    messages: ['tool_choice.disable_parallel_tool_use'],
    generateContent: [],
  },
  logprobs: {
    chat: ['logprobs', 'top_logprobs'],
    responses: ['include', 'top_logprobs'],
    messages: [],
    generateContent: ['generationConfig.responseLogprobs', 'generationConfig.logprobs'],
  },
  logitBias: {
    chat: ['logit_bias'],
    responses: [],
    messages: [],
    generateContent: [],
  },
  candidates: {
    chat: ['n'],
    responses: [],
    messages: [],
    generateContent: ['generationConfig.candidateCount'],
  },
  prefill: {
    chat: ['messages'],
    responses: ['input'],
    messages: ['messages'],
    generateContent: ['contents'],
  },
  strict: inLists,
  detail: inLists,
  fileName: {
    chat: ['filename'],
    responses: ['filename'],
    messages: ['title'],
    generateContent: [],
  },
  signature: {
    chat: ['reasoning_content'],
    responses: ['encrypted_content'],
    messages: ['signature'],
    generateContent: ['thoughtSignature'],
  },
} satisfies Record<string, Paths>;

/** Settings of a request besides its turns, by their names in neutral requests. */
export type Setting = keyof typeof settings;

/** A setting that three protocols have at the top of the body, and one in an object. */
function sampling(name: string, inObject: string): Paths {
  return {
    chat: [name],
    responses: [name],
    messages: [name],
    generateContent: [`generationConfig.${inObject}`],
  };
}

/** Returns whether the client made a setting. A translation adds some settings itself. */
export function isSetByClient(request: ConversationRequest, setting: Setting): boolean {
  switch (setting) {
    case 'stop':
      return request.stop.length > 0;
    case 'candidates':
      return request.candidates > 1;
    case 'logitBias':
      return Object.keys(request.logitBias ?? {}).length > 0;
    case 'tools':
      return request.tools.length > 0 || request.search !== undefined;
    case 'strict':
      return request.tools.some(({ strict }) => strict === true);
    case 'detail':
      return hasPart(request, (part) => part.kind === 'image' && (part.detail ?? 'auto') !== 'auto');
    case 'fileName':
      return hasPart(request, (part) => part.kind === 'document' && (part.name ?? '') !== '');
    case 'formatDescription':
      return request.format?.kind === 'schema' && (request.format.description ?? '') !== '';
    case 'prefill':
    case 'signature':
      return false;
    default:
      return request[setting] !== null;
  }
}

/** Returns whether the user or a tool's result has a part. */
function hasPart({ turns }: ConversationRequest, isWanted: (part: ContentPart) => boolean): boolean {
  const isWithin = (part: UserPart) =>
    part.kind === 'toolResult' ? part.content.some(isWanted) : isWanted(part);
  return turns.some((turn) => turn.role === 'user' && turn.parts.some(isWithin));
}

/**
 * Returns the name of a setting in the client's protocol. If that lacks the setting, the client cannot have made it,
 * and the neutral name is returned.
 */
export function settingName(from: TextProtocolName, setting: Setting): string {
  const paths: Paths = settings[setting];
  return paths[from][0] ?? setting;
}

/** Records a setting that is left out under the client's name for it. */
export function leaveOut(
  request: Pick<ConversationRequest, 'from' | 'userMember'>,
  setting: Setting,
  leftOut: LeftOut,
): void {
  leftOut.add(sentName(request, setting) ?? setting);
}

/** Returns the client's name for a setting; undefined if its protocol lacks it. */
function sentName(
  { from, userMember }: Pick<ConversationRequest, 'from' | 'userMember'>,
  setting: Setting,
): string | undefined {
  const paths: Paths = settings[setting];
  return setting === 'user' && userMember !== undefined ? userMember : paths[from][0];
}

/**
 * Returns the client's names for a member that a target's rules removed from a translated body.
 * @param to protocol of the body
 * @param path path of the member, with dots
 * @returns no names if the client did not set it
 */
export function namesRemovedByRules(
  request: ConversationRequest,
  to: TextProtocolName,
  path: string,
): readonly string[] {
  const names: string[] = [];
  for (const setting of Object.keys(settings) as Setting[]) {
    const paths: Paths = settings[setting];
    const isMeant = paths[to].some((other) => other === path || other.startsWith(`${path}.`));
    const name = sentName(request, setting);
    if (isMeant && name !== undefined && isSetByClient(request, setting)) names.push(name);
  }
  // Chat and responses share these names.
  if (request.serving?.[path] !== undefined) names.push(path);
  return names;
}
