import { test } from 'tap';
import { createErrorFormatForPath } from '../../../src/protocols/error-formats/formats.js';

const errorFormatForPath = createErrorFormatForPath({
  vendorc: ['anthropic'],
  vendorg: ['goog'],
  vendork: ['kling'],
  vendorj: ['jimeng'],
});

test('an unknown path is refused in the error format of its neighbours', async (t) => {
  const expected: readonly (readonly [string, string])[] = [
    ['/v1/chat/completions', 'openai'],
    ['/v1/v1/chat/completions', 'openai'],
    ['/v1/unknown', 'openai'],
    ['/v1/models/messages', 'openai'],
    ['/', 'openai'],
    ['', 'openai'],
    ['*', 'openai'],
    ['/v1/models/m:predict', 'google'],
    ['/anthropic/v1/messages', 'anthropic'],
    ['/anthropic/v1/nothing', 'anthropic'],
    ['/openai/v1/nothing', 'openai'],
    ['/v1/messages', 'anthropic'],
    ['/v1/messages/batches', 'anthropic'],
    ['/v1beta', 'google'],
    ['/v1beta/unknown', 'google'],
    ['/v1beta/openai/unknown', 'openai'],
    ['/v1beta/openaiunknown', 'google'],
    ['/v1alpha/unknown', 'google'],
    ['/v1beta1/publishers/google/models/m:foo', 'google'],
    ['/v1/publishers/google/models/m:foo', 'google'],
    ['/v1/projects/p/locations/global/publishers/google/models/m:foo', 'google'],
    ['/v1beta1/projects/p/locations/global/publishers/google/models/m:foo', 'google'],
    ['/v1/projects', 'openai'],
    ['/v1beta2/models', 'openai'],
    ['/vendork/v1/videos', 'kling'],
    ['/kling/v1/videos', 'kling'],
    ['/klingon', 'openai'],
    ['/vendorj/', 'jimeng'],
    ['/vendorj', 'jimeng'],
    ['/jimeng/', 'jimeng'],
  ];
  for (const [path, name] of expected) t.equal(errorFormatForPath('POST', path).name, name, path);
});

test('a fine-tuned model whose name ends like an operation is deleted in the error format of its clients', async (t) => {
  const path = '/v1/models/ft:gpt-4o-mini:acme::abc';
  t.equal(errorFormatForPath('DELETE', path).name, 'openai');
  t.equal(errorFormatForPath('POST', path).name, 'google');
});
