/** Who calls, and for which model. */
export interface Caller {
  readonly key: string;
  readonly model: string;
}

/** The caller and the model with a number; all names have the same length, so that bodies have it too. */
export function callerAt(index: number): Caller {
  const digits = String(index).padStart(6, '0');
  return { key: `sk-bench-${digits}`, model: `bench-model-${digits}` };
}
