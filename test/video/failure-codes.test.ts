import { test } from 'tap';
import { codeNumber, codeWord, failureKind, vendorjCode } from '../../src/video/failure-codes.js';

test('a code in the words and numbers of each format', async (t) => {
  const cases: [code: string, word: string, number: number, vendorj: number][] = [
    ['50411', 'content_policy_violation', 50411, 50411],
    ['50412', 'content_policy_violation', 50412, 50412],
    ['50511', 'content_policy_violation', 50511, 50511],
    ['50513', 'content_policy_violation', 50513, 50513],
    ['50429', 'rate_limit_exceeded', 50429, 50429],
    ['50430', 'rate_limit_exceeded', 50430, 50430],
    ['50500', 'generation_failed', 50500, 50500],
    ['1301', 'content_policy_violation', 1301, 50511],
    ['1303', 'rate_limit_exceeded', 1303, 50429],
    ['500', 'generation_failed', 500, 50500],
    ['10000', 'generation_failed', 10000, 50500],
    ['moderation_blocked', 'moderation_blocked', 400, 50511],
    ['rate_limit_exceeded', 'rate_limit_exceeded', 429, 50429],
    ['too_many_requests', 'too_many_requests', 429, 50429],
    ['TooManyRequests', 'TooManyRequests', 429, 50429],
    ['concurrency_exceeded', 'concurrency_exceeded', 429, 50429],
    ['Throttling.RateQuota', 'Throttling.RateQuota', 429, 50429],
    ['429', 'rate_limit_exceeded', 429, 50429],
    ['generation_failed', 'generation_failed', 500, 50500],
    ['12345678901234567890', '12345678901234567890', 500, 50500],
    ['', 'generation_failed', 500, 50500],
  ];
  for (const [code, word, number, vendorj] of cases) {
    const failure = { code, message: 'x' };
    t.equal(codeWord(failure), word, code);
    t.equal(codeNumber(failure), number, code);
    t.equal(vendorjCode(failure), vendorj, code);
  }
  t.equal(failureKind('50410'), 'other');
  for (const code of [
    'content_filter',
    'ContentPolicyViolation',
    'image_content_policy_violation',
    'safety_block',
    'prompt_filtered',
    'usage_policy',
    'violates_policy',
  ])
    t.equal(failureKind(code), 'policy', code);
  for (const code of ['invalid_filter', 'invalid_policy', 'cache_policy', 'filter'])
    t.equal(failureKind(code), 'other', code);
});
