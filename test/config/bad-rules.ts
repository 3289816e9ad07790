import { type BadConfig, secret } from './bad-configs.js';

/** Rules that cannot be, or that nothing could ever be changed by. */
export const badRules: readonly BadConfig[] = [
  {
    at: 'upstreams/main/rules',
    value: { drops: [], drop: 'seed', sampling: 'no', efforts: { high: '' }, thinking: 'deep' },
    problems: [
      'upstreams.main.rules.drops: unknown property; did you mean "drop"?',
      'upstreams.main.rules.drop: must be an array',
      'upstreams.main.rules.efforts.high: must not be empty',
      'upstreams.main.rules.sampling: must be a boolean',
      'upstreams.main.rules.thinking: must be one of adaptive, enable_thinking, type',
    ],
  },
  {
    at: 'upstreams/main/rules',
    value: {
      drop: ['model', 'Stream.x', 'a.b.c.d.e.f.g', 'a..b', '[].a', 'h[]', 'i[].b.c[].d.e.f'],
      set: { streamOptions: null, n: 2, messages: [], api_key: secret, 'input[].phase': 'x' },
      rename: { x: 'background', user: 'api_base', 'o.b': 'c' },
      clamp: { top_p: {}, temperature: { min: 2, max: 1 } },
    },
    problems: [
      'upstreams.main.rules.drop[0]: may not be changed: by it the gateway routes; "model" of the target sets it',
      'upstreams.main.rules.drop[1]: may not be changed: by it the gateway knows how the answer comes',
      'upstreams.main.rules.drop[2]: a member may lie at most 6 levels deep',
      'upstreams.main.rules.drop[3]: a member is named by names with dots between them, and one of the objects in a list as in "list[].name"',
      'upstreams.main.rules.drop[4]: a member is named by names with dots between them, and one of the objects in a list as in "list[].name"',
      'upstreams.main.rules.set.streamOptions: may not be changed: by it the usage of streams is asked for; see "injectUsage"',
      'upstreams.main.rules.set.n: may not be put into a body: the gateway counts the answers that the client asks for',
      'upstreams.main.rules.set.messages: may not be put into a body: what a client says is checked under its own name',
      'upstreams.main.rules.set.api_key: may not be put into a body: it carries a credential; put it into apiKeys',
      'upstreams.main.rules.set["input[].phase"]: cannot apply: members of the objects in a list can only be dropped',
      'upstreams.main.rules.rename.x: may not be changed: an answer in the background is not metered',
      'upstreams.main.rules.rename.user: may not be the new name of a member: by it a client could lead the upstream elsewhere',
      'upstreams.main.rules.clamp.top_p: needs a min or a max',
      'upstreams.main.rules.clamp.temperature: has a min above its max',
      'upstreams.main.rules.rename["o.b"]: must stay in its object: give the new name with the same path',
    ],
  },
  {
    at: 'upstreams/main/rules',
    value: {
      drop: ['seed', 'thinking'],
      set: { seed: 1, 'thinking.type': 'enabled' },
      rename: { user: 'name', nickname: 'name' },
      clamp: { name: { max: 1 } },
    },
    problems: ['set.seed', 'set["thinking.type"]']
      .map(
        (place) =>
          `upstreams.main.rules.${place}: cannot apply beside "drop" of the same member, or of one that holds it or is in it`,
      )
      .concat(
        'upstreams.main.rules.rename.nickname: cannot apply beside "rename" of the same member, or of one that holds it or is in it',
      ),
  },
  {
    at: 'upstreams/main/rules',
    value: { drop: Array.from({ length: 65 }, (_, index) => `m${index}`) },
    problems: ['upstreams.main.rules: name at most 64 members'],
  },
  {
    at: 'upstreams/main/rules',
    value: {
      headers: {
        set: { Authorization: secret, 'a b': 'x', 'x-a': 'ü' },
        pass: ['cookie', 'X-Forwarded-For', 'x-session-token', 'anthropic-beta', 'X-A'],
        drop: ['host', 'anthropic-version'],
      },
      betas: { add: ['a,b'] },
    },
    problems: [
      'upstreams.main.rules.headers.set.x-a: must be a valid header value',
      'upstreams.main.rules.betas.add[0]: must be a feature without spaces and commas',
      'upstreams.main.rules.headers.set.Authorization: may not be set here: it carries a credential; put it into apiKeys',
      'upstreams.main.rules.headers.set["a b"]: is not a valid header name',
      'upstreams.main.rules.headers.pass[0]: may not be passed: it carries a credential',
      'upstreams.main.rules.headers.pass[1]: may not be passed: it is between the client and the gateway',
      'upstreams.main.rules.headers.pass[2]: may not be passed: it is called like a credential',
      'upstreams.main.rules.headers.pass[3]: may not be passed: it is passed to upstreams of its vendor anyway',
      'upstreams.main.rules.headers.pass[4]: is named twice among the headers',
      'upstreams.main.rules.headers.drop[0]: may not be left out: the gateway sets it for each request',
      'upstreams.main.rules.headers.drop[1]: may not be left out: an upstream of kind messages needs it',
    ],
  },
  {
    at: 'upstreams/main/rules',
    value: { thinking: 'adaptive' },
    problems: ['upstreams.main.rules.thinking: cannot apply: adaptive is for upstreams of kind messages'],
  },
  {
    at: 'upstreams/other',
    value: { kind: 'generateContent', baseUrl: 'https://api.example.com', rules: { fillReasoning: true } },
    problems: [
      'upstreams.other.rules.fillReasoning: cannot apply: it is for upstreams of kind chat and messages',
    ],
  },
  {
    at: 'models/gpt-x',
    value: {
      protocols: ['realtime', 'video'],
      targets: [
        { upstream: 'main', rules: { drop: ['seed'], roles: { a: 'b' }, headers: { drop: ['accept'] } } },
      ],
    },
    problems: [
      'models.gpt-x.targets[0].rules.drop: cannot apply: calls of realtime, video have no body in JSON that is passed on',
      'models.gpt-x.targets[0].rules.roles: cannot apply: it is about calls of text, of which there are none',
    ],
  },
  {
    at: 'models/gpt-x',
    value: {
      protocols: ['embeddings'],
      targets: [{ upstream: 'main', rules: { drop: ['user'], sampling: false } }],
    },
    problems: [
      'models.gpt-x.targets[0].rules.sampling: cannot apply: it is about calls of text, of which there are none',
    ],
  },
  {
    at: 'models/gpt-x',
    value: {
      protocols: ['chat', 'messages'],
      targets: [
        {
          upstream: 'main',
          responses: 'only',
          rules: { thinking: 'enable_thinking', efforts: { max: 'high' } },
        },
        { upstream: 'main', responses: true, rules: { thinking: 'enable_thinking' } },
      ],
    },
    problems: [
      'models.gpt-x.targets[0].rules.thinking: cannot apply: enable_thinking changes bodies of chat, and this target gets none (responses)',
    ],
  },
  {
    at: 'models/gpt-x',
    value: {
      protocols: ['responses'],
      targets: [
        { upstream: 'main', responses: true, rules: { thinking: 'type' } },
        { upstream: 'main', rules: { thinking: 'type' } },
      ],
    },
    problems: [
      'models.gpt-x.targets[0].rules.thinking: cannot apply: type changes bodies of chat, and this target gets none (responses)',
    ],
  },
  {
    at: 'models/gpt-x',
    value: {
      protocols: ['completions', 'embeddings'],
      targets: [
        {
          upstream: 'main',
          rules: { efforts: { max: 'high' }, roles: { a: 'b' }, sampling: false, thinking: 'type' },
        },
      ],
    },
    problems: [
      'models.gpt-x.targets[0].rules.efforts: cannot apply: calls of completions have none',
      'models.gpt-x.targets[0].rules.roles: cannot apply: calls of completions have none',
      'models.gpt-x.targets[0].rules.thinking: cannot apply: type changes bodies of chat, and this target gets none (completions)',
    ],
  },
  {
    at: 'upstreams/film',
    value: {
      kind: 'vendork',
      baseUrl: 'https://film.example.com',
      rules: { set: { mode: 'pro' }, betas: { add: ['x'] } },
    },
    problems: [
      'upstreams.film.rules.set: cannot apply: bodies for an upstream of kind vendork are written by the gateway',
      'upstreams.film.rules.betas: cannot apply: an upstream of kind vendork has no header of betas',
    ],
  },
];
