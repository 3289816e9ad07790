import type { Directive } from './directives.js';
import { dialectOf } from './realtime-dialect.js';
import type { Pace } from './realtime-play.js';
import { RealtimeSession } from './realtime-session.js';
import type { SocketLine } from './socket-line.js';

export interface RealtimeParts {
  readonly line: SocketLine;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly model: string | null;
  readonly number: number;
  readonly pace: Pace;
  isDue(directive: Directive): boolean;
}

/** Speaks the realtime protocol on an open socket, until one side closes it. */
export function serveRealtime(parts: RealtimeParts): void {
  const { line, model, number, pace, isDue } = parts;
  const echo = (): void =>
    line.listen((message, isBinary) => {
      line.send(message, isBinary);
      line.holdWhenFull();
    });
  const mute = (): void => line.listen(() => undefined);
  const session = new RealtimeSession({
    line,
    dialect: dialectOf(parts.headers),
    model: model ?? 'sim-realtime',
    number,
    pace,
    isDue,
    echo,
    mute,
  });
  line.listen((message, isBinary) => {
    if (isBinary) {
      session.hearBinary();
    } else {
      session.hear(message);
    }
    line.holdWhenFull();
  });
  session.open();
  if (model === 'echo') {
    echo();
  }
}
