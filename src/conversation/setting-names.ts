import type { LeftOut } from './left-out.js';
import type { ConversationRequest, TextProtocolName, UserPart } from './request.js';

/** Paths of the members that say a setting; the first one is what clients of the protocol call it. */
type Paths = Readonly<Partial<Record<TextProtocolName, readonly string[]>>>;

/** As the vendors' references have them; a protocol that has no member for a setting is missing. */
const settings = {
  temperature: sampling('temperature', 'temperature'),
  topP: sampling('top_p', 'topP'),
  topK: sampling('top_k', 'topK'),
  seed: sampling('seed', 'seed'),
  presencePenalty: sampling('presence_penalty', 'presencePenalty'),
  frequencyPenalty: sampling('frequency_penalty', 'frequencyPenalty'),
  stop: {
    chat: ['stop'],
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
  /** What an answer is for, which stands beside its schema. */
  formatDescription: {
    chat: ['response_format.json_schema.description'],
    responses: ['text.format.description'],
  },
  verbosity: { chat: ['verbosity'], responses: ['text.verbosity'] },
  user: {
    chat: ['user', 'safety_identifier'],
    responses: ['user', 'safety_identifier'],
    messages: ['metadata.user_id'],
  },
  tools: { chat: ['tools'], responses: ['tools'], messages: ['tools'], generateContent: ['tools'] },
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
  },
  logprobs: {
    chat: ['logprobs', 'top_logprobs'],
    responses: ['include', 'top_logprobs'],
    generateContent: ['generationConfig.responseLogprobs', 'generationConfig.logprobs'],
  },
  logitBias: { chat: ['logit_bias'] },
  candidates: { chat: ['n'], generateContent: ['generationConfig.candidateCount'] },
  prefill: {
    chat: ['messages'],
    responses: ['input'],
    messages: ['messages'],
    generateContent: ['contents'],
  },
  /** Of a tool, of an image, of a document, and of reasoning: in lists, where no path leads. */
  strict: {},
  detail: {},
  fileName: { chat: ['filename'], responses: ['filename'], messages: ['title'] },
  signature: {
    chat: ['reasoning_content'],
    responses: ['encrypted_content'],
    messages: ['signature'],
    generateContent: ['thoughtSignature'],
  },
} satisfies Record<string, Paths>;

/** What a request may say beside its turns, by what neutral requests call it. */
export type Setting = keyof typeof settings;

/** A setting that three protocols have in the body itself, and one in an object of it. */
function sampling(name: string, inObject: string): Paths {
  return {
    chat: [name],
    responses: [name],
    messages: [name],
    generateContent: [`generationConfig.${inObject}`],
  };
}

/** Whether the client has said it: a translation writes some of it by itself. */
export function isSaid(request: ConversationRequest, setting: Setting): boolean {
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

function hasPart({ turns }: ConversationRequest, isWanted: (part: UserPart) => boolean): boolean {
  return turns.some((turn) => turn.role === 'user' && turn.parts.some(isWanted));
}

/** What a client of the protocol calls the setting; one that its protocol lacks it cannot have said. */
export function settingName(from: TextProtocolName, setting: Setting): string {
  const paths: Paths = settings[setting];
  return paths[from]?.[0] ?? setting;
}

/** Tells the name of a setting that is left out as the client wrote it. */
export function leaveOut(
  { from }: Pick<ConversationRequest, 'from'>,
  setting: Setting,
  leftOut: LeftOut,
): void {
  leftOut.add(settingName(from, setting));
}

/**
 * What a member that a target's rules have left out of a translated body was to the client.
 * @param to protocol of the body
 * @param path of the member, with dots
 * @returns names as the client has them; none for what the client has not said
 */
export function ruledOut(
  request: ConversationRequest,
  to: TextProtocolName,
  path: string,
): readonly string[] {
  const names: string[] = [];
  for (const setting of Object.keys(settings) as Setting[]) {
    const paths: Paths = settings[setting];
    const isMeant = paths[to]?.some((other) => other === path || other.startsWith(`${path}.`)) === true;
    const name = paths[request.from]?.[0];
    if (isMeant && name !== undefined && isSaid(request, setting)) names.push(name);
  }
  // Chat and responses both have these under one name.
  if (request.serving?.[path] !== undefined) names.push(path);
  return names;
}
