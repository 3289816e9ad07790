import { isObject, type JsonObject } from '../../../src/wire/json.js';
import { onlyMembers } from './asked.js';
import { continued, itemsOf } from './kept.js';
import { type Memory, sign } from './memory.js';
import { readResponses } from './responses.js';

/** Members of a compaction: `ResponseCompactParams` of the vendor's SDK. */
const members =
  'model input image instructions previous_response_id prompt_cache_key prompt_cache_options prompt_cache_retention ' +
  'service_tier';

/**
 * @returns the answer to a request that compacts a conversation, with the user's texts and the rest sealed; null for
 * any other request
 * @throws BrokenRule
 */
export function compactionOf(path: string, sent: JsonObject, memory: Memory): object | null {
  if (path !== '/v1/responses/compact') return null;
  onlyMembers(sent, members, '');
  const { image: _image, ...body } = continued(sent, memory);
  readResponses(body, memory);
  const encrypted_content = sign(memory, '');
  const said = [itemsOf(body.input)].flat().filter((item) => isObject(item) && item.role === 'user');
  return {
    id: `resp_${memory.count}`,
    object: 'response.compaction',
    created_at: 1,
    output: [...said, { type: 'compaction', id: `cmp_${memory.count}`, encrypted_content }],
    usage: {
      input_tokens: 30,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 12,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 42,
    },
  };
}
