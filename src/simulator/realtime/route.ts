import type { Directive } from '../faults/directives.js';
import type { Pace } from '../http/pace.js';
import type { SocketLine } from '../sockets/line.js';
import { dialectOf } from './dialect.js';
import { RealtimeSession } from './session.js';

interface RealtimeParts {
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
