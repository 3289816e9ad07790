import { type Test, test } from 'tap';
import {
  alikeOf,
  escaped,
  type Hearing,
  headers,
  membersOf,
  objectOf,
  refusedThere,
  type Sample,
  samples,
  startHearing,
} from './alike-members.js';

async function post({ gateway }: Hearing, path: string, body: string | Buffer) {
  const answer = await fetch(`${gateway.url}${path}`, { method: 'POST', headers, body });
  return { status: answer.status, text: await answer.text() };
}

/** Bodies with a member by two names, or by a wrong one alone, and the names that the refusal has to say. */
function attacks(body: [string, unknown][], name: string, value: unknown, twoSpellings: boolean) {
  const own = JSON.stringify(name);
  const others = body.filter(([each]) => each !== own);
  const member: [string, unknown] = [own, value];
  const filler: [string, unknown] = ['"x-filler"', 'a "quoted" word\n'.repeat(200)];
  // Each name in one of the places: in front, far behind, as escapes, and alone.
  const twins = alikeOf(name, twoSpellings).map((alike, index) => {
    const twin: [string, unknown] = [JSON.stringify(alike), value];
    const places = [
      [twin, member, ...others],
      [member, ...others, filler, twin],
      [...others, twin],
      [member, [escaped(alike), value] as [string, unknown], ...others],
    ];
    return { members: places[index % places.length] ?? [], alike };
  });
  return [
    ...twins,
    { members: [member, member, ...others], alike: name },
    { members: [member, ...others, filler, [escaped(name), value] as [string, unknown]], alike: name },
  ];
}

test('a member that can be taken for one that is read reaches no upstream', async (t) => {
  const hearing = await startHearing(t);
  for (const sample of samples) await t.test(sample.what, (sub) => refuseAll(sub, hearing, sample));
});

async function refuseAll(t: Test, hearing: Hearing, sample: Sample): Promise<void> {
  const { path, body, members, inner = {}, twoSpellings = false } = sample;
  const heard = hearing.upstream.requests.length;
  let count = 0;
  const refused = async (text: string, names: readonly string[]) => {
    const answer = await post(hearing, path, text);
    count++;
    const said = visible(answer.text);
    const areNamed = names.every((name) => said.includes(visible(name)));
    const requests = hearing.upstream.requests.length - heard;
    if (answer.status !== 400 || !areNamed || requests > 0)
      t.fail('was not refused as it should', { text: text.slice(0, 300), names, answer, requests });
  };
  for (const [name, value] of Object.entries(members)) {
    for (const attack of attacks(membersOf(body), name, value, twoSpellings))
      await refused(objectOf(attack.members), [name, attack.alike]);
  }
  for (const [holder, innerMembers] of Object.entries(inner)) {
    const rest = objectOf(membersOf(body).filter(([each]) => each !== JSON.stringify(holder)));
    for (const [name, value] of Object.entries(innerMembers)) {
      for (const attack of attacks([], name, value, twoSpellings)) {
        const object = `${JSON.stringify(holder)}:${objectOf(attack.members)}`;
        await refused(`{${object},${rest.slice(1)}`, [`${holder}.${name}`, attack.alike]);
      }
    }
  }
  t.ok(count > 5, `${count} bodies`);
  const legal = await post(hearing, path, objectOf(membersOf({ ...body, ...members })));
  t.not(legal.status, 400, legal.text);
}

/** A text without what cannot be seen, or its escapes. */
function visible(text: string): string {
  return text.replaceAll(/\\+u0000|\\+ufeff|\0|\ufeff/g, '');
}

test('both spellings of a name that has two are refused together, and each is taken alone', async (t) => {
  const hearing = await startHearing(t);
  const path = '/v1beta/models/gemini:generateContent';
  const contents = '"contents":[{"role":"user","parts":[{"text":"hi"}]}]';
  const camel = '"generationConfig":{"maxOutputTokens":5}';
  const snake = '"generation_config":{"max_output_tokens":5}';
  const both = await post(hearing, path, `{${contents},${camel},${snake}}`);
  t.match(both, { status: 400, text: /generationConfig.*generation_config/ });
  const inner = await post(
    hearing,
    path,
    `{${contents},"generationConfig":{"maxOutputTokens":5,"max_output_tokens":50}}`,
  );
  t.match(inner, { status: 400, text: /maxOutputTokens.*max_output_tokens/ });
  t.equal(hearing.upstream.requests.length, 0);
  for (const config of [camel, snake]) {
    const alone = await post(hearing, path, `{${contents},${config}}`);
    t.match(alone.text, refusedThere);
  }
});

