import type { TextProtocolName } from '../../../src/conversation/request.js';

/** What one protocol cannot say that another can. */
interface Loss {
  readonly clients: readonly TextProtocolName[];
  /** Protocols in which the upstream was called. */
  readonly wires: readonly TextProtocolName[];
  readonly scenarios: readonly string[];
  /** `reject`: the call is refused. `drop`: it is served without what is named. */
  readonly fate:
    | { readonly kind: 'reject'; readonly param: Readonly<Partial<Record<TextProtocolName, string>>> }
    | {
        readonly kind: 'drop';
        readonly missing: readonly string[];
        /** How the answer's head names what its request lost; absent where the answer is what loses something. */
        readonly told?: Readonly<Partial<Record<TextProtocolName, string>>>;
      };
}

/** Every loss that the scenarios may show. What is not here has to work. */
export const losses: readonly Loss[] = [
  {
    // The gateway itself ends the answer.
    clients: ['chat', 'messages', 'generateContent'],
    wires: ['responses'],
    scenarios: ['stop sequence'],
    fate: { kind: 'drop', missing: ['the stop sequences'] },
  },
  {
    // Neither protocol says which of the stop sequences was met, so the answer looks like one that ended by itself.
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
    // A chat client has no field in which it could carry what a responses upstream encrypted.
    clients: ['chat'],
    wires: ['responses'],
    scenarios: ['tool loop with reasoning', 'tool loop with redacted reasoning'],
    fate: { kind: 'drop', missing: ['signatures'], told: { chat: 'reasoning_content' } },
  },
  {
    // A signature comes back with its call; the text of reasoning that came without one stays behind.
    clients: ['chat'],
    wires: ['messages', 'generateContent'],
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

/** What is lost when a client's call reaches an upstream in a protocol, or null when nothing is. */
export function lossOf(client: TextProtocolName, wire: TextProtocolName, scenario: string): Loss | null {
  return (
    losses.find(
      (loss) =>
        loss.scenarios.includes(scenario) && loss.clients.includes(client) && loss.wires.includes(wire),
    ) ?? null
  );
}
