import { type ErrorKind, errorTable, type GatewayError } from '../../errors.js';
import { plainFormat } from './error-format.js';

/**
 * Returns the vendor's number for a kind. Its known numbers derive from the HTTP status (50429 rate, 50500 internal),
 * and so do the others here. 50411 to 50413 mean content that its filters refused, so a body that is too large gets the
 * number of an ordinary bad request.
 */
function codeOf(kind: ErrorKind): number {
  return kind === 'request_too_large' ? 50_400 : 50_000 + errorTable[kind].status;
}

function errorBody(error: GatewayError, requestId: string): string {
  return `{"code":${codeOf(error.kind)},"message":${JSON.stringify(error.message)},"data":{},"request_id":${JSON.stringify(requestId)}}`;
}

/** The vendorj video format. */
export const jimeng = plainFormat('jimeng', errorBody);
