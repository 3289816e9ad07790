import { type ErrorKind, errorTable, type GatewayError } from '../../errors.js';
import { plainFormat } from './error-format.js';

/**
 * The numbers that are known of the vendor follow the HTTP status (50429 rate, 50500 internal), and so does the rest
 * here. 50411 to 50413 mean content that its filters refused, so a body that is too large is an ordinary bad request.
 */
function codeOf(kind: ErrorKind): number {
  return kind === 'request_too_large' ? 50_400 : 50_000 + errorTable[kind].status;
}

function errorBody(error: GatewayError, requestId: string): string {
  return `{"code":${codeOf(error.kind)},"message":${JSON.stringify(error.message)},"data":{},"request_id":${JSON.stringify(requestId)}}`;
}

/** The vendorj video format. */
export const jimeng = plainFormat('jimeng', errorBody);
