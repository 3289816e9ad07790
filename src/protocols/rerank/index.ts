import { inputMetering, wholeAnswers } from '../../conversation/manner.js';
import type { Endpoint } from '../protocol.js';
import { rerankAmender } from './amend.js';
import { rerankUsage } from './usage.js';

/** `POST /v1/rerank` */
export const rerank: Endpoint = {
  ...wholeAnswers(rerankUsage, inputMetering),
  protocol: 'rerank',
  upstreamPath: () => '/rerank',
  modelInBody: true,
  usageOnRequest: false,
  outputLimit: null,
  mayStream: false,
  translation: null,
  amender: rerankAmender,
};
