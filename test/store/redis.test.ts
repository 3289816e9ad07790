import t from 'tap';
import { noRedis, startRedis } from '../suites/redis.js';
import { redisSettings, testStore } from '../suites/store.js';

const server = await startRedis();
t.teardown(() => server?.stop());

testStore('redis', {
  settings: redisSettings([server?.port ?? 0]),
  skip: server === null && noRedis,
  processes: true,
});
