import { test } from 'tap';
import { GatewayError } from '../../../src/errors.js';
import { openai, rerank } from '../../../src/protocols/error-formats/formats.js';

test('an error has the body of the chat family with its message at the top as well', async (t) => {
  const error = new GatewayError('invalid_value', 'documents is "empty"', { param: 'documents' });
  const expected = JSON.parse(openai.errorBody(error, 'req_1'));
  t.strictSame(JSON.parse(rerank.errorBody(error, 'req_1')), {
    message: 'documents is "empty"',
    ...expected,
  });
  t.equal(rerank.errorEvent(error, 'req_1', 0), openai.errorEvent(error, 'req_1', 0));
});
