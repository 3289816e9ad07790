import { type AddressInfo, createServer, type Socket } from 'node:net';
import { type Cancelled, clock, type Mood, type UpstreamOrder, type UpstreamReport } from './upstream.js';

/** Runs as a separate process, started by `startLoadUpstream`: answers chat requests as their `user` says. */

const gateMs = 10_000;
const listenAgainMs = 50;
const floodBlockBytes = 64 * 1024;
const streamHead = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n';
const streamEnd = `${chunk('data: [DONE]\n\n')}0\r\n\r\n`;
const event = eventOf('some words of a streamed answer ');
const floodBlock = Buffer.from(chunk(eventOf('words '.repeat(100)).repeat(floodBlockBytes / 750)));
const completion = JSON.stringify({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [
    { index: 0, message: { role: 'assistant', content: 'words '.repeat(140) }, finish_reason: 'stop' },
  ],
  usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
});
const completionAnswer = jsonAnswer('200 OK', completion);
const errorAnswer = jsonAnswer(
  '500 Internal Server Error',
  '{"error":{"message":"as ordered","type":"server_error"}}',
);

/** The current request of a connection. */
interface Running {
  readonly socket: Socket;
  readonly name: string;
  /** Stops further writing. */
  stop: () => void;
}

const running = new Map<Socket, Running>();
const cancelled: Cancelled[] = [];
let requests = 0;
let mood: Mood = 'well';
let gate: Running[] = [];
let gateTimer: NodeJS.Timeout | undefined;

function chunk(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}

function eventOf(content: string): string {
  const choice = { index: 0, delta: { content }, finish_reason: null };
  return `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [choice] })}\n\n`;
}

function jsonAnswer(status: string, body: string): string {
  return `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
}

function finish(request: Running, answer: string): void {
  if (running.get(request.socket) !== request) return;
  request.stop();
  running.delete(request.socket);
  request.socket.write(answer);
}

function begin(socket: Socket, body: Buffer): void {
  requests += 1;
  const order = new URLSearchParams(orderIn(body.toString('latin1', 0, 1024)));
  const request: Running = { socket, name: order.get('name') ?? '', stop: () => {} };
  running.set(socket, request);
  if (mood === 'silent') return;
  if (mood === 'failing') {
    finish(request, errorAnswer);
    return;
  }
  const number = (name: string): number => Number(order.get(name) ?? 0);
  switch (order.get('does')) {
    case 'stream':
      stream(request, number('events'), number('everyMs'), order.get('cut') === 'true');
      break;
    case 'flood':
      flood(request, number('megabytes') * 1024 * 1024);
      break;
    case 'gate':
      passGate(request, number('requests'));
      break;
    case 'fail':
      finish(request, errorAnswer);
      break;
    default:
      completeAfter(request, number('afterMs'));
  }
}

/** The order is in `user`. Not every protocol has that member, so a translated request has it in the prompt. */
function orderIn(body: string): string {
  return (/"user":"([^"]*)"/.exec(body) ?? /"content":"order ([^" ]*)/.exec(body))?.[1] ?? '';
}

function completeAfter(request: Running, ms: number): void {
  if (ms === 0) {
    finish(request, completionAnswer);
    return;
  }
  const timer = setTimeout(() => finish(request, completionAnswer), ms);
  request.stop = () => clearTimeout(timer);
}

function stream(request: Running, events: number, everyMs: number, cut: boolean): void {
  let left = events - 1;
  request.socket.write(streamHead + chunk(event));
  const timer = setInterval(() => {
    if (left > 0) request.socket.write(chunk(event));
    else if (cut) request.socket.destroy();
    else finish(request, streamEnd);
    left -= 1;
  }, everyMs);
  request.stop = () => clearInterval(timer);
}

function flood(request: Running, bytes: number): void {
  const { socket } = request;
  let left = bytes;
  const pour = (): void => {
    while (left > 0) {
      left -= floodBlock.length;
      if (!socket.write(floodBlock)) return;
    }
    finish(request, streamEnd);
  };
  socket.on('drain', pour);
  request.stop = () => socket.off('drain', pour);
  socket.write(streamHead);
  pour();
}

function passGate(request: Running, enough: number): void {
  const open = (): void => {
    clearTimeout(gateTimer);
    gateTimer = undefined;
    const all = gate;
    gate = [];
    for (const one of all) finish(one, completionAnswer);
  };
  gate.push(request);
  gateTimer ??= setTimeout(open, gateMs);
  if (gate.length >= enough) open();
}

const server = createServer({ noDelay: true }, (socket) => {
  let pieces: Buffer[] = [];
  let held = 0;
  let needed = 0;
  socket.on('data', (data) => {
    pieces.push(data);
    held += data.length;
    while (held > 0 && held >= needed) {
      const received = Buffer.concat(pieces);
      pieces = [received];
      const end = received.indexOf('\r\n\r\n');
      if (end === -1) return;
      const length = Number(/^content-length: *(\d+)/im.exec(received.toString('latin1', 0, end))?.[1] ?? 0);
      needed = end + 4 + length;
      if (held < needed) return;
      const rest = received.subarray(needed);
      begin(socket, received.subarray(end + 4, needed));
      pieces = [rest];
      held = rest.length;
      needed = 0;
    }
  });
  socket.on('error', () => {});
  // A FIN ends the request as well: the gateway never half-closes.
  socket.on('close', () => {
    const request = running.get(socket);
    if (request === undefined) return;
    request.stop();
    running.delete(socket);
    gate = gate.filter((one) => one !== request);
    cancelled.push({ name: request.name, at: clock() });
  });
});

function report(message: UpstreamReport): void {
  process.send?.(message);
}

process.on('message', (order: UpstreamOrder) => {
  if (order !== 'state') {
    mood = order;
    return;
  }
  const openNamed = [...running.values()].filter((request) => request.name !== '').length;
  report({ type: 'state', state: { open: running.size, openNamed, requests, cancelled } });
});
process.on('disconnect', () => process.exit(0));
const listen = (): void => {
  server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', 4096, () => {
    report({ type: 'listening', port: (server.address() as AddressInfo).port });
  });
};
// A port that was free a moment ago may now be another process's end of a connection.
server.on('error', () => setTimeout(listen, listenAgainMs));
listen();
