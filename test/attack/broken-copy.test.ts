import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { type AttackRun, attack, formatCases, startAttackedService } from '../support/attacked-service.ts';
import { FAULTS, type PlantedFault } from './faults.ts';

/**
 * Starting a service takes most of the time of a fault, so unrelated faults share one. Without planted faults, the same
 * cases are held: see `test/deep/attack-tool.test.ts`.
 */
const SERVICES = 7;
const AT_ONCE = 2;
const PLANTER = fileURLToPath(new URL('./plant-fault.mjs', import.meta.url));

/** Attacks a service that has these faults, by the family of each. */
async function runOn(faults: readonly PlantedFault[]): Promise<AttackRun> {
  const edits = faults.flatMap(({ file, from, to, also }) => [{ file, from, to }, ...(also ? [also] : [])]);
  const service = await startAttackedService({ NODE_OPTIONS: `--import=${PLANTER}`, PLANTED_FAULTS: JSON.stringify(edits) });
  try {
    const onlyOptions = faults.flatMap(({ family }) => ['--only', family]);
    return await attack([...service.target, ...onlyOptions], { VIDIMUS_CLIENT_SECRET: service.secret });
  } finally {
    await service.close();
  }
}

describe('attack tool on services with planted faults', () => {
  const runs = new Map<PlantedFault, AttackRun>();

  before(async () => {
    const remainingFaults = Array.from({ length: SERVICES }, (_, service) =>
      FAULTS.filter((_fault, index) => index % SERVICES === service),
    );
    const work = async () => {
      for (let faults = remainingFaults.shift(); faults !== undefined; faults = remainingFaults.shift()) {
        const run = await runOn(faults);
        for (const fault of faults) runs.set(fault, run);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  });

  for (const plantedFault of FAULTS) {
    const { family, fault, foundBy, why } = plantedFault;
    const expectation = foundBy === null ? `is not found, since ${why}` : `is found by "${foundBy}"`;
    it(`${family}: ${fault}: ${expectation}`, () => {
      const run = runs.get(plantedFault);
      const state = run?.families.find((candidate) => candidate.family === family)?.state;
      expect(state, `${run?.stdout}${run?.stderr}`).to.equal('run');
      const openCases = formatCases(run?.cases ?? [], 'open').filter((line) => line.startsWith(`${family}: `));
      if (foundBy === null) expect(openCases, 'a fault that is not found needs a reason').to.deep.equal([]);
      else expect(openCases).to.include(`${family}: ${foundBy}`);
      expect(run?.code).to.equal(1);
    });
  }

  it('plants each fault by replacing a text that occurs exactly once in its file', () => {
    for (const { file, from } of FAULTS.flatMap((fault) => [fault, ...(fault.also ? [fault.also] : [])])) {
      const source = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
      expect(source.split(from), `${file}: ${from}`).to.have.length(2);
    }
  });

  it('finds at least 90 % of the planted faults, in at least 90 % of the families', () => {
    const foundFaults = FAULTS.filter(({ foundBy }) => foundBy !== null);
    expect(foundFaults.length / FAULTS.length).to.be.at.least(0.9);
    expect(new Set(foundFaults.map(({ family }) => family)).size).to.equal(foundFaults.length);
    expect(FAULTS.length).to.be.at.least(20);
    const page = readFileSync(new URL('../../docs/reference/attack-tool.md', import.meta.url), 'utf8');
    expect(page).to.include(`plants ${FAULTS.length} faults`);
    expect(page).to.include(`finds ${foundFaults.length} of them`);
  });
});
