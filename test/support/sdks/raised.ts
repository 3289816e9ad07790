/**
 * Waits for the error that a call must raise.
 * @param type the class of the SDK's errors
 * @throws Error if the call succeeds, or raises something other than an error of the SDK
 */
export async function raisedAs<E>(
  type: abstract new (...given: never) => E,
  call: PromiseLike<unknown>,
): Promise<E> {
  try {
    await call;
  } catch (error) {
    if (error instanceof type) return error;
    throw error;
  }
  throw new Error('the call raised no error');
}
