import { test } from 'tap';
import { estimateTokens } from '../../../src/conversation/token-count.js';
import { countTokens, generateContent } from '../../../src/protocols/generate-content/index.js';
import { decode, user } from './samples.js';

test('the model stands in the path, with a slash in its name kept', async (t) => {
  t.equal(
    generateContent.upstreamPath('gemini-2.5-flash', false),
    '/models/gemini-2.5-flash:generateContent',
  );
  t.equal(generateContent.upstreamPath('g', true), '/models/g:streamGenerateContent?alt=sse');
  t.equal(generateContent.upstreamPath('models/g', false), '/models/g:generateContent');
  t.equal(generateContent.upstreamPath('tunedModels/a b', false), '/tunedModels/a%20b:generateContent');
  t.equal(generateContent.upstreamPath('org/m:free?x', false), '/models/org/m%3Afree%3Fx:generateContent');
  t.equal(countTokens.upstreamPath('g', false), '/models/g:countTokens');
});

test('tokens are counted here for upstreams of other protocols', async (t) => {
  const translation = countTokens.translation;
  const inner = { contents: [user('some words')], systemInstruction: 'Be brief.' };
  for (const body of [inner, { generateContentRequest: inner }, { generate_content_request: inner }])
    t.same(translation?.unwrap?.(body), inner);
  const request = decode(inner);
  t.same(JSON.parse(translation?.answerHere?.(request) ?? ''), { totalTokens: estimateTokens(request) });
});
