import { performance } from 'node:perf_hooks';
import type { KeptFile } from '../../video/content-folder.js';
import { type ByteRange, satisfiedRange } from '../../wire/range.js';
import { account } from '../account.js';
import { timingLine } from '../answer-lines.js';
import type { AuthenticatedCall } from '../call.js';
import type { Services } from '../services.js';
import { refuseRange } from './content-source.js';
import type { DownloadSource } from './downloads.js';

interface KeptContent {
  /** Closed when the answer has ended. */
  readonly kept: KeptFile;
  readonly range: ByteRange | null;
  /** Header lines of the answer, CRLF before each. */
  readonly lines: string;
}

/** Each open file takes a descriptor, of which a worker has so many to spare. */
const keptVideos: DownloadSource = { identity: 'kept videos', maxConnections: 1024 };
/** What is read at once and held for one client. */
const pieceBytes = 256 * 1024;

/**
 * Answers with a video that is kept here, or with part of it, as fast as the client takes it.
 * @throws {GatewayError} where the key has as many downloads as it may; anything else for what cannot be read
 */
export async function sendKept(
  services: Services,
  call: AuthenticatedCall,
  { kept, range, lines }: KeptContent,
): Promise<void> {
  try {
    if (call.accounted) return;
    call.validatedAt = performance.now();
    const refusal = services.downloads.take(call, keptVideos);
    if (refusal !== null) throw refusal;
    const part = range === null ? null : satisfiedRange(range, kept.bytes);
    if (range !== null && part === null) {
      refuseRange(services, call, `bytes */${kept.bytes}`, lines);
      return;
    }
    const { first, last } = part ?? { first: 0, last: kept.bytes - 1 };
    const all =
      `\r\ncontent-type: ${kept.contentType}\r\nx-content-type-options: nosniff${lines}` +
      (part === null ? '' : `\r\ncontent-range: bytes ${first}-${last}/${kept.bytes}`) +
      timingLine(call);
    if (call.exchange.method === 'HEAD' || last < first) {
      call.exchange.respondEmpty(200, all, kept.bytes);
      account(services, call, 'complete');
      return;
    }
    call.exchange.begin(part === null ? 200 : 206, all, last - first + 1);
    call.endedAt = 0;
    await sendBytes(services, call, kept, { first, last });
  } finally {
    kept.handle.close().catch((fault: unknown) => services.reportFault('promise', fault, call));
  }
}

async function sendBytes(
  services: Services,
  call: AuthenticatedCall,
  { handle }: KeptFile,
  { first, last }: { readonly first: number; readonly last: number },
): Promise<void> {
  const { exchange } = call;
  let goOn = (): void => {};
  exchange.listener = {
    onDrained: () => goOn(),
    onClientGone: () => {
      account(services, call, 'client_gone');
      goOn();
    },
  };
  for (let at = first; at <= last; ) {
    const piece = Buffer.allocUnsafeSlow(Math.min(pieceBytes, last + 1 - at));
    const { bytesRead } = await handle.read(piece, 0, piece.length, at);
    if (call.accounted) return;
    if (bytesRead === 0) throw new Error('the file of a kept video is shorter than it was');
    at += bytesRead;
    const isTaken = exchange.write(piece.subarray(0, bytesRead));
    if (isTaken || at > last) continue;
    await new Promise<void>((resolve) => {
      goOn = resolve;
    });
    if (call.accounted) return;
  }
  exchange.end();
  account(services, call, 'complete');
}
