import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { Backend } from '../support/backend.ts';
import { minimalEnvironment } from '../support/compile-cache.ts';
import { namedCodeBlocks } from '../support/docs-pages.ts';
import type { ProcessResult } from '../support/programs.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const WALLET = join(ROOT, 'packages/wallet/src/main.ts');
const PAGE = readFileSync(join(ROOT, 'docs/reference/wallet-simulator.md'), 'utf8');

describe('npm run wallet', () => {
  let service: TestService;
  let backend: Backend;
  let tenant: { id: string; token: string };
  let folder: string;
  let walletFile: string;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'vidimus-wallet-'));
    walletFile = join(folder, 'kept', 'cards.json');
    backend = await Backend.start();
    service = await startTestService();
    tenant = await createTenant(service, 'acme');
    const diploma = {
      config: { format: 'dc+sd-jwt', scope: 'diploma', display: [{ name: 'Diploma', locale: 'en' }] },
      vct: 'urn:example:diploma',
    };
    const claims = { degree: 'Mathematics', given_name: 'Ada\u001b[31m' };
    await post('/issuer/credentials', { id: 'diploma', ...diploma, claims, disclosureFrame: { _sd: ['degree'] } });
    const deferredConfig = { ...diploma, config: { ...diploma.config, scope: 'later' } };
    await post('/issuer/credentials', { id: 'later', ...deferredConfig, claimsWebhook: { url: `${backend.url}/claims` } });
    const query = { id: 'card', format: 'dc+sd-jwt', meta: { vct_values: ['urn:example:diploma'] } };
    const dcql_query = { credentials: [{ ...query, claims: [{ path: ['degree'] }] }] };
    await post('/verifier/config', { id: 'degree', dcql_query });
  });
  after(async () => {
    await service.close();
    await backend.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const post = async (path: string, json: object) => {
    const answer = await service.call('POST', path, { token: tenant.token, json });
    expect(answer.status, answer.text).to.be.oneOf([200, 201]);
    return answer.body;
  };
  const offer = (overrides: object = {}) =>
    post('/issuer/offer', { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['diploma'], ...overrides });
  const createRequest = () => post('/verifier/offer', { response_type: 'uri', requestId: 'degree' });
  const session = async (id: string) => (await service.call('GET', `/session/${id}`, { token: tenant.token })).body;

  const run = (file: string, args: readonly string[], environment: Readonly<Record<string, string>> = {}) =>
    new Promise<ProcessResult>((resolve) => {
      const env = { ...minimalEnvironment(), XDG_DATA_HOME: join(folder, 'data'), ...environment };
      const child = execFile(file, [...args], { env, cwd: ROOT }, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
      );
      child.stdin?.end();
    });
  const wallet = (...args: readonly string[]) => run(process.execPath, [WALLET, ...args, '--cards', walletFile]);

  it('accepts a credential, stores it readable for its user only, and shows it', async () => {
    const issuanceRun = await wallet((await offer()).uri, '--yes');
    expect(issuanceRun.code, issuanceRun.stderr).to.equal(0);
    expect(issuanceRun.stdout).to.include('Tenant acme').and.include('degree: Mathematics').and.include(walletFile);
    expect(issuanceRun.stdout, 'what a terminal would obey').to.not.include('\u001b');
    expect(statSync(walletFile).mode & 0o777).to.equal(0o600);
    expect(JSON.parse(readFileSync(walletFile, 'utf8')).cards).to.have.length(1);

    const { uri, session: id } = await createRequest();
    const presentationRun = await wallet(uri, '--yes');
    expect(presentationRun.code, presentationRun.stderr).to.equal(0);
    expect(presentationRun.stdout).to.include('Diploma would tell:').and.include('Taken: 200');
    expect((await session(id)).status).to.equal('completed');
  });

  it('misbehaves on request, and exits with 0 when it was rejected', async () => {
    const { uri, session: id } = await createRequest();
    const misbehavingRun = await wallet(uri, '--yes', '--misbehave', 'foreign-holder-key');
    expect([misbehavingRun.code, misbehavingRun.stderr]).to.deep.equal([0, '']);
    expect(misbehavingRun.stdout).to.include('Rejected, as expected: 400');
    expect((await session(id)).failure.message).to.include('kb_signature');
  });

  it('accepts a transaction code, a page with a link, and the page of the issuer', async () => {
    const { uri } = await offer({ tx_code: '493536' });
    const rejectedRun = await wallet(uri, '--yes');
    expect([rejectedRun.code, rejectedRun.stderr]).to.deep.equal([2, 'the offer requires a transaction code: pass it by --tx-code\n']);
    expect((await wallet(uri, '--yes', '--tx-code', '493536')).code).to.equal(0);

    const linkInPage = (await createRequest()).uri.replaceAll('&', '&#38;');
    const server = createServer((_, response) => response.end(`<a href="${linkInPage}">Open your wallet</a>`));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const page = await wallet(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, '--yes');
    server.close();
    expect(page.code, page.stderr).to.equal(0);

    const pageRun = await wallet((await offer({ flow: 'authorization_code' })).uri, '--yes');
    expect(pageRun.code, pageRun.stderr).to.equal(0);
  });

  it('waits for a deferred credential', async () => {
    backend.on('/claims', { json: { deferred: true, interval: 1 } });
    const { uri, session: id } = await offer({ credentialConfigurationIds: ['later'] });
    const pendingRun = wallet(uri, '--yes');
    const createDeferred = async (): Promise<string> => {
      const { body } = await service.call('GET', `/issuer/deferred?session=${id}`, { token: tenant.token });
      const [deferral] = body as { transactionId: string }[];
      if (deferral !== undefined) return deferral.transactionId;
      await new Promise((resolve) => setTimeout(resolve, 50));
      return createDeferred();
    };
    await post(`/issuer/deferred/${await createDeferred()}/complete`, { claims: { degree: 'Physics' } });
    const { code, stdout, stderr } = await pendingRun;
    expect(code, stderr).to.equal(0);
    expect(stdout).to.include('The credential is deferred').and.include('degree: Physics');
  });

  const INVALID_ARGUMENTS: readonly [string, readonly string[], RegExp][] = [
    ['no link', [], /^pass the link of an offer or of a request$/],
    ['a word', ['nonsense'], /^"nonsense" is not a link$/],
    ['another scheme', ['mailto:a@example.org'], /^links that begin with mailto: are neither/],
    ['an offer without credentials', ['openid-credential-offer://?x=1'], /^the link has neither credential_offer/],
    ['a request without a query', ['openid4vp://?client_id=1'], /^the link has neither request_uri/],
    ['another misbehaviour', ['openid4vp://?request=x', '--misbehave', 'x'], /^--misbehave is one of replay/],
    ['an unknown option', ['openid4vp://?request=x', '--no'], /^Unknown option '--no'$/],
    ['a page that is not there', ['http://127.0.0.1:9/'], /^http:\/\/127\.0\.0\.1:9 cannot be read: /],
  ];
  for (const [description, args, message] of INVALID_ARGUMENTS)
    it(`reports in one sentence the fault of ${description}, and exits with 2`, async () => {
      const { code, stdout, stderr } = await wallet(...args);
      expect([code, stdout]).to.deep.equal([2, '']);
      expect(stderr.trimEnd()).to.match(message).and.not.include('\n');
    });

  it('does not prompt without a terminal', async () => {
    const { session: id, uri } = await createRequest();
    const { code, stderr } = await wallet(uri);
    expect([code, stderr]).to.deep.equal([2, 'there is no terminal for the consent prompt: use --yes\n']);
    expect((await session(id)).status).to.equal('fetched');
  });

  it('reports a fault during the flow in one sentence, and exits with 1', async () => {
    const { uri } = await offer();
    expect((await wallet(uri, '--yes')).code).to.equal(0);
    const spentOffer = await wallet(uri, '--yes');
    expect(spentOffer.code).to.equal(1);
    expect(spentOffer.stderr.trimEnd(), spentOffer.stderr).to.have.length.greaterThan(10).and.not.include('\n');
    const file = join(folder, 'other.json');
    writeFileSync(file, '{"version":7}');
    const args = [WALLET, (await createRequest()).uri, '--yes', '--cards', file];
    const otherRun = await run(process.execPath, args);
    expect([otherRun.code, otherRun.stderr]).to.deep.equal([2, `${file} contains no credentials of this wallet\n`]);
  });

  it('has no credential for the query', async () => {
    const file = join(folder, 'none.json');
    const noMatchRun = await run(process.execPath, [WALLET, (await createRequest()).uri, '--yes', '--cards', file]);
    expect(noMatchRun.code).to.equal(1);
    expect(noMatchRun.stderr).to.equal(`No credential in ${file} matches: accept an offer first.\n`);
  });

  it('matches its documentation page', async () => {
    const commands = namedCodeBlocks(PAGE)
      .filter(({ language, section }) => language === 'sh' && section !== 'Browser')
      .flatMap(({ text }) => text.split('\n'))
      .filter((line) => line.includes('--yes'));
    expect(commands).to.have.length(3);
    for (const command of commands) {
      const environment = {
        OFFER: (await offer()).uri,
        REQUEST: (await createRequest()).uri,
        ANOTHER_REQUEST: (await createRequest()).uri,
      };
      const adaptedCommand = command.replace('./cards.json', join(folder, 'documented.json'));
      const { code, stderr, stdout } = await run('bash', ['-c', adaptedCommand], environment);
      expect(code, `${command}\n${stdout}${stderr}`).to.equal(0);
    }
    const { stdout } = await run(process.execPath, [WALLET, '--help']);
    for (const [option] of stdout.matchAll(/--[a-z-]+(?= )/g)) if (option !== '--help') expect(PAGE, option).to.include(`\`${option}`);
  });
});
