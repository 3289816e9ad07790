/** A request that is refused, in the words of whatever format it came in. */
export class RequestError extends Error {
  readonly status: number;
  /** The member that is wrong, where the format has a place for it. */
  readonly param: string | null;
  /** What programs tell it by; undefined where it follows from the status. */
  readonly code: string | null | undefined;

  constructor(status: number, message: string, param: string | null = null, code?: string | null) {
    super(message);
    this.status = status;
    this.param = param;
    this.code = code;
  }
}

/** The refusal that a directive asks for. */
export function askedForStatus(status: number): RequestError {
  return new RequestError(status, `The simulator was asked to answer with status ${status}.`);
}
