import { test } from 'tap';
import { refusalOf } from '../../../support/refusal.js';
import { decode } from '../conversation.js';

const turnsOf = (...input: unknown[]) => decode({ input }).turns;
const partOf = (part: object) => {
  const [turn] = turnsOf({ role: 'user', content: [part] });
  return turn?.role === 'user' ? turn.parts[0] : undefined;
};
const image = (image_url: string) => ({ type: 'input_image', image_url });

test('images and files come as bytes or as where they are', async (t) => {
  const turns = turnsOf({
    role: 'user',
    content: [
      { type: 'input_image', image_url: 'data:IMAGE/PNG;charset=x;base64,AAAA', detail: 'low' },
      { type: 'input_image', image_url: 'https://example.com/a.png' },
      { type: 'input_file', file_data: 'data:application/pdf;base64,BBBB', filename: 'a.pdf' },
      { type: 'input_file', file_data: 'CCCC', filename: 'A.PDF' },
      { type: 'input_file', file_url: 'https://example.com/a.pdf' },
    ],
  });
  const part = (kind: string, source: object, more: object) => ({
    kind,
    source,
    detail: null,
    name: null,
    ...more,
  });
  const at = (index: number) => `input[0].content[${index}]`;
  const pdf = { kind: 'data', mediaType: 'application/pdf' };
  t.same(turns[0], {
    role: 'user',
    parts: [
      part('image', { kind: 'data', mediaType: 'image/png', data: 'AAAA' }, { detail: 'low', at: at(0) }),
      part('image', { kind: 'url', url: 'https://example.com/a.png', mediaType: null }, { at: at(1) }),
      part('document', { ...pdf, data: 'BBBB' }, { name: 'a.pdf', at: at(2) }),
      part('document', { ...pdf, data: 'CCCC' }, { name: 'A.PDF', at: at(3) }),
      part('document', { kind: 'url', url: 'https://example.com/a.pdf', mediaType: null }, { at: at(4) }),
    ],
  });
});

test('what is called a JPEG is one', async (t) => {
  for (const url of ['data:image/jpg;base64,AAAA', 'DATA:image/JPG;base64,AAAA'])
    t.match(partOf(image(url)), { source: { mediaType: 'image/jpeg', data: 'AAAA' } });
});

test('an image that comes as a file is an image', async (t) => {
  const file = { type: 'input_file', filename: 'a.png', file_data: 'data:image/png;base64,AAAA' };
  t.same(partOf(file), {
    kind: 'image',
    source: { kind: 'data', mediaType: 'image/png', data: 'AAAA' },
    detail: null,
    name: null,
    at: 'input[0].content[0]',
  });
});

test('what is neither bytes nor a URL is refused by its name', async (t) => {
  const at = 'input[0].content[0]';
  const cases: [object, string][] = [
    [image('data:image/png;base64,'), `${at}.image_url`],
    [image('data:image/png,x'), `${at}.image_url`],
    [image('a picture'), `${at}.image_url`],
    [image('file:///etc/passwd'), `${at}.image_url`],
    [{ type: 'input_file', file_url: 'ftp://example.com/a.pdf' }, `${at}.file_url`],
    [{ type: 'input_file', file_data: 'https://example.com/a.pdf' }, `${at}.file_data`],
    [{ type: 'input_file', file_data: 'data:application/pdf;base64,' }, `${at}.file_data`],
  ];
  for (const [part, param] of cases)
    t.match(
      refusalOf(() => partOf(part)),
      { kind: 'invalid_value', param, status: 400 },
      param,
    );
});
