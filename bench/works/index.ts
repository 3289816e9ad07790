import type { Work } from '../bench.js';
import { bodiesWork } from './bodies.js';
import { chatWorks } from './chat.js';
import { eventsWorks } from './events.js';
import { eventsDelayWork } from './events-delay.js';
import { idleConnectionsWork } from './idle-connections.js';
import { keysWork } from './keys.js';
import { keysRateWork } from './keys-rate.js';
import { latencyWork } from './latency.js';
import { meteringWork } from './metering.js';
import { pausesWork } from './pauses.js';
import { pausesCausesWork } from './pauses-causes.js';
import { realtimeWork } from './realtime.js';
import { realtimeSessionsWork } from './realtime-sessions.js';
import { streamsWorks } from './streams.js';
import { translationWorks } from './translation.js';
import { uploadWork } from './upload.js';
import { videoWork } from './video.js';
import { workersWork } from './workers.js';

/** All works, in the order in which they run. */
export const works: readonly Work[] = [
  ...chatWorks,
  ...eventsWorks,
  eventsDelayWork,
  ...translationWorks,
  latencyWork,
  keysWork,
  keysRateWork,
  ...streamsWorks,
  idleConnectionsWork,
  bodiesWork,
  videoWork,
  uploadWork,
  realtimeWork,
  realtimeSessionsWork,
  workersWork,
  meteringWork,
  pausesWork,
  pausesCausesWork,
];
