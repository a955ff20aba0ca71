import { readdirSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { decoders, NOT_FUZZED } from './decoders.ts';
import { readInputs } from './engine/corpus.ts';
import { runInputs } from './engine/judge.ts';
import { type FuzzReport, runFuzz } from './run-fuzz.ts';
import { seedSizes } from './targets/seeds.ts';
import { TARGETS } from './targets.ts';

const ROOT = new URL('../../', import.meta.url);
const folder = (kind: string, name = '') => new URL(`${kind}/${name}`, import.meta.url);
const MAX_INPUT_BYTES = 16 * 1024;
const MAX_CORPUS_BYTES = 2 * 1024 * 1024;

function listFiles(kind: 'corpus' | 'crashes' | 'seeds'): readonly string[] {
  const names = readdirSync(folder(kind), { recursive: true, encoding: 'utf8' });
  return names
    .filter((name) => name !== '.gitkeep')
    .map((name) => fileURLToPath(folder(`${kind}/`, name)))
    .filter((file) => statSync(file).isFile());
}

describe('decoders, on every stored fuzz input', () => {
  for (const target of TARGETS) {
    it(`${target.name} satisfies its invariants`, () => {
      const inputs = [
        ...target.seeds.map((seed) => Buffer.from(seed)),
        ...readInputs(folder('corpus/', `${target.name}.json`)),
        ...readInputs(folder('crashes/', `${target.name}.json`)),
      ];
      const faults = runInputs(target, inputs).flatMap(({ kind, key }, index) =>
        kind === 'fine' ? [] : [`${kind} ${key}: ${inputs[index]?.toString('base64')}`],
      );
      expect(faults).to.deep.equal([]);
    });
  }

  it('have a target for each stored input, and no input is large', () => {
    const names = new Set(TARGETS.map(({ name }) => name));
    const files = [...listFiles('corpus'), ...listFiles('crashes')];
    const kept = files.map((file) => basename(file, '.json'));
    expect(names.size).to.equal(TARGETS.length);
    expect(kept.filter((name) => !names.has(name))).to.deep.equal([]);
    const sizes = [...files.flatMap((file) => readInputs(pathToFileURL(file)).map(({ length }) => length)), ...seedSizes()];
    expect(Math.max(...sizes)).to.be.at.most(MAX_INPUT_BYTES);
    expect(sizes.reduce((sum, size) => sum + size, 0)).to.be.at.most(MAX_CORPUS_BYTES);
  });
});

describe('decoders, on mutations of stored fuzz inputs', () => {
  let report: FuzzReport;

  before(async () => {
    report = await runFuzz(['--seed', '20', '--executions', '2000', '--seconds', '0.1']);
  });

  it('satisfy their invariants', () => {
    expect(report.reports.map(({ name }) => name)).to.deep.equal(TARGETS.map(({ name }) => name));
    expect(report.reports.flatMap(({ name, crashes }) => crashes.map((crash) => ({ name, ...crash })))).to.deep.equal([]);
  });

  it('are all called', () => {
    expect(report.reports.filter(({ executions, covered }) => executions < 64 || covered < 50)).to.deep.equal([]);
  });

  it('include every decoder of the code base', () => {
    const run = new Set(report.functions.map((name) => name.replace(ROOT.href, '')));
    const plantedDecoders = decoders(ROOT);
    expect(plantedDecoders.length).to.be.greaterThan(60);
    expect(plantedDecoders.filter((name) => !run.has(name) && !NOT_FUZZED.has(name))).to.deep.equal([]);
    // What is excused is there, and is not run after all.
    expect([...NOT_FUZZED.keys()].filter((name) => !plantedDecoders.includes(name) || run.has(name))).to.deep.equal([]);
  });
});

describe('fuzzer', () => {
  let report: FuzzReport;

  before(async () => {
    report = await runFuzz(['--table', './planted/targets.ts', '--seed', '1', '--executions', '9000']);
  });

  const findCrashes = (name: string) => report.reports.find((candidate) => candidate.name === name)?.crashes ?? [];

  it('finds an unexpected exception behind two comparisons, and the smallest input that causes it', () => {
    const [crash, ...otherCrashes] = findCrashes('undeclared');
    expect(otherCrashes).to.deep.equal([]);
    expect(crash).to.include({ kind: 'error', key: 'TypeError TypeError: planted ' });
    const input = Buffer.from(crash?.input ?? '', 'base64');
    expect([input.length, input[1], input[3]]).to.deep.equal([4, 0xc3, 0x28]);
  });

  it('finds an endless loop behind base64url within JSON', () => {
    const [crash] = findCrashes('hanging');
    expect(crash).to.include({ kind: 'hang', key: 'does not end' });
    const { token } = JSON.parse(Buffer.from(crash?.input ?? '', 'base64').toString()) as { token: string };
    expect(Buffer.from(token, 'base64url').toString('latin1')).to.match(/^\{.*!/s);
  });

  it('reports an impossible result', () => {
    expect(findCrashes('trusting').map(({ key }) => key)).to.deep.equal(['Violation Error: nobody is an administrator ']);
  });

  it('finds nothing in a decoder that satisfies its invariants, in any number of runs', () => {
    expect(findCrashes('sound')).to.deep.equal([]);
    expect(report.reports.find(({ name }) => name === 'sound')?.executions).to.be.at.least(9_000);
  });
});
