import { test } from 'tap';
import { type ErrorKind, errorTable, GatewayError } from '../../../src/errors.js';
import {
  anthropic,
  type ErrorFormat,
  google,
  jimeng,
  kling,
  openai,
} from '../../../src/protocols/error-formats/formats.js';

const requestId = 'req_0123';
const errorFormats: readonly ErrorFormat[] = [openai, anthropic, google, kling, jimeng];
const kinds = Object.keys(errorTable) as ErrorKind[];
const body = (errorFormat: ErrorFormat, error: GatewayError): unknown =>
  JSON.parse(errorFormat.errorBody(error, requestId));

test('refused content has the number that the vendors of video have for it, and a 500 that of their own failures', async (t) => {
  for (const code of ['content_policy_violation', 'moderation_blocked']) {
    const error = new GatewayError('invalid_request', 'No.', { answered: { status: 400, code } });
    t.match(body(kling, error), { code: 1301, error: { code } });
    t.match(body(jimeng, error), { code: 50412 });
  }
  const failed = new GatewayError('upstream_error', 'No.', { answered: { status: 500, code: null } });
  t.match(body(jimeng, failed), { code: 50500 });
});

/** Status, chat-family type, chat-family code, messages type, generateContent status, vendork code, vendorj code. */
const expected: Readonly<
  Record<ErrorKind, readonly [number, string, string | null, string, string, number, number]>
> = {
  invalid_request: [
    400,
    'invalid_request_error',
    null,
    'invalid_request_error',
    'INVALID_ARGUMENT',
    1200,
    50400,
  ],
  invalid_value: [
    400,
    'invalid_request_error',
    'invalid_value',
    'invalid_request_error',
    'INVALID_ARGUMENT',
    1201,
    50400,
  ],
  previous_response_not_found: [
    400,
    'invalid_request_error',
    'previous_response_not_found',
    'invalid_request_error',
    'INVALID_ARGUMENT',
    1201,
    50400,
  ],
  missing_parameter: [
    400,
    'invalid_request_error',
    'missing_required_parameter',
    'invalid_request_error',
    'INVALID_ARGUMENT',
    1201,
    50400,
  ],
  unsupported_parameter: [
    400,
    'invalid_request_error',
    'unsupported_parameter',
    'invalid_request_error',
    'INVALID_ARGUMENT',
    1201,
    50400,
  ],
  thread_unsupported_request: [
    400,
    'invalid_request_error',
    'thread_unsupported_request',
    'invalid_request_error',
    'INVALID_ARGUMENT',
    1200,
    50400,
  ],
  thread_not_found: [
    404,
    'invalid_request_error',
    'thread_not_found',
    'not_found_error',
    'NOT_FOUND',
    1203,
    50404,
  ],
  invalid_json: [
    400,
    'invalid_request_error',
    'invalid_json',
    'invalid_request_error',
    'INVALID_ARGUMENT',
    1200,
    50400,
  ],
  invalid_request_body: [
    400,
    'invalid_request_error',
    'invalid_request_body',
    'invalid_request_error',
    'INVALID_ARGUMENT',
    1200,
    50400,
  ],
  conflict: [409, 'invalid_request_error', 'conflict', 'conflict_error', 'ABORTED', 1200, 50409],
  invalid_api_key: [
    401,
    'invalid_request_error',
    'invalid_api_key',
    'authentication_error',
    'UNAUTHENTICATED',
    1000,
    50401,
  ],
  permission_denied: [
    403,
    'permission_error',
    'insufficient_permissions',
    'permission_error',
    'PERMISSION_DENIED',
    1103,
    50403,
  ],
  model_not_found: [
    404,
    'invalid_request_error',
    'model_not_found',
    'not_found_error',
    'NOT_FOUND',
    1203,
    50404,
  ],
  item_not_found: [404, 'invalid_request_error', null, 'not_found_error', 'NOT_FOUND', 1203, 50404],
  not_found: [404, 'invalid_request_error', 'not_found', 'not_found_error', 'NOT_FOUND', 1203, 50404],
  unknown_url: [404, 'invalid_request_error', 'unknown_url', 'not_found_error', 'NOT_FOUND', 1203, 50404],
  method_not_allowed: [
    405,
    'invalid_request_error',
    'method_not_allowed',
    'invalid_request_error',
    'INVALID_ARGUMENT',
    1202,
    50405,
  ],
  request_timeout: [
    408,
    'invalid_request_error',
    'request_timeout',
    'timeout_error',
    'DEADLINE_EXCEEDED',
    1200,
    50408,
  ],
  request_too_large: [
    413,
    'invalid_request_error',
    'request_too_large',
    'request_too_large',
    'INVALID_ARGUMENT',
    1200,
    50400,
  ],
  unsupported_media_type: [
    415,
    'invalid_request_error',
    'unsupported_media_type',
    'invalid_request_error',
    'INVALID_ARGUMENT',
    1200,
    50415,
  ],
  upgrade_required: [
    426,
    'invalid_request_error',
    'upgrade_required',
    'invalid_request_error',
    'INVALID_ARGUMENT',
    1200,
    50426,
  ],
  range_not_satisfiable: [
    416,
    'invalid_request_error',
    'range_not_satisfiable',
    'invalid_request_error',
    'INVALID_ARGUMENT',
    1201,
    50416,
  ],
  budget_exceeded: [
    429,
    'insufficient_quota',
    'insufficient_quota',
    'rate_limit_error',
    'RESOURCE_EXHAUSTED',
    1102,
    50429,
  ],
  rate_limit_exceeded: [
    429,
    'rate_limit_error',
    'rate_limit_exceeded',
    'rate_limit_error',
    'RESOURCE_EXHAUSTED',
    1302,
    50429,
  ],
  internal_error: [500, 'server_error', 'internal_error', 'api_error', 'INTERNAL', 5000, 50500],
  not_implemented: [
    501,
    'invalid_request_error',
    'not_implemented',
    'api_error',
    'UNIMPLEMENTED',
    1202,
    50501,
  ],
  store_unavailable: [503, 'server_error', 'store_unavailable', 'api_error', 'UNAVAILABLE', 5001, 50503],
  overloaded: [503, 'server_error', 'overloaded', 'overloaded_error', 'UNAVAILABLE', 5001, 50503],
  loop_detected: [508, 'server_error', 'loop_detected', 'api_error', 'INTERNAL', 5000, 50508],
  upstream_error: [502, 'server_error', 'upstream_error', 'api_error', 'INTERNAL', 5000, 50502],
  unsupported_stream_event: [
    502,
    'server_error',
    'unsupported_stream_event',
    'api_error',
    'INTERNAL',
    5000,
    50502,
  ],
  upstream_timeout: [
    504,
    'server_error',
    'upstream_timeout',
    'timeout_error',
    'DEADLINE_EXCEEDED',
    5002,
    50504,
  ],
};

