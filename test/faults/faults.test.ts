import { expect } from 'chai';
import { cutPower, killService } from './process-faults.ts';
import { Group } from './rounds.ts';

const ROUNDS = 2;

/** The short form of `npm run test:faults`. */
describe('service that is killed under load keeps acknowledged changes', () => {
  const suites: Readonly<Record<string, (group: Group) => Promise<void>>> = {
    'when its processes are killed, on PostgreSQL': (group) => killService('postgres', 2, group),
    'when the power is cut, on SQLite': cutPower,
  };
  for (const [name, run] of Object.entries(suites)) {
    it(name, async function () {
      const group = new Group(name, ROUNDS, false);
      await run(group);
      if (group.skipped !== undefined) return this.skip();
      expect(group.violations).to.deep.equal([]);
      expect(group.done).to.equal(ROUNDS);
      expect(group.facts.join(), 'there was load').to.match(/[1-9]\d* credentials/);
    });
  }
});
