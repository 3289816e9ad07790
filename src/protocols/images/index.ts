import { reportedMetering } from '../../conversation/stream-rules.js';
import { type Endpoint, plainEndpoint } from '../endpoint.js';
import { always } from '../once.js';
import { judgeEnd, judgeStart, lastUsage, madeOf, marks } from './stream-rules.js';

const images: Omit<Endpoint, 'upstreamPath'> = {
  ...plainEndpoint,
  protocol: 'images',
  marks,
  judgeStart,
  judgeEnd,
  usageOf: lastUsage,
  madeOf,
  metering: { ...reportedMetering, broken: 'medium' },
  once: always,
};

/** `POST /v1/images/generations` */
export const imageGenerations: Endpoint = { ...images, upstreamPath: () => '/images/generations' };

/** `POST /v1/images/edits`, whose `stream` may stand in a form behind the images. */
export const imageEdits: Endpoint = { ...images, upstreamPath: () => '/images/edits', streamsUnasked: true };
