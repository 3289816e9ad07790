import type { TextProtocolName } from '../../../src/conversation/request.js';

/** What one protocol cannot express of another. */
interface Loss {
  readonly clients: readonly TextProtocolName[];
  /** Protocols of the upstream. */
  readonly wires: readonly TextProtocolName[];
  readonly scenarios: readonly string[];
  /** `reject`: the call is refused. `drop`: it is served without the named part. */
  readonly fate:
    | { readonly kind: 'reject'; readonly param: Readonly<Partial<Record<TextProtocolName, string>>> }
    | {
        readonly kind: 'drop';
        readonly missing: readonly string[];
        /** How the answer's head names the loss of its request; absent for a loss of the answer. */
        readonly told?: Readonly<Partial<Record<TextProtocolName, string>>>;
      };
}

/** All losses that the scenarios may have. Everything else must work. */
export const losses: readonly Loss[] = [
  {
    // The gateway itself ends the answer.
    clients: ['chat', 'messages', 'generateContent'],
    wires: ['responses'],
    scenarios: ['stop sequence'],
    fate: { kind: 'drop', missing: ['the stop sequences'] },
  },
  {
    // Neither protocol says which of the stop sequences was reached, so the answer looks like one that ended
    // normally.
    clients: ['messages'],
    wires: ['chat', 'generateContent'],
    scenarios: ['stop sequence'],
    fate: { kind: 'drop', missing: ['the sequence that was met'] },
  },
  {
    clients: ['chat', 'generateContent'],
    wires: ['messages', 'responses'],
    scenarios: ['two candidates'],
    fate: { kind: 'reject', param: { chat: 'n', generateContent: 'generationConfig.candidateCount' } },
  },
  {
    clients: ['chat', 'generateContent', 'responses'],
    wires: ['messages'],
    scenarios: ['log probabilities'],
    fate: {
      kind: 'reject',
      param: {
        chat: 'logprobs',
        generateContent: 'generationConfig.responseLogprobs',
        responses: 'include',
      },
    },
  },
  {
    clients: ['messages', 'generateContent'],
    wires: ['chat', 'responses'],
    scenarios: ['top k'],
    fate: {
      kind: 'drop',
      missing: ['top k'],
      told: { messages: 'top_k', generateContent: 'generationConfig.topK' },
    },
  },
  {
    // Only some models of chat upstreams search: their targets say so.
    clients: ['responses', 'messages', 'generateContent'],
    wires: ['chat'],
    scenarios: ['web search'],
    fate: {
      kind: 'drop',
      missing: ['the search'],
      told: {
        responses: 'tools.web_search',
        messages: 'tools.web_search_20250305',
        generateContent: 'tools.googleSearch',
      },
    },
  },
  {
    // What is signed or encrypted is carried by its call. Other reasoning is not carried.
    clients: ['chat'],
    wires: ['responses', 'messages', 'generateContent'],
    scenarios: ['tool loop with reasoning'],
    fate: { kind: 'drop', missing: [], told: { chat: 'reasoning_content' } },
  },
  {
    clients: ['chat'],
    wires: ['generateContent'],
    scenarios: ['tool loop with redacted reasoning'],
    fate: { kind: 'drop', missing: [], told: { chat: 'reasoning_content' } },
  },
];

/** Returns what is lost if a client's call reaches an upstream in a protocol, or null. */
export function lossOf(client: TextProtocolName, wire: TextProtocolName, scenario: string): Loss | null {
  return (
    losses.find(
      (loss) =>
        loss.scenarios.includes(scenario) && loss.clients.includes(client) && loss.wires.includes(wire),
    ) ?? null
  );
}
