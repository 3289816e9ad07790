/** A form as some client writes it, and what is in it. */
interface FormSample {
  readonly client: string;
  readonly contentType: string;
  readonly body: Buffer;
  /** Name, filename, content type, content. */
  readonly parts: readonly (readonly [string, string | null, string | null, string])[];
}

const lines = (...text: readonly string[]) => Buffer.from(text.join('\r\n'));

/** Written by the clients themselves (captured), but for those whose names say what they are like. */
export const formSamples: readonly FormSample[] = [
  {
    client: 'curl 7.88',
    contentType: 'multipart/form-data; boundary=------------------------50a6969834d0bb75',
    body: lines(
      '--------------------------50a6969834d0bb75',
      'Content-Disposition: form-data; name="file"; filename="a %22q%22.mp3"',
      'Content-Type: application/octet-stream',
      '',
      '\x00\x01',
      '--x',
      '--------------------------50a6969834d0bb75',
      'Content-Disposition: form-data; name="model"',
      '',
      'whisper-1',
      '--------------------------50a6969834d0bb75--',
      '',
    ),
    parts: [
      ['file', 'a "q".mp3', 'application/octet-stream', '\x00\x01\r\n--x'],
      ['model', null, null, 'whisper-1'],
    ],
  },
  {
    client: 'curl 7.88 --form-escape',
    contentType: 'multipart/form-data; boundary=------------------------7dc10497d955c2eb',
    body: lines(
      '--------------------------7dc10497d955c2eb',
      'Content-Disposition: form-data; name="file"; filename="a \\"q\\" \\\\.mp3"',
      'Content-Type: application/octet-stream',
      '',
      'abc',
      '--------------------------7dc10497d955c2eb',
      'Content-Disposition: form-data; name="prompt"',
      'Content-Type: text/plain',
      '',
      'é',
      '--------------------------7dc10497d955c2eb--',
      '',
    ),
    parts: [
      ['file', 'a "q" \\.mp3', 'application/octet-stream', 'abc'],
      ['prompt', null, 'text/plain', 'é'],
    ],
  },
  {
    client: 'requests 2.34',
    contentType: 'multipart/form-data; boundary=5b93a8074734143da489f7e5d64f6d42',
    body: lines(
      '--5b93a8074734143da489f7e5d64f6d42',
      'Content-Disposition: form-data; name="timestamp_granularities[]"',
      '',
      'word',
      '--5b93a8074734143da489f7e5d64f6d42',
      'Content-Disposition: form-data; name="timestamp_granularities[]"',
      '',
      'segment',
      '--5b93a8074734143da489f7e5d64f6d42',
      'Content-Disposition: form-data; name="file"; filename="é.mp3"',
      '',
      'abc',
      '--5b93a8074734143da489f7e5d64f6d42--',
      '',
    ),
    parts: [
      ['timestamp_granularities[]', null, null, 'word'],
      ['timestamp_granularities[]', null, null, 'segment'],
      ['file', 'é.mp3', null, 'abc'],
    ],
  },
  {
    client: 'undici',
    contentType: 'multipart/form-data; boundary=----formdata-undici-091097402262',
    body: lines(
      '------formdata-undici-091097402262',
      'Content-Disposition: form-data; name="a"',
      '',
      '',
      '------formdata-undici-091097402262',
      'Content-Disposition: form-data; name="file"; filename="we%22ird%0D%0A\\.txt"',
      'Content-Type: application/octet-stream',
      '',
      'xx',
      '------formdata-undici-091097402262--',
      '',
    ),
    parts: [
      ['a', null, null, ''],
      ['file', 'we"ird\r\n\\.txt', 'application/octet-stream', 'xx'],
    ],
  },
  {
    client: 'undici, nothing in it',
    contentType: 'multipart/form-data; boundary=----formdata-undici-071964937399',
    body: lines('------formdata-undici-071964937399--', ''),
    parts: [],
  },
  {
    client: 'a browser, with no file chosen',
    contentType: 'multipart/form-data; boundary=----WebKitFormBoundaryABCDEFGH12345678',
    body: lines(
      '------WebKitFormBoundaryABCDEFGH12345678',
      'Content-Disposition: form-data; name="file"; filename=""',
      'Content-Type: application/octet-stream',
      '',
      '',
      '------WebKitFormBoundaryABCDEFGH12345678--',
      '',
    ),
    parts: [['file', '', 'application/octet-stream', '']],
  },
  {
    client: '.NET, with a quoted boundary and names without quotes',
    contentType: 'multipart/form-data; boundary="6ce8b1f8-3d5c-4c32-9f0f-5d4e8a3f1a77"',
    body: lines(
      '--6ce8b1f8-3d5c-4c32-9f0f-5d4e8a3f1a77',
      'Content-Type: text/plain; charset=utf-8',
      'Content-Disposition: form-data; name=model',
      '',
      'whisper-1',
      '--6ce8b1f8-3d5c-4c32-9f0f-5d4e8a3f1a77',
      "Content-Disposition: form-data; name=file; filename=a.mp3; filename*=utf-8''na%C3%AFve%20a.mp3",
      '',
      'abc',
      '--6ce8b1f8-3d5c-4c32-9f0f-5d4e8a3f1a77--',
      '',
    ),
    parts: [
      ['model', null, 'text/plain; charset=utf-8', 'whisper-1'],
      ['file', 'naïve a.mp3', null, 'abc'],
    ],
  },
  {
    client: 'Java, with the coding named and no quotes where the boundary needs them',
    contentType: 'multipart/form-data;boundary=----=_Part_1_123.456;charset=UTF-8',
    body: lines(
      '------=_Part_1_123.456',
      'content-disposition:form-data;name="file";filename="C:\\music\\a.mp3"',
      'CONTENT-TYPE: audio/mpeg',
      'Content-Transfer-Encoding: binary',
      '',
      'abc',
      '------=_Part_1_123.456--',
    ),
    parts: [['file', 'C:\\music\\a.mp3', 'audio/mpeg', 'abc']],
  },
  {
    client: 'mail software: a line end before everything, padding behind boundaries, blanks at the end',
    contentType: 'Multipart/Form-Data; charset=x; Boundary="a b\'()+_,-./:=?c"',
    body: lines(
      '',
      "--a b'()+_,-./:=?c \t",
      'Content-Disposition: Form-Data ; Name = "a" ;',
      '',
      'abc',
      "--a b'()+_,-./:=?c-- ",
      ' \t',
      '',
    ),
    parts: [['a', null, null, 'abc']],
  },
];
