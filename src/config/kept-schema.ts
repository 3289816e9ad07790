import { Type } from 'typebox';
import { closedObject, optional } from './setting.js';

/* What the gateway keeps of calls that have ended. */

const days = Type.Integer({ minimum: 1, maximum: 3650 });
export const usage = closedObject({
  ledger: optional('Finished calls have lines in the store.', Type.Boolean()),
  lineDays: optional('How long these lines are kept.', days),
  sumDays: optional('How long the sums of a day are kept.', days),
});

export const videos = closedObject({
  folder: Type.String({
    minLength: 1,
    description: 'Where the videos of finished tasks are kept, with this they are.',
  }),
  days: optional('How long a video is kept, from when its task was made.', days),
  bytes: optional(
    'Of all videos in the folder: the oldest give way to new ones.',
    Type.Integer({ minimum: 1_048_576 }),
  ),
  fileBytes: optional('Of one video: a larger one is not kept.', Type.Integer({ minimum: 1 })),
});

const keptBytes = Type.Integer({ minimum: 4096, maximum: 2 ** 37 });
export const conversations = Type.Union(
  [
    Type.Literal('off'),
    closedObject({
      hours: optional('How long a turn is kept.', Type.Integer({ minimum: 1, maximum: 8760 })),
      keyBytes: optional("What is kept of one key's turns; the oldest give way to new ones.", keptBytes),
      bytes: optional("The same of all keys' turns together.", keptBytes),
      recordBytes: optional('Of one turn: a larger one is not kept.', keptBytes),
    }),
  ],
  {
    expected: '"off" or an object',
    description:
      'What is kept of the turns of translated calls, so that clients may go on from them by their ids: see [Conversations](conversations.md). `"off"` keeps nothing.',
  },
);
