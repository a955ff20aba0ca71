import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { bareEnvironment } from '../support/compile-cache.ts';
import { startOptions } from '../support/start-options.ts';

const LAUNCHER = fileURLToPath(new URL('../../bootstrap/commands/vidimus.mjs', import.meta.url));
const FENCE = fileURLToPath(new URL('../../bootstrap/commands/restore-fence.ts', import.meta.url));

function run(program: string, ...words: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...words], {
    encoding: 'utf8',
    env: bareEnvironment(),
  });
  return { status, stdout, stderr };
}

describe('npx vidimus', () => {
  for (const [typed, usage] of [
    ['config:check', 'config check <folder>'],
    ['config:export', 'config export <tenant>'],
    ['audit:verify', 'audit verify [--expect'],
    ['kms:migrate', 'kms migrate <tenant>'],
    ['restore:fence', 'restore fence [--force]'],
  ] as const)
    it(`takes ${typed}, as the scripts of a clone are called`, () => {
      const { status, stdout } = run(LAUNCHER, typed, '--help');
      expect(status).to.equal(0);
      expect(stdout).to.include(`usage: npx vidimus ${usage}`);
    });

  for (const [typed, meant] of [
    ['doctr', 'doctor'],
    ['docter --json', 'doctor'],
    ['restore fenc', 'restore fence'],
    ['audit:verfy', 'audit verify'],
    ['restorefence', 'restore fence'],
  ] as const)
    it(`asks whether ${typed} means ${meant}`, () => {
      const { status, stderr } = run(LAUNCHER, ...typed.split(' '));
      expect(status).to.equal(2);
      expect(stderr)
        .to.include('there is no such command')
        .and.to.include(`did you mean "npx vidimus ${meant}"?`);
    });

  for (const typed of ['zzzzzz', 'demo:script', 'constructor:keys', '__proto__:x', 'x'.repeat(10_000)])
    it(`suggests nothing for ${typed.slice(0, 20)}`, () => {
      const { status, stderr } = run(LAUNCHER, typed);
      expect(status).to.equal(2);
      expect(stderr).to.include('there is no such command').and.not.to.include('did you mean');
    });

  it('names the form in which a demo was called that it cannot understand', () => {
    const { status, stderr } = run(LAUNCHER, 'demo', '--eux');
    expect(status).to.equal(2);
    expect(stderr).to.include('usage: npx vidimus demo [--eu] [--keep]').and.not.to.include('npm run');
  });

  it('explains the options of the fence, in each form', () => {
    for (const { status, stdout } of [run(LAUNCHER, 'restore', 'fence', '--help'), run(FENCE, '--help')]) {
      expect(status).to.equal(0);
      expect(stdout)
        .to.match(/^usage: np[mx] /)
        .and.to.match(/--force +\w/)
        .and.to.match(/--lost-releases <n> +\w/);
    }
    expect(run(FENCE, '--help').stdout).to.include('npm run restore:fence -- ');
  });
});

describe('npm start', () => {
  const root = new URL('../../', import.meta.url);
  const read = (file: string) => readFileSync(new URL(file, root), 'utf8');

  it('runs the launcher in a POSIX shell, which it replaces, and in a shell without exec', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: { start: string } };
    expect(scripts.start).to.equal('exec node tools/start.mjs || node tools/start.mjs');
  });

  it('gives Node the options that the image, the systemd unit and npx vidimus start give it', () => {
    const { environment, nodeOptions } = startOptions();
    for (const file of ['Dockerfile', 'deploy/systemd/vidimus.service', 'bootstrap/commands/vidimus.mjs']) {
      const text = read(file);
      for (const [name, value] of Object.entries(environment))
        expect(text, `${file}: ${name}`).to.match(new RegExp(`${name}(=|: ')${value}`));
      for (const option of nodeOptions) expect(text, file).to.include(option);
    }
  });
});
