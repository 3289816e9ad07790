import { App, us_listen_socket_close, us_socket_local_port } from 'uWebSockets.js';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'tap';
import { openConnection } from '../../bench/load/raw-connection.js';
import { transferReport } from '../../bench/transfer-report.js';
import type { TransferSeries } from '../../bench/transfers.js';
import { addMedia, videoBytes } from '../../bench/upstream/media.js';

interface Answer {
  readonly status: number;
  readonly length: number;
  readonly bytes: number;
}

/** Sends requests one after the other on one connection to a fresh upstream, and gives their answers. */
async function ask(requests: readonly string[]): Promise<Answer[]> {
  const app = App();
  addMedia(app);
  const listening = await new Promise<Parameters<typeof us_listen_socket_close>[0]>((resolve, reject) => {
    app.listen('127.0.0.1', 0, (socket) => (socket ? resolve(socket) : reject(new Error('no port'))));
  });
  const answers: Answer[] = [];
  let bytes = 0;
  let onAnswer: () => void = () => {};
  const socket = await openConnection(
    us_socket_local_port(listening),
    {
      onBytes: (count) => {
        bytes += count;
      },
      onAnswer: (status, length) => {
        answers.push({ status, length, bytes });
        bytes = 0;
        onAnswer();
      },
      onBreak: () => onAnswer(),
    },
    1024 * 1024,
  );
  for (const request of requests) {
    const answered = new Promise<void>((resolve) => {
      onAnswer = resolve;
    });
    socket.write(request);
    await answered;
  }
  socket.destroy();
  us_listen_socket_close(listening);
  return answers;
}

test('the bench upstream sends a whole video, again and again on one connection', async (t) => {
  const request = 'GET /media/v1/videos/bench/content HTTP/1.1\r\nhost: x\r\n\r\n';
  const answers = await ask([request, request]);
  t.equal(answers.length, 2);
  for (const { status, length, bytes } of answers) {
    t.equal(status, 200);
    t.equal(length, videoBytes);
    t.ok(bytes > videoBytes && bytes < videoBytes + 1024, `${bytes} bytes`);
  }
});

test('the bench upstream makes a task that is finished, and refuses an upload that is too short', async (t) => {
  const body = (path: string): string => `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}`;
  const answers = await ask([
    body('/media/v1/videos'),
    'GET /media/v1/videos/bench HTTP/1.1\r\nhost: x\r\n\r\n',
    body('/media/v1/audio/transcriptions'),
  ]);
  t.same(
    answers.map(({ status }) => status),
    [200, 200, 422],
  );
});

test('a connection that ends within an answer is told', async (t) => {
  const server = createServer((socket) => {
    socket.end('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf');
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve, reject) => {
    const onAnswer = (): void => reject(new Error('there is no whole answer'));
    openConnection(port, { onAnswer, onBreak: resolve }).catch(reject);
  });
  server.close();
  t.pass('it broke');
});

const shares = { contender: 0.5, load: 0.2, upstream: 0.2, foreignContender: 0, foreignLoad: 0 };
const cores = { contender: 0, load: 1, upstream: 1 };

function series(name: string, connections: number, megabytes: readonly number[]): TransferSeries {
  const samples = megabytes.map((each) => ({
    bytesPerSecond: each * 1e6,
    complete: 1,
    errors: [],
    shares,
  }));
  return { name, connections, samples, failure: megabytes.length === 0 ? 'it did not start' : null };
}

test('transfers are compared with the fastest nginx that has as many connections', async (t) => {
  const report = transferReport({ cores }, { work: 'video', title: 'video', more: ['More.'] }, [
    series('gateway', 1, [1000, 3000, 2000]),
    series('gateway', 8, [1000]),
    series('nginx (off)', 1, [1000]),
    series('nginx (on)', 1, [500]),
    series('nginx (on)', 8, []),
    series('nginx (on, 64 KB)', 1, [4000]),
  ]);
  t.same(
    report.rows.map(([name, rate, range, ratio, , , cost]) => [name, rate, range, ratio, cost]),
    [
      ['gateway, 1', '2,000', '1,000-3,000', '2.00x', '0.25 s (0.50x)'],
      ['gateway, 8', '1,000', '1,000-1,000', '-', '0.50 s'],
      ['nginx (off), 1', '1,000', '1,000-1,000', '1.00x', '0.50 s (1.00x)'],
      ['nginx (on), 1', '500', '500-500', '0.50x', '1.00 s (2.00x)'],
      ['nginx (on), 8', 'failed', '-', '-', '-'],
      ['nginx (on, 64 KB), 1', '4,000', '4,000-4,000', '4.00x', '0.13 s (0.25x)'],
    ],
  );
  t.ok(report.notes.includes('More.'));
  t.ok(report.notes.includes('nginx (on), 8: FAILED: it did not start'));
});
