import type { StreamManner } from '../conversation/manner.js';

/** What the flow has to know of a text protocol to pass it through: each protocol's `index.ts` makes one. */
export interface TextProtocol extends StreamManner {
  /** Path under an upstream's base URL. */
  readonly upstreamPath: string;
  /** A stream's usage comes only when the body asks for it with `stream_options.include_usage`. */
  readonly usageOnRequest: boolean;
}
