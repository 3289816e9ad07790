import t from 'tap';
import { redisSettings, testStore } from '../suites/store.js';
import { noRedis, startRedis } from '../support/redis.js';

const server = await startRedis();
t.teardown(() => server?.stop());

testStore('redis', {
  settings: redisSettings([server?.port ?? 0]),
  skip: server === null && noRedis,
  processes: true,
});
