/** Type and code of an OpenAI-family error body by status. */
const words: Readonly<Record<number, readonly [type: string, code: string | null]>> = {
  400: ['invalid_request_error', null],
  401: ['invalid_request_error', 'invalid_api_key'],
  402: ['insufficient_quota', 'insufficient_quota'],
  403: ['permission_error', 'insufficient_permissions'],
  404: ['invalid_request_error', 'not_found'],
  405: ['invalid_request_error', 'method_not_allowed'],
  409: ['invalid_request_error', 'conflict'],
  413: ['invalid_request_error', 'request_too_large'],
  415: ['invalid_request_error', 'unsupported_media_type'],
  429: ['rate_limit_error', 'rate_limit_exceeded'],
  500: ['server_error', 'internal_error'],
  502: ['server_error', 'upstream_error'],
  503: ['server_error', 'service_unavailable'],
  504: ['server_error', 'timeout'],
};

/** A request that is refused, in the OpenAI family's words. */
export class OpenAiError extends Error {
  readonly status: number;
  readonly param: string | null;
  readonly code: string | null | undefined;

  /** @param code left out, it follows from the status. */
  constructor(status: number, message: string, param: string | null = null, code?: string | null) {
    super(message);
    this.status = status;
    this.param = param;
    this.code = code;
  }
}

/** The JSON text of an error body of the OpenAI family. */
export function openAiErrorBody(error: OpenAiError): string {
  const [type, code] = words[error.status] ?? [
    error.status < 500 ? 'invalid_request_error' : 'server_error',
    null,
  ];
  return JSON.stringify({
    error: {
      message: error.message,
      type,
      param: error.param,
      code: error.code === undefined ? code : error.code,
    },
  });
}
