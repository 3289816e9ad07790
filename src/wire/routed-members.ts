/*
 * Members of whatever body by which calls are routed, limited or metered. They are looked for in bodies of every
 * protocol: one that a protocol does not have is refused or ignored by its upstreams, and no other meaning is known of
 * any.
 */

/** Those by which a body says how much it may be answered. */
export const outputMembers = {
  /** Tokens of one answer: the largest counts, since upstreams differ in which of them they read. */
  maxTokens: ['max_completion_tokens', 'max_tokens', 'max_output_tokens'],
  /** How many answers are asked for. */
  choices: ['n'],
  /** An object in which others have these. */
  configs: ['generationConfig', 'generation_config'],
} as const;

/** Those by which a body goes on from an earlier call, or names what an upstream has kept of one. */
export const goingOnMembers = ['previous_response_id', 'thread', 'conversation', 'container'] as const;

/** That by which an answer comes to another request than its own: one for it by its id, later. */
export const backgroundMember = 'background';

/** What may run at the upstream, in what that has kept of an earlier call. */
export const toolsMember = 'tools';

/** Those that stand in the body itself: nobody may send them past the check that has read them. */
export const routedMembers: readonly string[] = [
  ...['model', 'stream', 'stream_options'],
  ...outputMembers.choices,
  ...outputMembers.maxTokens,
];
