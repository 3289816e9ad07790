import type { Key } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import type { Exchange } from '../../http/exchange.js';
import { RequestHead } from '../../http/request-head.js';
import { acceptSocket, type ClientSocket, type ClientSocketListener } from '../../http/socket.js';
import { startTurn, type Turn, type TurnWords } from '../../http/turn.js';
import { readTurn } from '../../protocols/responses/turn.js';
import { account } from '../account.js';
import type { Call } from '../call.js';
import { closeCode } from '../realtime/close-code.js';
import type { OpenSession } from '../realtime/sessions.js';
import type { Services } from '../services.js';
import { Watched } from '../watch.js';
import { type Room, TurnHistory } from './history.js';
import { Lane } from './lane.js';
import type { TurnCall } from './turn-call.js';

type ServeTurn = (services: Services, exchange: Exchange, turn: TurnCall) => void;

const path = '/v1/responses';
/** Messages that may wait for the turn before them. */
const mostWaiting = 8;

/**
 * A WebSocket over which a client has responses made, one after the other: each of its messages is served as the POST
 * would be that holds the same, with the key and the limits of that moment, and the events of the stream come back as
 * messages.
 */
export class TurnSocket extends Watched implements ClientSocketListener, OpenSession {
  readonly #services: Services;
  readonly #call: Call;
  readonly #serve: ServeTurn;
  readonly #lane: Lane;
  readonly #history: TurnHistory;
  /** Who made the newest response. */
  #madeBy: TurnCall['madeBy'] = 'request';
  #client: ClientSocket | null = null;
  #turn: Turn | null = null;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #count = 0;
  #draining = false;

  /** @param serve serves the request that a message is made into */
  constructor(services: Services, call: Call, serve: ServeTurn) {
    super();
    this.#services = services;
    this.#call = call;
    this.#serve = serve;
    this.#lane = new Lane(services);
    this.#history = new TurnHistory(roomOf(services), call.running.snapshot.sockets.historyBytes);
  }

