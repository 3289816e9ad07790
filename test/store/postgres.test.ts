import t from 'tap';
import { testLedger } from '../suites/ledger.js';
import { postgresSettings, testStore } from '../suites/store.js';
import { noPostgres, startPostgres } from '../support/postgres.js';

const server = await startPostgres();
t.teardown(() => server?.stop());

const suite = {
  settings: postgresSettings(server?.port ?? 0),
  skip: server === null && noPostgres,
  processes: true,
};
testStore('postgres', suite);
testLedger('postgres', suite);
