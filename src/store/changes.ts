/** Tells at once of changes by other processes and hosts, as far as it can: whoever has to know of each looks as well. */
export interface ChangeFeed {
  /**
   * Begins to listen.
   * @param onChange is told the collection of each change, and null when some may have been missed
   * @returns what ends it
   */
  listen(onChange: (collection: string | null) => void): () => void;
  close(): Promise<void>;
}