  begin(): void {
    this.#services.sessions.add(this);
    this.#services.watched.add(this);
    this.#client = acceptSocket(this.#call.exchange, '', this);
    if (this.#client === null) this.#end();
  }

  onMessage(data: Buffer, isBinary: boolean): void {
    const { exchange } = this.#call;
    exchange.bytesIn += data.length;
    if (isBinary) this.#refuse(binary);
    else if (this.#turn === null && this.#waiting.length === 0) this.#start(data);
    else this.#keep(data);
  }

  #keep(data: Buffer): void {
    const { waitingBytes } = this.#call.running.snapshot.sockets;
    if (this.#waiting.length >= mostWaiting || this.#waitingBytes + data.length > waitingBytes) {
      this.#refuse(tooMany);
      return;
    }
    this.#waitingBytes += data.length;
    this.#waiting.push(Buffer.from(data));
  }

  onBlocked(): void {}

  onDrained(): void {
    this.#turn?.drained();
  }

  onClosed(): void {
    this.#client = null;
    this.#turn?.leave();
    this.#end();
  }

  override onTick(now: number): void {
    const { sessionMs } = this.#call.running.snapshot.sockets;
    if (now - this.#call.startedAt > sessionMs && this.#turn === null)
      this.#close(closeCode.goingAway, 'The session has reached its longest duration.');
  }

  drain(): void {
    this.#draining = true;
    if (this.#turn === null) this.shutDown();
  }

  shutDown(): void {
    this.#close(closeCode.restart, 'The gateway restarts.');
  }

  /** A turn under way comes to its end; what is sent after it is refused as any call is. */
  onKeysChanged(): void {
    const { key, running } = this.#call;
    if (this.#turn === null && !running.keys.holds(key as Key))
      this.#close(closeCode.policy, 'The API key of the session was revoked.');
  }

  #start(message: Buffer): void {
    const client = this.#client;
    const { offer, head, id } = this.#call.exchange;
    if (client === null || offer === null) return;
    const asked = readTurn(message);
    if (asked instanceof GatewayError) {
      this.#refuse(asked);
      return;
    }
    const isKnown = this.#madeBy === 'lane' && this.#lane.isOpen;
    const { body, previousId } = this.#history.begin(asked.body, isKnown);
    const turnCall: TurnCall = {
      lane: this.#lane,
      isWarmUp: asked.isWarmUp,
      previousId,
      madeBy: 'gateway',
    };
    const turnId = `${id}_${++this.#count}`;
    let isOver = false;
    const request = { method: 'POST', path, head: turnHead(head, body.length), id: turnId, body };
    const turn = startTurn(client, offer, request, {
      words,
      serve: (exchange) => this.#serve(this.#services, exchange, turnCall),
      onEvent: (event) => this.#history.onEvent(event, turnCall.madeBy !== 'gateway'),
      onEnd: () => {
        isOver = true;
        this.#madeBy = turnCall.madeBy;
        this.#onTurnEnd();
      },
    });
    if (!isOver) this.#turn = turn;
  }

  #onTurnEnd(): void {
    this.#turn = null;
    if (this.#client === null) return;
    // Not from within the end of the one before, which still has to be accounted for.
    setImmediate(() => {
      if (this.#turn !== null) return;
      const next = this.#waiting.shift();
      if (next !== undefined) {
        this.#waitingBytes -= next.length;
        this.#start(next);
        if (this.#turn === null) this.#onTurnEnd();
      } else if (this.#draining) this.shutDown();
      else this.onKeysChanged();
    });
  }

  #refuse(error: GatewayError): void {
    const { dialect, exchange } = this.#call;
    this.#client?.send(words.whole(error.status, dialect.errorBody(error, exchange.id)), false);
  }

  #close(code: number, reason: string): void {
    this.#client?.close(code, reason);
  }

  #end(): void {
    this.#services.sessions.remove(this);
    this.#services.watched.remove(this);
    this.#services.sessions.release((this.#call.key as Key).id);
    this.#waiting = [];
    this.#lane.close();
    this.#history.clear();
    account(this.#services, this.#call, 'complete');
  }
}

/** What the sockets keep counts as the bodies of requests do. */
function roomOf(services: Services): Room {
  return {
    take(bytes) {
      if (services.bufferedBytes + bytes > services.running.snapshot.limits.bufferedBytes) return false;
      services.bufferedBytes += bytes;
      return true;
    },
    give(bytes) {
      services.bufferedBytes -= bytes;
    },
  };
}

/** The head of a turn's request: what the upgrade said of its client. */
function turnHead(upgrade: RequestHead, length: number): RequestHead {
  const head = new RequestHead();
  head.authorization = upgrade.authorization;
  head.host = upgrade.host;
  head.peer = upgrade.peer;
  head.forwardedFor = upgrade.forwardedFor;
  head.openaiBeta = upgrade.openaiBeta;
  head.forwarded = upgrade.forwarded;
  head.contentType = 'application/json';
  head.contentLength = length;
  return head;
}

const words: TurnWords = {
  whole: (status, body) => {
    const isObject = body.startsWith('{') && body.endsWith('}');
    if (status < 400 && isObject)
      return `{"type":"response.completed","sequence_number":0,"response":${body}}`;
    if (isObject && body.length > 2) return `{"type":"error","status":${status},${body.slice(1)}`;
    const error = { message: body.slice(0, 1000), type: 'server_error', code: null, param: null };
    return JSON.stringify({ type: 'error', status, error });
  },
  cut: JSON.stringify({
    type: 'error',
    status: 502,
    error: {
      message: 'The answer could not be brought to its end.',
      type: 'server_error',
      code: 'upstream_error',
      param: null,
    },
  }),
};

const binary = new GatewayError('invalid_request', 'Messages are JSON text; a binary one came.');
const tooMany = new GatewayError(
  'rate_limit_exceeded',
  'Too much waits for the response that is being made: wait for its end before you ask for more.',
  { retryAfter: 1 },
);
