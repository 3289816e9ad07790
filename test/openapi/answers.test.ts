import { test } from 'tap';
import type { Model, Protocol } from '../../src/config/types.js';
import { type ErrorKind, errorTable, GatewayError } from '../../src/errors.js';
import { taskAnswers } from '../../src/openapi/answers.js';
import { errorBodyOf, modelListError } from '../../src/openapi/error-responses.js';
import { modelList, modelObject } from '../../src/protocols/models/list.js';
import { buildRoutes } from '../../src/routes.js';
import { advance, failedTask } from '../../src/video/advance.js';
import { clientFormats } from '../../src/video/formats.js';
import { videoFormats } from '../../src/video/task.js';
import { context, noResult, result, start, taskAt, update } from '../video/samples.js';
import { checkOf, words } from './samples.js';

const kinds = Object.keys(errorTable) as ErrorKind[];

test('every error of every error format fits its schema', async (t) => {
  const errorFormats = new Set(buildRoutes(words).map(({ errorFormat }) => errorFormat));
  for (const errorFormat of errorFormats) {
    const fits = checkOf(errorBodyOf(errorFormat).name);
    for (const kind of kinds) {
      for (const details of [{}, { param: 'messages[0]', retryAfter: 3 }]) {
        const body: unknown = JSON.parse(
          errorFormat.errorBody(new GatewayError(kind, null, details), 'req_1'),
        );
        t.ok(fits(body), `${errorFormat.name} ${kind}`);
        t.notOk(fits({}), errorFormat.name);
      }
    }
  }
});

test('an error of a model list is of one of its formats', async (t) => {
  const fits = checkOf(modelListError.name);
  for (const { errorFormat, auth } of buildRoutes(words)) {
    if (auth !== 'messages' && auth !== 'generateContent' && auth !== 'modelList') continue;
    t.ok(fits(JSON.parse(errorFormat.errorBody(new GatewayError('invalid_api_key'), 'req_1'))));
  }
});

test('an error format whose body nobody described is refused', async (t) => {
  const [route] = buildRoutes(words);
  if (route === undefined) throw new Error('there are no routes');
  t.throws(() => errorBodyOf({ ...route.errorFormat, errorBody: () => '' }), /has no schema/);
});

const model = (name: string, ...protocols: readonly Protocol[]) =>
  ({
    name,
    protocols: new Set(protocols),
    targets: [],
    created: 1_735_689_600,
    tokens: { input: 9, output: null },
  }) as unknown as Model;
const models = new Map(
  [
    model('a', 'chat', 'messages', 'generateContent'),
    model('b/c', 'chat', 'messages', 'generateContent'),
  ].map((each) => [each.name, each]),
);

test('model lists and models fit their schemas', async (t) => {
  const formats = [
    ['chat', 'ChatModel', ''],
    ['chatAndMessages', 'ChatModel', ''],
    ['messages', 'MessagesModel', 'limit=1'],
    ['generateContent', 'GenerateContentModel', 'pageSize=1'],
  ] as const;
  for (const [format, name, query] of formats) {
    t.ok(checkOf(name)(JSON.parse(modelObject(format, models, 'b/c'))), format);
    for (const each of ['', query])
      t.ok(checkOf(`${name}List`)(JSON.parse(modelList(format, models, each))), format);
    t.ok(checkOf(`${name}List`)(JSON.parse(modelList(format, new Map(), ''))), `${format} without models`);
  }
});

test('video tasks of every state fit their schemas', async (t) => {
  for (const format of videoFormats) {
    const fits = checkOf(taskAnswers[format].name);
    const clientFormat = clientFormats[format];
    const queued = taskAt(format, { externalId: 'mine' });
    const tasks = [
      queued,
      taskAt(format, { state: 'submitting' }),
      advance(queued, update('in_progress', { progress: 40 }), start + 1),
      advance(queued, update('completed', { result }), start + 2),
      advance(queued, update('completed', { result: noResult }), start + 2),
      failedTask(queued, { code: '1301', message: 'No.' }, start + 2),
    ];
    for (const task of tasks) {
      t.ok(fits(JSON.parse(clientFormat.created(task, context))), `${format} ${task.state} as made`);
      t.ok(fits(JSON.parse(clientFormat.shown(task, context))), `${format} ${task.state} as shown`);
    }
    const missing = clientFormat.missing('x', context);
    if (missing !== null) t.ok(fits(JSON.parse(missing)), `${format} missing`);
    t.notOk(fits({}), format);
  }
});
