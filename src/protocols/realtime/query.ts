/** What can stand in a request target as it is (RFC 3986 section 3.4). */
const plain = /^[\x21-\x7e]*$/;

/**
 * The query of the upgrade at an upstream: the client's, with the upstream's name of the model, and without a key.
 * @param query of the client, without the question mark
 * @param model the upstream's name of the model, or null to name none
 */
export function upstreamQuery(query: string, model: string | null): string {
  const pairs = model === null ? [] : [`model=${encodeURIComponent(model)}`];
  for (const pair of query.split('&')) {
    const equals = pair.indexOf('=');
    const name = equals === -1 ? pair : pair.slice(0, equals);
    if (name !== '' && name !== 'model' && name !== 'key' && plain.test(pair)) pairs.push(pair);
  }
  return pairs.join('&');
}
