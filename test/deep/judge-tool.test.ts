import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { runProgram } from '../judge/run-program.ts';
import { minimalEnvironment } from '../support/compile-cache.ts';
import { ROOT, startTestService, type TestService } from '../support/test-service.ts';

const JUDGE = fileURLToPath(new URL('../judge/judge.ts', import.meta.url));
const SECONDS = 60;

type Client = { readonly clientId: string; readonly secret: string };
const credentials = ({ clientId, secret }: Client) => ({ VIDIMUS_JUDGE_CLIENT_ID: clientId, VIDIMUS_JUDGE_CLIENT_SECRET: secret });

describe('judge tool against a running service', () => {
  let service: TestService;

  before(async () => {
    service = await startTestService({ OUTBOUND_ALLOW: '' });
  });
  after(() => service.close());

  const judge = (options: readonly string[], client: Client = ROOT) =>
    runProgram(process.execPath, [JUDGE, ...options], SECONDS, { ...minimalEnvironment(), ...credentials(client) });
  /** Tenants of the judgement that are there. */
  const left = async ({ call, rootToken }: TestService): Promise<readonly string[]> => {
    const { body } = await call('GET', '/tenant', { token: await rootToken() });
    return body.map(({ id }: { id: string }) => id).filter((id: string) => id.startsWith('judge-'));
  };

  it('removes its tenant when the set-up fails, reports the reason, and does not report a success', async () => {
    const { code, output } = await judge(['--service', service.address, '--only', '@openid4vc']);
    expect(output).to.include('the set-up under none failed: POST ').and.include('OUTBOUND_ALLOW');
    expect(output).to.not.include('tool not had');
    expect(code, output).to.equal(1);
    expect(await left(service)).to.deep.equal([]);
  });

  it('removes its tenant when it is interrupted', async () => {
    const open = await startTestService();
    const child = spawn(process.execPath, [JUDGE, '--service', open.address, '--only', '@openid4vc'], {
      env: { ...minimalEnvironment(), ...credentials(ROOT) },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      const ended = once(child, 'exit');
      await Promise.race([once(child.stdout, 'data'), ended]);
      expect(await left(open), 'while it judges').to.have.length(1);
      child.kill('SIGINT');
      expect((await ended)[0]).to.equal(130);
      expect(await left(open)).to.deep.equal([]);
    } finally {
      child.kill('SIGKILL');
      await open.close();
    }
  });

  it('exits with 2 and one line when the service is not reachable, or rejects the login', async () => {
    const gone = await judge(['--service', 'http://127.0.0.1:1', '--only', '@openid4vc']);
    expect(gone.output).to.match(/^--service: http:\/\/127\.0\.0\.1:1 cannot be reached: .+\n$/);
    const wrong = { ...ROOT, secret: 'another secret of nobody' };
    const refused = await judge(['--service', service.address, '--only', '@openid4vc'], wrong);
    expect(refused.output).to.match(/^--service: \S+ refuses the credentials: .+\n$/);
    expect(refused.output).to.not.include(wrong.secret);
    expect([gone.code, refused.code]).to.deep.equal([2, 2]);
  });

  it('prints the fault before the usage, and the help on request', async () => {
    const wrong = await judge(['--only', 'credo']);
    expect(wrong.output).to.match(/^--only: there is no tool credo, but .+\nusage: /);
    const help = await judge(['--help']);
    expect(help.output).to.match(/^usage: /);
    expect([wrong.code, help.code]).to.deep.equal([2, 0]);
  });
});
