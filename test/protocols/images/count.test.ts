import { test } from 'tap';
import { countIn as countInBody, countInForm } from '../../../src/protocols/images/outline.js';

const countIn = (body: object, whole = body) => countInBody({ ...body }, () => ({ ...whole }));
const part = (name: string, value: string, filename: string | null = null) => ({
  name,
  filename,
  contentType: null,
  data: Buffer.from(value),
});

test('the largest number by any name counts, in whatever holds it', async (t) => {
  for (const [body, count] of [
    [{}, null],
    [{ n: null, batch_size: '' }, null],
    [{ n: 2, parameters: { n: '10' }, max_images: 3 }, 10],
    [{ n: 2, BatchSize: 4 }, 4],
    [{ sequentialImageGenerationOptions: { maxImages: 15 } }, 15],
    [{ parameters: { metadata: { extra_body: { n: 5 } } } }, 5],
    [{ parameters: { parameters: { parameters: { parameters: { n: 5 } } } } }, null],
    [{ other: { n: 5 }, parameters: 5, input: { n: 5 } }, null],
  ] as const)
    t.equal(countIn(body), count, JSON.stringify(body));
});

test('what could count and is no number is refused by its path', async (t) => {
  for (const n of [0, -1, 1.5, 1001, 'two', '1e1', ' 2', true, [2], {}, 1e300])
    t.throws(() => countIn({ parameters: { n } }), {
      name: 'GatewayError',
      status: 400,
      param: 'parameters.n',
    });
});

test('of a form: the same by names with brackets or dots, and none as a file', async (t) => {
  t.equal(countInForm([part('prompt', '9'), part('n', '')]), null);
  t.equal(countInForm([part('n', '2'), part('parameters[n]', '3'), part('parameters.batch_size', '4')]), 4);
  t.equal(countInForm([part('other[n]', '3'), part(`${'x'.repeat(300)}[n]`, '3')]), null);
  t.throws(() => countInForm([part('n', '1234567890')]), { name: 'GatewayError', param: 'n' });
  t.throws(() => countInForm([part('num_images', '2', 'a')]), { name: 'GatewayError', param: 'num_images' });
});

test('in a text that is JSON nothing may count, since it could come twice there', async (t) => {
  const refused = (at: string) => ({ name: 'GatewayError', status: 400, param: at });
  t.throws(() => countIn({ n: 1, metadata: '{"n":9}' }), refused('metadata.n'));
  t.throws(() => countIn({ metadata: '{"n":9,"n":1}' }), refused('metadata.n'));
  t.throws(
    () => countIn({ metadata: { extra_body: ' {"max_images":1}' } }),
    refused('metadata.extra_body.max_images'),
  );
  t.throws(() => countIn({ metadata: '{"n":NaN}' }), refused('metadata'));
  t.throws(() => countInForm([part('metadata', '{"n":9}')]), refused('metadata.n'));
  t.equal(countIn({ n: 2, metadata: '{"user":"a","deep":{"n":9}}' }), 2);
  t.equal(countIn({ n: 2, metadata: 'n: 9' }), 2);
});

test('a text that is cut in what is checked is looked at as it came', async (t) => {
  const text = (more: string) => JSON.stringify({ note: 'x'.repeat(1000) }).replace('}', `${more}}`);
  const cut = { n: 2, metadata: '{"note":"xxxxxxx...' };
  t.equal(countIn(cut, { n: 2, metadata: text('') }), 2);
  t.throws(() => countIn(cut, { n: 2, metadata: text(',"n":9') }), {
    name: 'GatewayError',
    param: 'metadata.n',
  });
});
