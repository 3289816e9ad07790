import type { Test } from 'tap';
import { type RunningGateway, startGateway } from '../support/gateway.js';
import { jsonAnswer, type RawRequest } from '../support/upstream.js';

/** What an upstream of audio does with a request: it answers a transcription with the text `heard`. */
export const hears = ({ socket }: RawRequest): void => void socket.write(heard);

export const heard = jsonAnswer(200, '{"text":"heard"}');

export interface AudioGatewayOptions {
  /** Base URLs of the targets of the model `m`, in order of priority. */
  readonly upstreams: readonly string[];
  /** Name of the model at the upstreams; `m` unless given. */
  readonly alias?: string;
  readonly limits?: Readonly<Record<string, number>>;
  readonly timeouts?: Readonly<Record<string, number>>;
  /** Merged over every upstream of the config. */
  readonly upstream?: Record<string, unknown>;
}

/** Starts a gateway whose model `m` takes audio, in this process. */
export function startAudioGateway(t: Test, options: AudioGatewayOptions): Promise<RunningGateway> {
  const { upstreams, alias = 'm', limits = {}, timeouts = {}, upstream } = options;
  const targets = upstreams.map((_, priority) => ({ upstream: `u${priority}`, model: alias, priority }));
  return startGateway(t, {
    upstreams,
    upstream,
    config: { limits, timeouts, models: { m: { protocols: ['audio'], targets } } },
  });
}
