import { inputMetering, wholeAnswers } from '../../conversation/stream-rules.js';
import { never } from '../once.js';
import type { Endpoint } from '../protocol.js';
import { rerankAmender } from './amend.js';
import { rerankUsage } from './usage.js';

/** `POST /v1/rerank` */
export const rerank: Endpoint = {
  ...wholeAnswers(rerankUsage, inputMetering, ['"results"']),
  protocol: 'rerank',
  upstreamPath: () => '/rerank',
  upstreamQuery: null,
  modelInBody: true,
  usageOnRequest: false,
  outputLimit: null,
  mayStream: false,
  answersJson: true,
  translation: null,
  amender: rerankAmender,
  once: never,
};
