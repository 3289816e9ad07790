/** @returns gives what `make` makes, once, when it is first asked for: several targets may need it, or none */
export function lazy<Made extends object>(make: () => Made): () => Made {
  let made: Made | null = null;
  return () => {
    made ??= make();
    return made;
  };
}
