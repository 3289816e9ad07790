import { App, type HttpRequest, type HttpResponse, SSLApp, us_socket_local_port } from 'uWebSockets.js';
import { completionBody } from './answers.js';
import { createDripper } from './dripper.js';
import { createGate } from './gate.js';
import { addMedia } from './media.js';
import { createPacer } from './pacer.js';
import { addRealtime } from './realtime.js';

/** Time to answer of an upstream that is not on the same machine. */
const lateMs = 20;

const ignore = (): void => undefined;

/** Calls `then` when the whole body has arrived. The body itself is discarded. */
function afterBody(res: HttpResponse, then: (res: HttpResponse) => void): void {
  res.onData((_chunk, isLast) => {
    if (isLast) then(res);
  });
}

/**
 * The bench upstream on uWebSockets.js: whole answers, delayed answers, media, WebSockets, and streams whose events
 * are sent one by one (uWS makes each an HTTP chunk, and with a cork one segment).
 * @param cert PEM file of the certificate for TLS, with its key in another
 * @returns its port on the loopback interface
 */
export function listenWithUws(cert?: string, key?: string): Promise<number> {
  const body = Buffer.from(completionBody());
  let answered = 0;
  const end = (res: HttpResponse): void => {
    res.writeHeader('content-type', 'application/json');
    res.end(body);
  };
  const answer = (res: HttpResponse): void => {
    answered++;
    end(res);
  };
  const waiting = new Map<HttpResponse, NodeJS.Timeout>();
  const answerLate = (res: HttpResponse): void => {
    const send = (): void => {
      waiting.delete(res);
      res.cork(() => end(res));
    };
    waiting.set(res, setTimeout(send, lateMs));
  };
  const forget = (res: HttpResponse): void => {
    clearTimeout(waiting.get(res));
    waiting.delete(res);
  };
  const pacer = createPacer(2);
  const events = createPacer(50);
  const stamped = createPacer(50, true);
  const dripper = createDripper();
  const gate = createGate((res: HttpResponse) => res.cork(() => end(res)));
  const route = (then: (res: HttpResponse) => void, onLeave: (res: HttpResponse) => void) => {
    return (res: HttpResponse, _req: HttpRequest): void => {
      res.onAborted(() => onLeave(res));
      afterBody(res, then);
    };
  };

  return new Promise((resolve, reject) => {
    const app = cert && key ? SSLApp({ cert_file_name: cert, key_file_name: key }) : App();
    addMedia(app);
    addRealtime(app);
    app
      .post('/json/v1/chat/completions', route(answer, ignore))
      .post('/late/v1/chat/completions', route(answerLate, forget))
      .get('/answered', (res) => void res.end(`${answered}`))
      .post('/gate/v1/chat/completions', route(gate.add, gate.remove))
      .post('/drip/v1/chat/completions', route(dripper.add, dripper.remove))
      .post('/pace/v1/chat/completions', route(pacer.add, pacer.remove))
      .post('/stamped/v1/chat/completions', route(stamped.add, stamped.remove))
      .post('/events/v1/chat/completions', route(events.add, events.remove))
      .listen('127.0.0.1', 0, (socket) => {
        if (socket) resolve(us_socket_local_port(socket));
        else reject(new Error('The bench upstream cannot listen.'));
      });
  });
}
