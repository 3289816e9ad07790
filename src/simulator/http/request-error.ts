/** The refusal of a request, which is rendered in the format of the request. */
export class RequestError extends Error {
  readonly status: number;
  /** The invalid member, for formats that have a place for it. */
  readonly param: string | null;
  /** The error code for programs; undefined if it follows from the status. */
  readonly code: string | null | undefined;

  constructor(status: number, message: string, param: string | null = null, code?: string | null) {
    super(message);
    this.status = status;
    this.param = param;
    this.code = code;
  }
}

/** The refusal that a directive requests. */
export function askedForStatus(status: number): RequestError {
  return new RequestError(status, `The simulator was asked to answer with status ${status}.`);
}
