import type { ConversationRequest, TextProtocolName } from './request.js';

/** How clients of a protocol handle answers, if translations depend on it. */
interface ClientTraits {
  /**
   * Where a client keeps the signature of reasoning for the next turn.
   * `field`: in the protocol's member for it. `call`: in the calls that follow, since the protocol has no such member.
   * `unreturned`: in the calls, and in the member what does not fit there. `shown`: in the member if the client asked
   * to see the reasoning and it has text, else in the calls. Clients drop what they did not expect and what has no text
   * (LlamaIndex, Continue, pi). Some take the first block of an answer for its text.
   */
  readonly signatures: 'field' | 'call' | 'unreturned' | 'shown';
  /**
   * The client returns the reasoning that it was shown. Many drop it from their history and keep only signatures or
   * calls.
   */
  readonly returnsReasoning: boolean;
  /** The client reads the arguments of a call as an object. A stream has them in pieces of text. */
  readonly objectArguments: boolean;
  /** Answers must always match their schema, because the protocol has no setting for it. */
  readonly strictAnswers: boolean;
  /** The vendor answers conversations with nothing but instructions, or with nothing at all. */
  readonly mayBeSilent: boolean;
}

/** Defaults, which hold for most clients. */
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
  // Calls of generateContent arrive whole, as objects: `objectArguments` concerns arguments that a stream has in
  // pieces.
  generateContent: { ...plain, signatures: 'field' },
};

/** A responses client that did not ask for the reasoning that it would have to return (LangChain, LlamaIndex). */
const withoutReasoningItems: ClientTraits = {
  ...byProtocol.responses,
  signatures: 'unreturned',
  returnsReasoning: false,
};

/** Returns the traits of the client that sent a request. */
export function clientTraitsOf({
  from,
  returnsEncrypted,
}: Pick<ConversationRequest, 'from' | 'returnsEncrypted'>): ClientTraits {
  return returnsEncrypted === false ? withoutReasoningItems : byProtocol[from];
}
