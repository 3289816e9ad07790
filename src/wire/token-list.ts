/**
 * A comma-separated list of words (RFC 9110 section 5.6.1) with some more and without others.
 * @param list as a header has it; empty for none
 */
export function editedList(list: string, added: readonly string[], dropped: ReadonlySet<string>): string {
  const words = list.split(',').map((word) => word.trim());
  const kept = words.filter((word) => word !== '' && !dropped.has(word));
  return [...kept, ...added.filter((word) => !kept.includes(word))].join(',');
}
