import type { TextProtocolName } from './request.js';

/** What clients of a protocol do with an answer that translations have to know. */
export interface ClientTraits {
  /**
   * Where a client keeps the signature of reasoning for the next turn: in a field for it, or, where the protocol has none,
   * in the calls that follow it; `shown`: in the field where it stands beside text that the client asked to see, and else
   * in the calls. Clients leave out what they did not expect, and what has no text (LlamaIndex, Continue, pi), and some take
   * the first block of an answer for its text.
   */
  readonly signatures: 'field' | 'call' | 'shown';
  /** It returns the text of reasoning that it was shown: many leave it out of their history and keep signatures or calls. */
  readonly returnsReasoning: boolean;
  /** It reads the arguments of a call, which a stream has in pieces of text, as an object. */
  readonly objectArguments: boolean;
}

/** By the protocol of the client. */
export const clientTraits: Readonly<Record<TextProtocolName, ClientTraits>> = {
  chat: { signatures: 'call', returnsReasoning: false, objectArguments: false },
  responses: { signatures: 'field', returnsReasoning: true, objectArguments: false },
  messages: { signatures: 'shown', returnsReasoning: true, objectArguments: true },
  // Calls come whole, and are written as objects.
  generateContent: { signatures: 'field', returnsReasoning: false, objectArguments: false },
};
