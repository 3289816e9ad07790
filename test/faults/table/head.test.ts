import type { RawRequest } from '../../support/upstream.js';
import { brokenBefore, type Fault, lateBefore, playFaults, shortMs } from './fault.js';
import { answering, ending, resetting } from './hostile.js';

const dribbleMs = 50;

/** A head without an end, a little at a time or at full speed. */
function endlessHead(line: string, everyMs: number): (request: RawRequest) => void {
  return ({ socket }) => {
    const more = (): void => {
      if (!socket.destroyed) socket.write(line, () => setTimeout(more, everyMs));
    };
    socket.write('HTTP/1.1 200 OK\r\n', more);
  };
}

const body = 'content-type: application/json\r\ncontent-length: 2\r\n\r\n{}';
const status = 'HTTP/1.1 200 OK\r\n';

/** What is sent in place of a head. */
const malformed: readonly (readonly [name: string, answer: string])[] = [
  ['a status line of another protocol', 'SSH-2.0-OpenSSH_9.6\r\n'],
  ['a status line without a status', `HTTP/1.1 OK\r\n${body}`],
  ['an unknown version of HTTP', `HTTP/2.7 200 OK\r\n${body}`],
  ['a field without a colon', `${status}nonsense\r\n${body}`],
  ['a field that goes on in the next line', `${status}x-a: 1\r\n  2\r\n${body}`],
  ['a bare carriage return in a field', `${status}x-a: 1\r2\r\n${body}`],
  ['two lengths', `${status}content-length: 3\r\n${body}`],
  ['a length that is no number', `${status}content-length: 0x2\r\n\r\n{}`],
  ['a length beside a transfer coding', `${status}transfer-encoding: chunked\r\n${body}`],
  ['an unknown transfer coding', `${status}transfer-encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`],
  ['a switch of protocols that nobody asked for', `HTTP/1.1 101 X\r\nupgrade: h2c\r\n\r\n`],
  ['interim answers without end', 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(50)],
  ['a redirect', `HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\n${body}`],
];

/** Faults in the head of an answer. */
const rows: readonly Fault[] = [
  ...malformed.map(
    ([name, answer]): Fault => ({
      name,
      upstream: answering(answer),
      ...brokenBefore,
      counted: 'malformed',
      seen: 1,
    }),
  ),
  {
    name: 'a head that comes too slowly',
    upstream: answering(endlessHead('x-slow: 1\r\n', dribbleMs)),
    timeouts: { firstByteMs: shortMs },
    ...lateBefore,
    counted: 'timeout',
    seen: 1,
  },
  {
    name: 'a head without end',
    upstream: answering(endlessHead(`x-long: ${'y'.repeat(4000)}\r\n`, 0)),
    ...brokenBefore,
    counted: 'malformed',
    seen: 1,
  },
  {
    name: 'a head line without end',
    upstream: answering(endlessHead('y'.repeat(4000), 0)),
    ...brokenBefore,
    counted: 'malformed',
    seen: 1,
  },
  {
    name: 'an end within the head',
    upstream: ending('HTTP/1.1 200 OK\r\ncontent-ty'),
    ...brokenBefore,
    counted: 'truncated',
    seen: 1,
  },
  {
    name: 'a reset within the head',
    upstream: resetting('HTTP/1.1 200 OK\r\ncontent-ty'),
    ...brokenBefore,
    counted: 'reset',
    seen: 1,
  },
];

playFaults(rows);
