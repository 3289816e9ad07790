import type { ConversationRequest, TextProtocolName } from './request.js';

/** What clients of a protocol do with an answer that translations have to know. */
interface ClientTraits {
  /**
   * Where a client keeps the signature of reasoning for the next turn: in a field for it, or, where the protocol has none,
   * in the calls that follow it; `unreturned`: in the calls, and in the field what they have no room for; `shown`: in the
   * field where it stands beside text that the client asked to see, and else in the calls. Clients leave out what they did
   * not expect, and what has no text (LlamaIndex, Continue, pi), and some take the first block of an answer for its text.
   */
  readonly signatures: 'field' | 'call' | 'unreturned' | 'shown';
  /** It returns the text of reasoning that it was shown: many leave it out of their history and keep signatures or calls. */
  readonly returnsReasoning: boolean;
  /** It reads the arguments of a call, which a stream has in pieces of text, as an object. */
  readonly objectArguments: boolean;
  /** An answer is held to its schema though the client does not say so: the protocol has no word for it. */
  readonly strictAnswers: boolean;
  /** Its vendor answers a conversation in which there are instructions at the most. */
  readonly mayBeSilent: boolean;
}

/** Of most clients. */
const plain = {
  returnsReasoning: false,
  objectArguments: false,
  strictAnswers: false,
  mayBeSilent: true,
} as const;

const byProtocol: Readonly<Record<TextProtocolName, ClientTraits>> = {
  chat: { ...plain, signatures: 'call' },
  responses: { ...plain, signatures: 'field', returnsReasoning: true },
  messages: {
    signatures: 'shown',
    returnsReasoning: true,
    objectArguments: true,
    strictAnswers: true,
    mayBeSilent: false,
  },
  // Its calls come whole, as objects: `objectArguments` is about arguments that a stream brings in pieces.
  generateContent: { ...plain, signatures: 'field' },
};

/** A client of the responses protocol that did not ask for what it is to return (LangChain, LlamaIndex). */
const withoutReasoningItems: ClientTraits = {
  ...byProtocol.responses,
  signatures: 'unreturned',
  returnsReasoning: false,
};

/** What the client that sent a request does. */
export function clientTraitsOf({
  from,
  returnsEncrypted,
}: Pick<ConversationRequest, 'from' | 'returnsEncrypted'>): ClientTraits {
  return returnsEncrypted === false ? withoutReasoningItems : byProtocol[from];
}