test('an effort that the AI SDK repeats in its own spelling is taken with the same value alone', async (t) => {
  const hearing = await startHearing(t);
  const path = '/v1/chat/completions';
  const rest = '"model":"native","messages":[{"role":"user","content":"hi"}]';
  const own = '"reasoning_effort":"high"';
  const echo = '"reasoningEffort":"high"';
  const taken = [`{${echo},${rest},${own}}`, `{${own},${rest},${echo}}`];
  for (const body of taken) t.match((await post(hearing, path, body)).text, refusedThere, body);
  const sent = hearing.upstream.requests.map((request) => request.body.toString());
  const renamed = taken.map((body) => body.replace('native', 'real'));
  t.strictSame(sent, renamed, 'as it was sent, with the name of the target');
  const refused = [
    [`{${rest},${echo}}`, /it is spelled 'reasoning_effort'/],
    [`{${rest},${own},"reasoningEffort":"low"}`, /send 'reasoning_effort' alone/],
    [`{${rest},${own},"ReasoningEffort":"high"}`, /send 'reasoning_effort' alone/],
    [`{${rest},${own},${echo},${echo}}`, /send 'reasoning_effort' alone/],
    [`{${rest},${own},${echo},${own}}`, /send 'reasoning_effort' alone/],
    [`{${rest},"model":"native","Model":"native"}`, /'model'/],
  ] as const;
  for (const [body, words] of refused)
    t.match(await post(hearing, path, body), { status: 400, text: words }, body);
  t.equal(hearing.upstream.requests.length, taken.length);
});

test('a twin deep behind a large prompt is found, whether the prompt is walked or parsed', async (t) => {
  const hearing = await startHearing(t);
  const prose = 'Once upon a time, "somebody" wrote a line.\n'.repeat(8000);
  for (const content of [prose, `${prose}\u2028漢字`]) {
    for (const first of ['"model":"native"', '"mod\\u0065l":"native"']) {
      const body = `{${first},"messages":[{"role":"user","content":${JSON.stringify(content)}}],"MODEL":"dear"}`;
      t.match(await post(hearing, '/v1/chat/completions', body), { status: 400, text: /'model'.*'MODEL'/ });
    }
  }
  t.equal(hearing.upstream.requests.length, 0);
});

test('a name that is not UTF-8 is refused, since parsers make different names of it', async (t) => {
  const hearing = await startHearing(t);
  const messages = '"messages":[{"role":"user","content":"hi"}]';
  for (const name of ['mod\xffel', '\xc1\xadodel', 'model\xc0\x80']) {
    const body = Buffer.from(`{"model":"native",${messages},"${name}":"dear"}`, 'latin1');
    t.match(await post(hearing, '/v1/chat/completions', body), { status: 400, text: /UTF-8/ });
  }
  t.equal(hearing.upstream.requests.length, 0);
});

test('names that no parser folds to a read one pass, and so does everything deeper', async (t) => {
  const hearing = await startHearing(t);
  const body = {
    model: 'native',
    messages: [{ role: 'user', content: 'hi', Role: 'x', Model: 'y', provider: 'z' }],
    // Neither has a simple folding: CaseFolding.txt has them under T and F.
    'ma\u0131x_tokens': 1,
    s\u0131ze: 1,
    'X\u0130': 1,
    modell: 'x',
    mode: 'x',
    usage: { include: true },
    tools: [
      {
        type: 'function',
        function: {
          name: 'f',
          parameters: { type: 'object', properties: { Model: {}, route: {}, provider: {} } },
        },
      },
    ],
    metadata: { Model: 'x', provider: 'x', api_key: 'x' },
    extra_body: { google: { thinking_config: { include_thoughts: true } } },
  };
  const text = JSON.stringify(body);
  const answer = await post(hearing, '/v1/chat/completions', text);
  t.match(answer.text, refusedThere);
  t.equal(hearing.upstream.requests[0]?.body.toString(), text.replace('"native"', '"real"'));
});

