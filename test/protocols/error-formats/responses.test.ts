import { test } from 'tap';
import { GatewayError } from '../../../src/errors.js';
import { openai, responses } from '../../../src/protocols/error-formats/formats.js';

const error = new GatewayError('invalid_value', 'Not "this".', { param: 'input[0]' });

test('bodies of errors are as all of OpenAI', async (t) => {
  t.equal(responses.errorBody(error, 'req_1'), openai.errorBody(error, 'req_1'));
  t.equal(responses.name, 'openai');
});

test('the error event has its members twice, so that every version of the SDK raises it', async (t) => {
  const text = responses.errorEvent(error, 'req_1', 4);
  const [, data = ''] = /^event: error\ndata: (.*)\n\n$/.exec(text) ?? [];
  t.same(JSON.parse(data), {
    type: 'error',
    sequence_number: 4,
    code: 'invalid_value',
    message: 'Not "this".',
    param: 'input[0]',
    error: {
      message: 'Not "this".',
      type: 'invalid_request_error',
      param: 'input[0]',
      code: 'invalid_value',
    },
  });
});
