import type { SteeringMember } from '../../wire/steering-members.js';
import type { UpstreamSession } from './upstream-session.js';

/** What a call is told that came as a message of a WebSocket, and what it tells. */
export interface SocketCall {
  readonly upstreamSession: UpstreamSession;
  /** Nothing is to be generated. */
  readonly isWarmUp: boolean;
  /** Members of the message that could lead an upstream elsewhere: those of its body, and what only a message has. */
  readonly steering: readonly SteeringMember[];
  /** As it came, while it is read: a fault of its JSON is told by its place there. Null after that. */
  message: Buffer | null;
  /** The response that it goes on from, where only its upstream can know it. */
  readonly previousId: string | null;
  /** Is told the whole input, as JSON texts of items, of a call that goes on from a response which the socket had not. */
  readonly onRecalled: (items: string) => void;
  /** Who made the answer: an upstream over the WebSocket or a request of the same protocol, or the gateway had a part. */
  madeBy: 'session' | 'request' | 'gateway';
}
