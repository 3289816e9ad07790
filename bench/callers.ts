/** The key of a caller, and the model that it calls. */
export interface Caller {
  readonly key: string;
  readonly model: string;
}

/** Returns the caller with a number. All names have the same length, and therefore all bodies. */
export function callerAt(index: number): Caller {
  const digits = String(index).padStart(6, '0');
  return { key: `sk-bench-${digits}`, model: `bench-model-${digits}` };
}
