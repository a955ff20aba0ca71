import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { minimalEnvironment } from '../support/compile-cache.ts';
import { startOptions } from '../support/start-options.ts';

const LAUNCHER = fileURLToPath(new URL('../../bootstrap/commands/vidimus.mjs', import.meta.url));
const FENCE = fileURLToPath(new URL('../../bootstrap/commands/restore-fence.ts', import.meta.url));

function run(program: string, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], { encoding: 'utf8', env: minimalEnvironment() });
  return { status, stdout, stderr };
}

describe('npx vidimus', () => {
  for (const [command, usage] of [
    ['config:check', 'config check <folder>'],
    ['config:export', 'config export <tenant>'],
    ['audit:verify', 'audit verify [--expect'],
    ['kms:migrate', 'kms migrate <tenant>'],
    ['restore:fence', 'restore fence [--force]'],
  ] as const)
    it(`accepts ${command}, as the scripts of a clone are called`, () => {
      const { status, stdout } = run(LAUNCHER, command, '--help');
      expect(status).to.equal(0);
      expect(stdout).to.include(`usage: npx vidimus ${usage}`);
    });

  for (const [command, suggestion] of [
    ['strat', 'start'],
    ['doctr', 'doctor'],
    ['docter --json', 'doctor'],
    ['restore fenc', 'restore fence'],
    ['audit:verfy', 'audit verify'],
    ['restorefence', 'restore fence'],
  ] as const)
    it(`suggests ${suggestion} for ${command}`, () => {
      const { status, stderr } = run(LAUNCHER, ...command.split(' '));
      expect(status).to.equal(2);
      expect(stderr).to.include('there is no such command').and.to.include(`did you mean "npx vidimus ${suggestion}"?`);
    });

  for (const command of ['zzzzzz', 'demo:script', 'constructor:keys', '__proto__:x', 'x'.repeat(10_000)])
    it(`suggests nothing for ${command.slice(0, 20)}`, () => {
      const { status, stderr } = run(LAUNCHER, command);
      expect(status).to.equal(2);
      expect(stderr).to.include('there is no such command').and.not.to.include('did you mean');
    });

  it('names the command that it cannot parse in the syntax of the caller', () => {
    const { status, stderr } = run(LAUNCHER, 'demo', '--eux');
    expect(status).to.equal(2);
    expect(stderr).to.include('usage: npx vidimus demo [--eu] [--keep]').and.not.to.include('npm run');
  });

  it('explains the options of the fence, in each syntax', () => {
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
  const readProjectFile = (file: string) => readFileSync(new URL(file, root), 'utf8');

  it('replaces the shell, also on Windows, whose shell finds "exec" in the folder', () => {
    const { scripts } = JSON.parse(readProjectFile('package.json')) as { scripts: { start: string } };
    expect(scripts.start).to.equal('exec node tools/start.mjs');
    expect(readProjectFile('exec.cmd').trim()).to.equal('@%*');
  });

  it('passes its arguments to the service, such as an unknown one', () => {
    const { status, stderr } = spawnSync('npm', ['start', '--', 'unknown'], { cwd: root, encoding: 'utf8', env: minimalEnvironment() });
    expect(stderr).to.include('Vidimus accepts no arguments');
    expect(status).to.equal(2);
  });

  it('passes the same options as npx vidimus start, which no other file repeats', () => {
    const { environment, nodeOptions } = startOptions();
    const options = [...Object.keys(environment), ...nodeOptions];
    expect(options).to.include.members(['MALLOC_ARENA_MAX', '--max-semi-space-size=8']);
    for (const file of [
      'package.json',
      'tools/start.mjs',
      'bootstrap/commands/vidimus.mjs',
      'Dockerfile',
      'deploy/compose.yaml',
      'deploy/systemd/vidimus.service',
      'deploy/helm/vidimus/templates/statefulset.yaml',
    ])
      for (const option of options) expect(readProjectFile(file), file).to.not.include(option);
  });
});

describe('launcher of the service', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'vidimus-launcher-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const launch = (program: string, args: readonly string[], environment: Readonly<Record<string, string>> = {}) => {
    const launcher = new URL('../../bootstrap/commands/start-service.mjs', import.meta.url).href;
    const call = `startService(process.execPath, ${JSON.stringify(program)}, ${JSON.stringify(args)})`;
    const start = file('start.mjs', `import { startService } from '${launcher}';\nconsole.log(process.pid);\n${call};\n`);
    return spawnSync(process.execPath, [start], { encoding: 'utf8', env: { ...minimalEnvironment(), ...environment } });
  };
  const REPORT = `console.log(JSON.stringify({
    pid: process.pid, nodeOptions: process.execArgv, args: process.argv.slice(2), arenas: process.env.MALLOC_ARENA_MAX, secret: process.env.SECRET,
    environ: require('node:fs').readFileSync('/proc/self/environ', 'utf8').includes('from-a-file'),
  }));`;
  const parseReport = (output: string) => JSON.parse(output.split('\n')[1] ?? '');

  it('is replaced by the service, which gets the options and the arguments', () => {
    const { stdout, stderr } = launch(file('program.cjs', REPORT), ['--port', '4000']);
    const { pid, nodeOptions, args, arenas } = parseReport(stdout);
    expect({ pid: String(pid), nodeOptions, args, arenas, stderr }).to.deep.equal({
      pid: stdout.split('\n')[0],
      nodeOptions: startOptions().nodeOptions,
      args: ['--port', '4000'],
      arenas: '2',
      stderr: '',
    });
  });

  it('does not overwrite a variable that the operator has set', () => {
    const { stdout } = launch(file('program.cjs', REPORT), [], { MALLOC_ARENA_MAX: '4' });
    expect(parseReport(stdout).arenas).to.equal('4');
  });

  for (const name of ['missing.env', ''])
    it(`reports an env-file that cannot be read: "${name}"`, () => {
      const { status, stderr } = launch(file('program.cjs', REPORT), [`--env-file=${name}`]);
      expect(stderr).to.include(`--env-file=${name}: this file cannot be read`).and.to.include('NAME=value');
      expect(status).to.equal(2);
    });

  it('passes secrets of an env-file to the service without showing them in the process list', () => {
    const secrets = file('secrets.env', 'SECRET=from-a-file\n');
    const { secret, args, environ } = parseReport(launch(file('program.cjs', REPORT), [`--env-file=${secrets}`]).stdout);
    expect({ secret, args, environ }).to.deep.equal({ secret: 'from-a-file', args: [], environ: false });
  });

  it('exits with the exit code of the service', () => {
    expect(launch(file('program.cjs', 'process.exit(78);'), []).status).to.equal(78);
  });
});
