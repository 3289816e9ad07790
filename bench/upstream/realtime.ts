import type { TemplatedApp } from 'uWebSockets.js';

const subprotocol = 'realtime';

/**
 * Adds the WebSocket of `realtime`, which echoes every message.
 * @param app its path begins with `/realtime/v1`
 */
export function addRealtime(app: TemplatedApp): void {
  app.ws<object>('/realtime/v1/realtime', {
    maxPayloadLength: 1024 * 1024,
    // Without pings and timeouts, every byte that a client receives is an echo.
    idleTimeout: 0,
    sendPingsAutomatically: false,
    // No limit, so that no echo is dropped.
    maxBackpressure: 0,
    upgrade(res, req, context) {
      const offered = req.getHeader('sec-websocket-protocol').split(',');
      const isOffered = offered.some((name) => name.trim() === subprotocol);
      res.upgrade<object>({}, req.getHeader('sec-websocket-key'), isOffered ? subprotocol : '', '', context);
    },
    message: (socket, message, isBinary) => {
      socket.send(message, isBinary, false);
    },
  });
}
