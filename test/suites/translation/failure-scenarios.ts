import { check, fetchesImages, passes, type Scenario } from './scenario.js';

const upstreamError: Scenario = {
  name: 'upstream error',
  ask: ({ client, stream }) => ({
    stream,
    turns: client.user('[[fault:status=429 retry-after=7]] Hello'),
  }),
  checks: ({ error }, { client }) => [
    check('the status', error?.status, 429),
    check('the kind', error?.type, client.rateLimited),
    check('when to come back', error?.retryAfter, '7'),
    passes(
      "the upstream's words",
      /asked to answer with status 429/.test(error?.message ?? ''),
      error?.message,
    ),
  ],
};

const cutAnswer: Scenario = {
  name: 'error in the middle',
  ask: ({ client, stream }) => ({
    stream,
    turns: client.user(
      `[[fault:${stream ? 'error-event after=9' : 'truncate after=1'}]] one two three four five six seven eight nine`,
    ),
  }),
  checks: ({ error, text: written }, { stream }) => [
    check('the status', error?.status, stream ? 200 : 502),
    passes('a message', (error?.message ?? '') !== '', error),
    passes('what came before', (written !== '') === stream, written),
  ],
};

const brokenStream: Scenario = {
  name: 'connection lost in the middle',
  ask: ({ client, stream }) => ({
    stream,
    turns: client.user(
      `[[fault:reset after=${stream ? 9 : 1}]] one two three four five six seven eight nine`,
    ),
  }),
  checks: ({ error }, { stream }) => [
    check('the status', error?.status, stream ? 200 : 502),
    passes('a message', (error?.message ?? '') !== '', error),
  ],
};

const lostImage: Scenario = {
  name: 'image that is not there',
  ask: ({ client, stream, matrix }) => ({
    stream,
    turns: client.user('What is this?', { mediaType: 'image/png', url: `${matrix.imageUrl}.old` }),
  }),
  checks: ({ error }, { client, model }) => {
    if (!fetchesImages(client, model)) return [check('no error', error, null)];
    return [
      check('the status', error?.status, 400),
      passes('where it stands', /\b(messages|input)\[0\]\.content\[[01]\]/.test(error?.message ?? ''), error),
      passes('what is wrong', /cannot be fetched: .* status 404/.test(error?.message ?? ''), error),
    ];
  },
};

export const failureScenarios: readonly Scenario[] = [upstreamError, cutAnswer, brokenStream, lostImage];