test('what a server would merge into the body cannot carry what was checked', async (t) => {
  const hearing = await startHearing(t);
  for (const inner of [
    { model: 'dear' },
    { Model: 'dear' },
    { n: 50 },
    { max_tokens: 9 },
    { api_base: 'https://x' },
  ]) {
    for (const holder of ['extra_body', 'extraBody', 'Extra_Body']) {
      const body = { model: 'native', messages: [{ role: 'user', content: 'hi' }], [holder]: inner };
      const answer = await post(hearing, '/v1/chat/completions', JSON.stringify(body));
      t.equal(answer.status, 400, JSON.stringify(body));
    }
  }
  const metered: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
    ['/v1/completions', { model: 'native', prompt: 'a', best_of: 1, extra_body: { best_of: 50 } }],
    ['/v1/videos', { model: 'generic', prompt: 'a', seconds: '4', extra_body: { seconds: '60' } }],
    ['/v1/images/generations', { model: 'native', prompt: 'a', extra_body: { size: '4096x4096' } }],
    ['/v1/embeddings', { model: 'native', input: 'a', extra_body: { input: ['b'] } }],
    ['/v1/audio/speech', { model: 'native', input: 'a', voice: 'x', extra_body: { Input: 'b' } }],
    ['/v1/rerank', { model: 'native', query: 'a', documents: ['b'], extra_body: { top_n: 9 } }],
    [
      '/v1/chat/completions',
      { model: 'native', messages: [{ role: 'user', content: 'hi' }], extra_body: { store: true } },
    ],
  ];
  for (const [path, body] of metered)
    t.match(await post(hearing, path, JSON.stringify(body)), { status: 400, text: /extra_body\./ }, path);
  const video = { model: 'generic', prompt: 'a cat', metadata: { Model_Name: 'dear' } };
  t.match(await post(hearing, '/v1/video/generations', JSON.stringify(video)), {
    status: 400,
    text: /metadata\.Model_Name/,
  });
  t.equal(hearing.upstream.requests.length, 0);
});

test('a body that names another model than its path is refused where it would pass as it is', async (t) => {
  const hearing = await startHearing(t);
  const contents = [{ role: 'user', parts: [{ text: 'hi' }] }];
  const path = '/v1beta/models/gemini:';
  for (const [method, body] of [
    ['generateContent', { contents, model: 'models/dear' }],
    ['streamGenerateContent', { contents, model: 'dear' }],
    ['generateContent', { contents, model: ['dear'] }],
    ['countTokens', { generateContentRequest: { contents, model: 'models/dear' } }],
    ['countTokens', { generate_content_request: { contents, model: 'models/dear' } }],
    ['countTokens', { generateContentRequest: { contents, Model: 'models/gemini' } }],
  ] as const) {
    const answer = await post(hearing, `${path}${method}`, JSON.stringify(body));
    t.match(answer, { status: 400, text: /model/ }, JSON.stringify(body));
  }
  t.equal(hearing.upstream.requests.length, 0);
  for (const [method, body] of [
    ['generateContent', { contents, model: 'models/gemini' }],
    ['countTokens', { generateContentRequest: { contents, model: 'models/gemini' } }],
  ] as const) {
    const answer = await post(hearing, `${path}${method}`, JSON.stringify(body));
    t.match(answer.text, refusedThere);
  }
  t.match(
    hearing.upstream.requests[0]?.body.toString(),
    '"model":"models/real"',
    "with the upstream's own name",
  );
});

test('of a model in the path and one in the body, an upstream of embeddings gets the one of the path', async (t) => {
  const hearing = await startHearing(t);
  await post(hearing, '/v1/engines/native/embeddings', '{"model":"dear","input":"hi"}');
  t.equal(hearing.upstream.requests[0]?.body.toString(), '{"model":"real","input":"hi"}');
});
