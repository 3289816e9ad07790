import { test } from 'tap';
import { LackingEndpoints, reportsMissingEndpoint } from '../../src/attempts/lacking-endpoints.js';
import { countTokens } from '../../src/protocols/messages/index.js';
import { compactResponses } from '../../src/protocols/responses/index.js';
import { makeTarget } from './targets.js';

test('a 404 is about the path unless it names the model as a word of its own', (t) => {
  const request = Buffer.from(
    '{"model":"gpt-4","input":[{"id":"rs_abc12"},{"file_id":"file-99"},"nothing found"]}',
  );
  const asked = { model: 'gpt-4', path: '/models/gpt-4:countTokens', request };
  const says = (status: number, text: string) => reportsMissingEndpoint(status, Buffer.from(text), asked);
  t.ok(says(405, 'gpt-4'));
  t.ok(says(404, ''));
  t.ok(says(404, 'Cannot POST /v1beta/models/gpt-4:countTokens'));
  t.ok(says(404, '{"path":"\\/v1beta\\/models\\/gpt-4:countTokens"}'));
  t.ok(says(404, 'gpt-4o and xgpt-4 are there'));
  t.notOk(says(404, 'gpt-4o and gpt-4'));
  t.notOk(says(404, 'gpt-4 is not there'));
  t.notOk(says(404, '"models/gpt-4"'));
  t.notOk(says(404, '{"code":"model_not_found"}'));
  t.notOk(says(404, '{"error":{"message":"gone","details":{"error_code":"thread_not_found"}}}'));
  t.notOk(says(404, '{"error":{"message":"gone","code":"previous_response_not_found"}}'));
  t.notOk(says(404, "Item with id 'rs_abc12' not found."), 'what the request names is not there');
  t.notOk(says(404, '{"error":{"message":"No such file: file-99"}}'));
  t.ok(says(404, '{"error":{"type":"not_found_error","message":"nothing found"}}'));
  t.ok(reportsMissingEndpoint(404, Buffer.from('rs_abc12'), { ...asked, request: null }));
  for (const status of [400, 403, 500, 501, 200]) t.notOk(says(status, ''));
  t.end();
});

test('what a target lacks is remembered for an hour, of each endpoint by itself', (t) => {
  const lacking = new LackingEndpoints();
  const target = makeTarget('a');
  lacking.note(target, countTokens, 5);
  t.ok(lacking.has(target, countTokens, 3_600_004));
  t.notOk(lacking.has(target, countTokens, 3_600_005));
  t.notOk(lacking.has(target, compactResponses, 5));
  t.notOk(lacking.has(makeTarget('a'), countTokens, 5));
  t.end();
});
