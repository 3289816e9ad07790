import type { ConversationRequest, TextProtocolName } from '../../conversation/request.js';

/** What some members of bodies say. */
interface Meaning {
  /** Paths of the members in each protocol; the first one is what clients call it. */
  readonly at: Readonly<Partial<Record<TextProtocolName, readonly string[]>>>;
  /** Whether the client has said it: a translation writes some of it by itself. */
  readonly isSaid: (request: ConversationRequest) => boolean;
}

/** As the vendors' references have them; see `body-edits.ts`. */
const meanings: readonly Meaning[] = [
  {
    at: sampling('temperature', 'temperature'),
    isSaid: ({ temperature }) => temperature !== null,
  },
  { at: sampling('top_p', 'topP'), isSaid: ({ topP }) => topP !== null },
  { at: sampling('top_k', 'topK'), isSaid: ({ topK }) => topK !== null },
  { at: sampling('seed', 'seed'), isSaid: ({ seed }) => seed !== null },
  {
    at: sampling('presence_penalty', 'presencePenalty'),
    isSaid: ({ presencePenalty }) => presencePenalty !== null,
  },
  {
    at: sampling('frequency_penalty', 'frequencyPenalty'),
    isSaid: ({ frequencyPenalty }) => frequencyPenalty !== null,
  },
  {
    at: { chat: ['stop'], messages: ['stop_sequences'], generateContent: ['generationConfig.stopSequences'] },
    isSaid: ({ stop }) => stop.length > 0,
  },
  {
    at: {
      chat: ['max_completion_tokens', 'max_tokens'],
      responses: ['max_output_tokens'],
      messages: ['max_tokens'],
      generateContent: ['generationConfig.maxOutputTokens'],
    },
    isSaid: ({ maxTokens }) => maxTokens !== null,
  },
  {
    at: {
      chat: ['reasoning_effort'],
      responses: ['reasoning.effort'],
      messages: ['thinking', 'output_config.effort'],
      generateContent: [
        'generationConfig.thinkingConfig',
        'generationConfig.thinkingConfig.thinkingLevel',
        'generationConfig.thinkingConfig.thinkingBudget',
      ],
    },
    isSaid: ({ reasoning }) => reasoning !== null,
  },
  {
    at: {
      chat: ['response_format'],
      responses: ['text.format'],
      messages: ['output_config.format'],
      generateContent: ['generationConfig.responseJsonSchema', 'generationConfig.responseSchema'],
    },
    isSaid: ({ format }) => format !== null,
  },
  {
    at: { chat: ['verbosity'], responses: ['text.verbosity'] },
    isSaid: ({ verbosity }) => verbosity !== null,
  },
  {
    at: {
      chat: ['user', 'safety_identifier'],
      responses: ['user', 'safety_identifier'],
      messages: ['metadata.user_id'],
    },
    isSaid: ({ user }) => user !== null,
  },
  {
    at: {
      chat: ['tools'],
      responses: ['tools'],
      messages: ['tools'],
      generateContent: ['tools'],
    },
    isSaid: ({ tools, search }) => tools.length > 0 || search !== undefined,
  },
  {
    at: {
      chat: ['tool_choice'],
      responses: ['tool_choice'],
      messages: ['tool_choice'],
      generateContent: ['toolConfig.functionCallingConfig'],
    },
    isSaid: ({ toolChoice }) => toolChoice !== null,
  },
  {
    at: {
      chat: ['parallel_tool_calls'],
      responses: ['parallel_tool_calls'],
      messages: ['tool_choice.disable_parallel_tool_use'],
    },
    isSaid: ({ parallelCalls }) => parallelCalls !== null,
  },
  {
    at: {
      chat: ['logprobs', 'top_logprobs'],
      responses: ['include', 'top_logprobs'],
      generateContent: ['generationConfig.responseLogprobs', 'generationConfig.logprobs'],
    },
    isSaid: ({ logprobs }) => logprobs !== null,
  },
  { at: { chat: ['logit_bias'] }, isSaid: ({ logitBias }) => logitBias !== null },
  {
    at: { chat: ['n'], generateContent: ['generationConfig.candidateCount'] },
    isSaid: ({ candidates }) => candidates > 1,
  },
];

/** A setting that three protocols have in the body itself, and one in an object of it. */
function sampling(name: string, inObject: string): Meaning['at'] {
  return {
    chat: [name],
    responses: [name],
    messages: [name],
    generateContent: [`generationConfig.${inObject}`],
  };
}

/**
 * What a member that rules have left out of a translated body was to the client.
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
  for (const { at, isSaid } of meanings) {
    const name = at[request.from]?.[0];
    const isMeant = at[to]?.some((other) => other === path || other.startsWith(`${path}.`)) === true;
    if (isMeant && name !== undefined && isSaid(request)) names.push(name);
  }
  // Chat and responses both have these under one name.
  if (request.serving?.[path] !== undefined) names.push(path);
  return names;
}
