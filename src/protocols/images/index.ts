import { reportedMetering } from '../../conversation/stream-rules.js';
import type { Endpoint } from '../endpoint.js';
import { always } from '../once.js';
import { judgeEnd, judgeStart, lastUsage, madeOf, marks } from './stream-rules.js';

const images: Omit<Endpoint, 'upstreamPath' | 'streamsUnasked'> = {
  protocol: 'images',
  upstreamQuery: null,
  modelInBody: true,
  usageOnRequest: false,
  outputLimit: null,
  answersJson: true,
  mayLack: false,
  marks,
  judgeStart,
  usageAtStart: null,
  marksEnd: null,
  lastNumber: null,
  judgeEnd,
  findUsageEvent: () => null,
  usageOf: lastUsage,
  madeOf,
  metering: reportedMetering,
  translation: null,
  otherForm: null,
  amender: null,
  conversation: null,
  once: always,
};

/** `POST /v1/images/generations` */
export const imageGenerations: Endpoint = {
  ...images,
  upstreamPath: () => '/images/generations',
  streamsUnasked: false,
};

/** `POST /v1/images/edits`, whose `stream` may stand in a form behind the images. */
export const imageEdits: Endpoint = { ...images, upstreamPath: () => '/images/edits', streamsUnasked: true };
