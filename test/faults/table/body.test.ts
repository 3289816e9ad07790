import { chunk, completion, jsonAnswer } from '../../support/upstream.js';
import { plainCalls } from './call-kinds.js';
import { brokenBefore, type Fault, foreign, lateBefore, playFaults, shortMs } from './fault.js';
import { answering, ending, resetting } from './hostile.js';

const json = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n';
const half = completion.slice(0, completion.length / 2);
const tooLong = `${json}content-length: ${completion.length + 10}\r\n\r\n${completion}`;
const chunked = `${json}transfer-encoding: chunked\r\n\r\n`;

/** Faults in the body of an answer that is not a stream. */
const rows: readonly Fault[] = [
  {
    name: 'a body that is shorter than its length, and the end',
    upstream: ending(tooLong),
    asked: plainCalls,
    ...brokenBefore,
    counted: 'truncated',
    seen: 1,
  },
  {
    name: 'a body that is shorter than its length, and a reset',
    upstream: resetting(tooLong),
    asked: plainCalls,
    ...brokenBefore,
    counted: 'reset',
    seen: 1,
  },
  {
    name: 'a body that is shorter than its length, and nothing more',
    upstream: answering(tooLong),
    asked: plainCalls,
    timeouts: { idleMs: shortMs },
    ...lateBefore,
    counted: 'timeout',
    seen: 1,
  },
  {
    name: 'a chunked body without its last chunk',
    upstream: ending(chunked + chunk(completion)),
    asked: plainCalls,
    ...brokenBefore,
    counted: 'truncated',
    seen: 1,
  },
  {
    name: 'an end within a chunk',
    upstream: ending(chunked + chunk(completion).slice(0, -20)),
    asked: plainCalls,
    ...brokenBefore,
    counted: 'truncated',
    seen: 1,
  },
  {
    name: 'a chunk size that is no number',
    upstream: answering(`${chunked}xyz\r\n${completion}\r\n`),
    asked: plainCalls,
    ...brokenBefore,
    counted: 'malformed',
    seen: 1,
  },
  {
    name: 'a chunk that is longer than its size',
    upstream: answering(`${chunked}5\r\n${completion}\r\n0\r\n\r\n`),
    asked: plainCalls,
    ...brokenBefore,
    counted: 'malformed',
    seen: 1,
  },
  {
    name: 'a body that cannot be decompressed',
    upstream: answering(jsonAnswer(200, completion, 'content-encoding: gzip\r\n')),
    asked: plainCalls,
    ...brokenBefore,
    counted: 'malformed',
    seen: 1,
  },
  {
    name: 'half an answer where the call is translated',
    upstream: answering(jsonAnswer(200, half)),
    asked: ['messages', 'messages'],
    ...brokenBefore,
    counted: 'malformed',
    seen: 1,
  },
  {
    name: 'half an answer in chunks where the call is translated',
    upstream: answering(`${chunked}${chunk(half)}0\r\n\r\n`),
    asked: ['messages', 'messages'],
    ...brokenBefore,
    counted: 'malformed',
    seen: 1,
  },
  {
    name: 'an error in place of an answer, under a good status',
    upstream: answering(jsonAnswer(200, '{"error":{"message":"provider failed","code":502}}')),
    asked: plainCalls,
    ...brokenBefore,
    counted: 'malformed',
    seen: 1,
  },
  {
    name: 'a stream that was not asked for',
    upstream: answering(
      'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 2\r\n\r\n\n\n',
    ),
    asked: plainCalls,
    ...brokenBefore,
    told: foreign,
    counted: 'malformed',
    seen: 1,
  },
];

playFaults(rows);