/** What an SDK does about the errors of its threads it reads from the details. */
const detailsOf = (kind: ErrorKind) => (kind.startsWith('thread_') ? { details: { error_code: kind } } : {});

test('every kind of error has its body in every error format', async (t) => {
  for (const kind of kinds) {
    const [status, type, code, messagesType, googleStatus, klingCode, jimengCode] = expected[kind];
    const message = 'messages[2].content is "wrong"';
    const error = new GatewayError(kind, message, { param: 'messages[2].content' });
    const openaiError = { message, type, param: 'messages[2].content', code };
    t.equal(error.status, status, kind);
    t.strictSame(body(openai, error), { error: openaiError }, kind);
    t.strictSame(
      body(anthropic, error),
      { type: 'error', error: { type: messagesType, message, ...detailsOf(kind) }, request_id: requestId },
      kind,
    );
    t.strictSame(body(google, error), { error: { code: status, message, status: googleStatus } }, kind);
    t.strictSame(
      body(kling, error),
      { error: openaiError, code: klingCode, message, request_id: requestId, data: null },
      kind,
    );
    t.strictSame(body(jimeng, error), { code: jimengCode, message, data: {}, request_id: requestId }, kind);
  }
});

test('an error without a parameter has null, and a missing model names its parameter', async (t) => {
  t.match(body(openai, new GatewayError('invalid_value')), { error: { param: null } });
  t.match(body(openai, new GatewayError('model_not_found')), { error: { param: 'model' } });
});

test('a rate limit tells generateContent clients when to come back', async (t) => {
  t.match(body(google, new GatewayError('rate_limit_exceeded', null, { retryAfter: 30 })), {
    error: { details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '30s' }] },
  });
  t.notOk(google.errorBody(new GatewayError('rate_limit_exceeded'), requestId).includes('details'));
});

test('a stream ends with one complete event that holds the error body', async (t) => {
  const error = new GatewayError('upstream_error', 'line one\nline two\r\n\u2028 "x" \ud800');
  for (const errorFormat of errorFormats) {
    const prefix = errorFormat === anthropic ? 'event: error\ndata: ' : 'data: ';
    t.equal(
      errorFormat.errorEvent(error, requestId, 0),
      `${prefix}${errorFormat.errorBody(error, requestId)}\n\n`,
      errorFormat.name,
    );
    t.equal(
      errorFormat.errorEvent(error, requestId, 0).split(/\r\n|\r|\n/).length,
      errorFormat === anthropic ? 4 : 3,
    );
  }
});

test('only the messages error format repeats the request id in a header of its own', async (t) => {
  t.strictSame(
    errorFormats.map((errorFormat) => errorFormat.requestIdHeader),
    [null, 'request-id', null, null, null],
  );
});

test('the hidden cause of an error is in no body', async (t) => {
  const error = new GatewayError('internal_error', null, { cause: new Error('hidden detail') });
  for (const errorFormat of errorFormats)
    t.notMatch(errorFormat.errorBody(error, requestId), 'hidden detail', errorFormat.name);
});
