import { testShares } from '../suites/shares.js';
import { ShareModel } from './share-model.js';

testShares('model', {
  skip: false,
  async open() {
    let now = 1_000_000;
    const model = new ShareModel(() => now);
    return {
      exchange: async (statement) => model.exchange(statement),
      async pass(ms) {
        now += ms;
      },
    };
  },
});
