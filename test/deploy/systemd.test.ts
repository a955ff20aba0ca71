import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

const UNIT = fileURLToPath(new URL('../../deploy/systemd/vidimus.service', import.meta.url));
const ANALYZE = '/usr/bin/systemd-analyze';
/** Exposure level out of ten (no protection); below 5 systemd reports OK. */
const MOST_EXPOSED = 1.5;
const text = readFileSync(UNIT, 'utf8');

describe('systemd unit', () => {
  let folder: string;
  before(function () {
    folder = mkdtempSync(join(tmpdir(), 'vidimus-unit-'));
    if (existsSync(ANALYZE)) return;
    if (process.env['CI'] === 'true') throw new Error('CI needs systemd-analyze.');
    console.log('    systemd is skipped: install the package systemd of the system to run it');
    this.skip();
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const analyze = (args: readonly string[]): { failed: boolean; output: string } => {
    const { status, stdout, stderr } = spawnSync(ANALYZE, args, { encoding: 'utf8' });
    return { failed: status !== 0, output: stdout + stderr };
  };
  /** Replaces programs by existing ones; the package test checks the real paths. */
  const verify = (unit: string) => {
    const file = join(folder, 'vidimus.service');
    writeFileSync(file, unit.replace(/^ExecStart=\S+/m, `ExecStart=${process.execPath}`));
    return analyze(['verify', '--man=no', file]);
  };

  it('has only lines that systemd accepts', () => {
    const { failed, output } = verify(text);
    expect(failed, output).to.equal(false);
    expect(output).to.equal('');
    const invalidResult = verify(text.replace('ProtectSystem=strict', 'ProtectSystem=severe'));
    expect(invalidResult.failed || invalidResult.output !== '', 'a planted fault').to.equal(true);
  });

  it('restricts the access of the service to the machine', () => {
    const threshold = `--threshold=${MOST_EXPOSED * 10}`;
    const verifyUnit = (unit: string) => {
      const file = join(folder, 'vidimus.service');
      writeFileSync(file, unit);
      return analyze(['security', '--offline=true', '--no-pager', threshold, file]);
    };
    const { failed, output } = verifyUnit(text);
    expect(failed, output).to.equal(false);
    expect(verifyUnit(text.replace('ProtectSystem=strict\n', '').replace('CapabilityBoundingSet=\n', '')).failed).to.equal(true);
  });

  it('starts the service by the launcher, under an unprivileged account, with its secrets in a file', () => {
    const [, command = ''] = /^ExecStart=(.*)$/m.exec(text) ?? [];
    expect(command).to.match(/^\S+\/node \S+\/bootstrap\/commands\/vidimus\.mjs start$/);
    expect(text)
      .to.match(/^DynamicUser=yes$/m)
      .and.to.match(/^EnvironmentFile=\/etc\/vidimus\/secrets.env$/m);
    expect(text).to.not.match(/^Environment=.*(SECRET|PASSWORD)/m);
  });
});
