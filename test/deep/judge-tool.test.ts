import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { runProgram } from '../judge/run-program.ts';
import { minimalEnvironment } from '../support/compile-cache.ts';
import { ROOT, startTestService, type TestService } from '../support/test-service.ts';

const JUDGE_PROGRAM = fileURLToPath(new URL('../judge/judge.ts', import.meta.url));
const SECONDS = 60;

type Client = { readonly clientId: string; readonly secret: string };
const credentials = ({ clientId, secret }: Client) => ({ VIDIMUS_JUDGE_CLIENT_ID: clientId, VIDIMUS_JUDGE_CLIENT_SECRET: secret });

describe('judge tool against a running service', () => {
  let service: TestService;

  before(async () => {
    service = await startTestService({ OUTBOUND_ALLOW: '' });
  });
  after(() => service.close());

  const runJudge = (options: readonly string[], client: Client = ROOT) =>
    runProgram(process.execPath, [JUDGE_PROGRAM, ...options], SECONDS, { ...minimalEnvironment(), ...credentials(client) });
  /** The tenants that the judge tool created. */
  const remainingTenants = async ({ call, rootToken }: TestService): Promise<readonly string[]> => {
    const { body } = await call('GET', '/tenant', { token: await rootToken() });
    return body.map(({ id }: { id: string }) => id).filter((id: string) => id.startsWith('judge-'));
  };

  it('removes its tenant when the set-up fails, reports the reason, and does not report a success', async () => {
    const { code, output } = await runJudge(['--service', service.address, '--only', '@openid4vc']);
    expect(output).to.include('the set-up under none failed: POST ').and.include('OUTBOUND_ALLOW');
    expect(output).to.not.include('tool not had');
    expect(code, output).to.equal(1);
    expect(await remainingTenants(service)).to.deep.equal([]);
  });

  it('removes its tenant when it is interrupted', async () => {
    const openService = await startTestService();
    const child = spawn(process.execPath, [JUDGE_PROGRAM, '--service', openService.address, '--only', '@openid4vc'], {
      env: { ...minimalEnvironment(), ...credentials(ROOT) },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      const exited = once(child, 'exit');
      await Promise.race([once(child.stdout, 'data'), exited]);
      expect(await remainingTenants(openService), 'while it runs').to.have.length(1);
      child.kill('SIGINT');
      expect((await exited)[0]).to.equal(130);
      expect(await remainingTenants(openService)).to.deep.equal([]);
    } finally {
      child.kill('SIGKILL');
      await openService.close();
    }
  });

  it('exits with 2 and one line when the service is not reachable, or rejects the login', async () => {
    const unreachableRun = await runJudge(['--service', 'http://127.0.0.1:1', '--only', '@openid4vc']);
    expect(unreachableRun.output).to.match(/^--service: http:\/\/127\.0\.0\.1:1 cannot be reached: .+\n$/);
    const wrongClient = { ...ROOT, secret: 'another secret of nobody' };
    const rejectedRun = await runJudge(['--service', service.address, '--only', '@openid4vc'], wrongClient);
    expect(rejectedRun.output).to.match(/^--service: \S+ refuses the credentials: .+\n$/);
    expect(rejectedRun.output).to.not.include(wrongClient.secret);
    expect([unreachableRun.code, rejectedRun.code]).to.deep.equal([2, 2]);
  });

  it('prints the fault before the usage, and the help on request', async () => {
    const wrongOptionRun = await runJudge(['--only', 'credo']);
    expect(wrongOptionRun.output).to.match(/^--only: there is no tool credo, but .+\nusage: /);
    const help = await runJudge(['--help']);
    expect(help.output).to.match(/^usage: /);
    expect([wrongOptionRun.code, help.code]).to.deep.equal([2, 0]);
  });
});
