import type { Upstream } from '../config/types.js';
import { type ResponseAction, upstreamRequest } from '../protocols/responses/by-id.js';
import type { CollectedRequest } from './ask.js';

const answerBytes = 32 * 1024 * 1024;

interface AskedResponse extends Pick<CollectedRequest, 'apiKey' | 'lines' | 'deadlines'> {
  readonly upstream: Upstream;
  /** The upstream's own. */
  readonly id: string;
  readonly action: ResponseAction;
  /** As it stands in the client's request; empty for none. */
  readonly query: string;
}

/** What an upstream is asked about a response that it holds. */
export function responseRequest({ id, action, query, ...asked }: AskedResponse): CollectedRequest {
  return {
    ...upstreamRequest(id, action, query),
    ...asked,
    protocol: 'responses',
    contentType: null,
    target: null,
    body: [],
    maxBytes: answerBytes,
    attempt: null,
    once: action === 'cancel',
  };
}
