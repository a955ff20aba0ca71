import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { type AttackRun, attack, linesOf } from '../support/attack-tool.ts';
import { startAttackedService } from '../support/attacked-service.ts';
import { FAULTS, type PlantedFault } from './faults.ts';

/** Services and attacks take a core each, and mostly wait for each other. */
const AT_ONCE = 3;
const PLANTER = fileURLToPath(new URL('./plant-fault.mjs', import.meta.url));

/** Attacks a service that has this fault. */
async function runOn({ family, file, from, to, also }: PlantedFault): Promise<AttackRun> {
  const service = await startAttackedService({
    NODE_OPTIONS: `--import=${PLANTER}`,
    PLANTED_FAULT: JSON.stringify([{ file, from, to }, ...(also === undefined ? [] : [also])]),
  });
  try {
    return await attack([...service.target, '--only', family], { VIDIMUS_CLIENT_SECRET: service.secret });
  } finally {
    await service.close();
  }
}

describe('the attack tool on services with one planted fault each', function () {
  this.timeout(120_000);
  const runs = new Map<PlantedFault, Promise<AttackRun>>();

  before(() => {
    const waiting = [...FAULTS];
    const ended = new Map<PlantedFault, PromiseWithResolvers<AttackRun>>();
    for (const fault of FAULTS) {
      const run = Promise.withResolvers<AttackRun>();
      // Whoever awaits it is told of a failure; until then nobody is.
      run.promise.catch(() => {});
      ended.set(fault, run);
      runs.set(fault, run.promise);
    }
    const work = async () => {
      for (let fault = waiting.shift(); fault !== undefined; fault = waiting.shift()) {
        const run = ended.get(fault);
        await runOn(fault).then(run?.resolve, run?.reject);
      }
    };
    for (let worker = 0; worker < AT_ONCE; worker++) void work();
  });

  for (const planted of FAULTS) {
    const { family, fault, foundBy, why } = planted;
    const found = foundBy === null ? `is not found, since ${why}` : `is found by "${foundBy}"`;
    it(`${family}: ${fault}: ${found}`, async () => {
      const run = await runs.get(planted);
      expect(run?.families, run?.stderr).to.have.length(1);
      expect(run?.families[0]?.state, run?.stderr).to.equal('run');
      const open = linesOf(run?.cases ?? [], 'open');
      if (foundBy === null) {
        expect(open, 'else it can be said to be found').to.deep.equal([]);
        return;
      }
      expect(open).to.include(`${family}: ${foundBy}`);
      expect(run?.code).to.equal(1);
    });
  }

  it('finds at least nine of ten, in as many families', () => {
    const found = FAULTS.filter(({ foundBy }) => foundBy !== null);
    expect(found.length / FAULTS.length).to.be.at.least(0.9);
    expect(new Set(found.map(({ family }) => family)).size).to.equal(found.length);
    expect(FAULTS.length).to.be.at.least(20);
  });
});
