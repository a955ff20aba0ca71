import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { expect } from 'chai';
import { PageSettings } from '../../domain/tenants/page-settings.ts';
import { Authorities, toPem } from '../demo/authorities.ts';
import { freePort } from '../demo/process.ts';
import {
  codeBlocks,
  expectPropertiesNamed,
  type NamedCodeBlock,
  namedCodeBlocks,
  readPage,
  startScript,
  Terminal,
  withCertificate,
} from '../support/docs-pages.ts';
import { createResource } from '../support/populated.ts';
import { requestPresentation } from '../support/present.ts';
import { startProgram, stopPrograms } from '../support/programs.ts';
import { RawWallet } from '../support/raw-wallet.ts';
import { RegistrarWorld } from '../support/registrar-world.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';
import { Openid4vcWallet } from '../wallets/openid4vc/wallet.ts';

/** The programs of the page run while a wallet acts. */
const RUNS = /^npx node --env-file=(\w+\.env) (\w+\.mjs)$/;

describe('the page about the first hour', () => {
  const PAGE = 'guides/first-hour.md';
  const text = readFileSync(new URL(`../../docs/${PAGE}`, import.meta.url), 'utf8');
  const frames = namedCodeBlocks(text);

  let terminal: Terminal;
  let address: string;
  const wallet = new Openid4vcWallet();

  before(async () => {
    const [port, webhook] = [await freePort(createServer), await freePort(createServer)];
    address = `http://localhost:${port}`;
    terminal = new Terminal({
      instead: { '127.0.0.1:8080': `127.0.0.1:${webhook}`, '8080,': `${webhook},` },
      environment: { VIDIMUS_URL: address, PUBLIC_URL: address },
    });
  });
  afterEach(stopPrograms);
  after(() => terminal?.close());

  /** Runs a program of the page and redeems the printed link with a wallet. @returns the output of the program. */
  const run = async (block: NamedCodeBlock, use: (uri: string) => Promise<unknown>) => {
    const [, file = '', program = ''] = RUNS.exec(block.text) ?? [];
    const startedProgram = startProgram(process.execPath, [`--env-file=${file}`, program], {
      cwd: terminal.folder,
      environment: { PATH: process.env['PATH'], VIDIMUS_URL: address },
    });
    for (let tries = 0; tries < 200 && !startedProgram.output().includes('\nactive\n'); tries++) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    await use(startedProgram.output().split('\n')[0] ?? '');
    expect(await startedProgram.ended, startedProgram.output()).to.equal(0);
    return startedProgram.output();
  };

  it('runs every command, up to a verified presentation', async () => {
    const outputs: string[] = [];
    for (const frame of frames) {
      if (frame.language === 'js') terminal.write(frame.name, frame.text);
      if (frame.language !== 'sh') continue;
      if (!RUNS.test(frame.text)) {
        const { code, stderr } = await terminal.type(frame.text, address);
        expect(code, stderr).to.equal(0);
      } else if (outputs.length === 0) {
        outputs.push(await run(frame, (uri) => wallet.accept(uri)));
      } else {
        const answer = async (uri: string) => {
          const [credential] = wallet.credentials;
          if (credential === undefined) throw new Error('the wallet has no card');
          return wallet.present(await wallet.readRequest(uri), credential);
        };
        outputs.push(await run(frame, answer));
      }
    }
    expect(outputs).to.have.length(2);
    expect(outputs[0]).to.match(/\nactive\n(fetched\n)?completed\n$/);
    expect(outputs[1]).to.match(/\ncompleted\n\{ course: 'Logic' \}\n$/);
  });

  it('names addresses for the phone that answer', async () => {
    for (const [, path = ''] of text.matchAll(/`<PUBLIC_URL>(\/[^`]+)`/g)) {
      const answer = await fetch(address + path);
      expect(answer.status, path).to.equal(200);
      const body = (await answer.json()) as Record<string, unknown>;
      if (path !== '/health') expect(String(body['credential_issuer'])).to.match(new RegExp(`^${address}`));
      else expect(body['status']).to.equal('ok');
    }
  });
});

const TRANSACTION = '<transactionId>';

describe('the page about issuing', () => {
  const PAGE = readPage('reference/issuing.md');

  let service: TestService;
  let tenant: { id: string; token: string };
  let port: number;
  let backend: ChildProcess | undefined;

  before(async () => {
    port = await freePort(createServer);
    service = await startTestService();
    tenant = await createTenant(service, 'acme');
    // The backend of the page on another port.
    backend = await startScript(codeBlocks(PAGE, 'js')[0] ?? '', port);
  });
  after(async () => {
    backend?.kill();
    await service.close();
  });

  const call = (method: string, path: string, json?: unknown) =>
    service.call(method, path, { token: tenant.token, ...(json === undefined ? {} : { json }) });
  /** A body of the page with the addresses and a certificate of this service. */
  const adaptBody = (text: string, certificate: string) =>
    JSON.parse(
      withCertificate(text, certificate)
        .replaceAll('https://issuer.example', service.address)
        .replaceAll('127.0.0.1:8080', `127.0.0.1:${port}`),
    );
  /** A wallet redeems an offer and gets a deferred response. */
  async function defer({ uri, session }: { uri: string; session: string }) {
    const wallet = new RawWallet(service, tenant.id);
    const token = await wallet.accessToken(uri);
    const answer = await wallet.request(token, 'student');
    expect([answer.status, answer.body.interval], answer.text).to.deep.equal([202, 60]);
    const [{ transactionId }] = (await call('GET', `/issuer/deferred?session=${session}`)).body;
    expect(transactionId).to.equal(answer.body.transaction_id);
    const fetch = () =>
      service.call('POST', '/acme/deferred_credential', {
        headers: wallet.authorization(token, { path: 'deferred_credential' }),
        json: { transaction_id: transactionId },
      });
    return { transactionId, fetch };
  }

  it('contains requests that the service accepts in this order', async () => {
    expect(PAGE.requests).to.have.length.greaterThan(10);
    const certificate = (await call('GET', '/key-chain/signing')).body.rootCertificate;
    let lastOffer = { uri: '', session: '' };
    for (const { method, path, text } of PAGE.requests) {
      const isDecision = path.includes(TRANSACTION);
      const deferral = isDecision ? await defer(lastOffer) : undefined;
      const address = path.replace(TRANSACTION, deferral?.transactionId ?? '');
      const answer = await call(method, address, adaptBody(text, certificate));
      expect(answer.status, `${path}: ${answer.text}`).to.equal(isDecision ? 200 : 201);
      if (path === '/issuer/offer') lastOffer = answer.body;
      if (deferral !== undefined) expect((await deferral.fetch()).status).to.equal(200);
    }
  });

  it('uses only properties of the OpenAPI document', async () => {
    const { components } = (await service.call('GET', '/openapi.json')).body;
    const adaptedBodies: Record<string, string> = {
      '/issuer/credentials': 'CredentialConfigurationInput',
      '/issuer/config': 'IssuanceConfigurationInput',
      '/issuer/offer': 'OfferRequest',
      '/key-chain': 'KeyChainCreation',
    };
    for (const { path, text } of PAGE.requests) {
      const name = adaptedBodies[path];
      if (name === undefined) continue;
      expect(Object.keys(components.schemas[name].properties), path).to.include.members(Object.keys(JSON.parse(text)));
    }
  });

  it('describes the hosted type that the service serves', async () => {
    const type = await service.call('GET', '/acme/vct/library');
    expect(type.body).to.include({ vct: `${service.address}/acme/vct/library`, name: 'Library card of Acme University' });
  });
});

describe('the page about pages for users', () => {
  let service: TestService;
  before(async () => {
    service = await startTestService();
  });
  after(() => service.close());

  it('contains requests that the service accepts, which create an offer page', async () => {
    const page = readPage('reference/pages-for-users.md', 2);
    expectPropertiesNamed(page, Object.keys(PageSettings.shape));
    const { token } = await createTenant(service, 'acme');
    const config = { format: 'dc+sd-jwt', display: [{ name: 'Student card', locale: 'en' }] };
    const student = { id: 'student', config, vct: 'urn:acme:student:1', claims: { name: 'Ada' } };
    await createResource(service, token, '/issuer/credentials', student);
    const [pageConfiguration, offer] = page.requests;
    const writtenConfiguration = await createResource(service, token, '/issuer/config', JSON.parse(pageConfiguration?.text ?? ''));
    expect(JSON.stringify(writtenConfiguration.warnings)).to.not.include('pages.');
    const { pageUrl } = await createResource(service, token, '/issuer/offer', JSON.parse(offer?.text ?? ''));
    const pageResponse = await service.call('GET', new URL(pageUrl).pathname);
    expect(pageResponse.status).to.equal(200);
    expect(pageResponse.text)
      .to.include('Ministry of Examples')
      .and.include('<img src="data:image/svg+xml,')
      .and.include('https://ministry.example/privacy');
  });
});

const PASSWORD = 'the password of the account';

describe('the page about profiles', () => {
  const PAGE = readPage('reference/profiles.md');

  let service: TestService;
  let authorities: Authorities;

  before(async () => {
    service = await startTestService();
    authorities = await Authorities.start();
  });
  after(async () => {
    await service.close();
    await authorities.close();
  });

  /** The JSON of the page with the addresses and the certificate of this machine. */
  const adaptToTest = (text: string) => {
    const { registrar, provider } = authorities;
    const list = provider.configuration()['walletProviderTrustLists'] as readonly string[];
    return JSON.parse(
      withCertificate(text, toPem(authorities.operator))
        .replace('https://lists.example/wallet-providers.jwt', list[0] ?? '')
        .replace('https://registrar.example', registrar.url)
        .replace('https://login.registrar.example', registrar.url),
    );
  };

  it('sets up a tenant under eu that can issue and verify', async () => {
    authorities.registrar.password = PASSWORD;
    let token = await service.rootToken();
    for (const { method, path, text } of PAGE.requests) {
      const answer = await service.call(method, path, { token, json: adaptToTest(text) });
      expect(answer.status, `${path}: ${answer.text}`).to.equal(201);
      if (path !== '/tenant') continue;
      const [{ clientId, secret }] = answer.body.clients;
      expect(clientId).to.equal('ministry-admin');
      token = await service.token(clientId, secret);
    }
    expect(PAGE.requests).to.have.length(6);
    const { body: tenant } = await service.call('GET', '/tenant/ministry', { token: await service.rootToken() });
    expect(tenant.profile).to.equal('eu');
    const offer = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['pid'] };
    const createdOffer = await service.call('POST', '/issuer/offer', { token, json: offer });
    expect(createdOffer.status, createdOffer.text).to.equal(201);
    const requestResponse = await service.call('POST', '/verifier/offer', { token, json: { response_type: 'uri', requestId: 'who' } });
    expect(requestResponse.status, requestResponse.text).to.equal(201);
  });
});

describe('the page about registrars', () => {
  const PAGE = readPage('reference/registrar.md');

  let registrarWorld: RegistrarWorld;

  before(async () => {
    registrarWorld = await RegistrarWorld.open();
  });
  after(() => registrarWorld.close());

  it('contains requests that the service accepts in this order', async () => {
    const { registrar } = registrarWorld;
    registrar.password = 'the password of the account';
    for (const { method, path, text } of PAGE.requests) {
      const adaptedText = text
        .replace('https://registrar.example', registrar.url)
        .replace('https://login.registrar.example', registrar.url);
      const answer = await registrarWorld.call(method, path, JSON.parse(adaptedText));
      expect(answer.status, `${path}: ${answer.text}`).to.equal(201);
    }
    const { payload } = await requestPresentation(registrarWorld.service, registrarWorld.token, 'account-opening');
    expect(payload['verifier_info']).to.have.length(1);
  });

  it('names every property of the registrar account', async () => {
    const { components } = (await registrarWorld.service.call('GET', '/openapi.json')).body;
    const { properties } = components.schemas.RegistrarConfigurationInput;
    const writableProperties = Object.keys(properties).filter((name) => properties[name].readOnly !== true);
    expect(writableProperties).to.have.length.greaterThan(6);
    expectPropertiesNamed(PAGE, writableProperties);
  });
});

describe('the page about certification', () => {
  const PAGE = readFileSync(new URL('../../docs/guides/certification.md', import.meta.url), 'utf8');
  const REQUESTS = [...PAGE.matchAll(/^`(POST) (\/\S+)`\n```json\n([\s\S]*?)\n```$/gm)].map(([, method = '', path = '', text = '']) => ({
    method,
    path,
    text,
  }));

  let service: TestService;

  before(async () => {
    service = await startTestService();
  });
  after(() => service.close());

  const createProfileTenant = async (body: Readonly<Record<string, unknown>>) => {
    const { token } = await createTenant(service, String(body['id']), body);
    const { body: chains } = await service.call('GET', '/key-chain', { token });
    return { token, chains: chains as { id: string; rootCertificate: string; activeCertificate: string }[] };
  };
  type Tenant = Awaited<ReturnType<typeof createProfileTenant>>;
  const send = ({ token, chains }: Tenant, { method, path, text }: (typeof REQUESTS)[number], pinned = false) => {
    const { rootCertificate = '', activeCertificate = '' } = chains[0] ?? {};
    const json = JSON.parse(withCertificate(text, pinned ? activeCertificate : rootCertificate));
    return service.call(method, path, { token, json });
  };

  it('shows requests that the service accepts, by tenants with the profiles that it names', async () => {
    const [firstRequest, ...otherRequests] = REQUESTS;
    if (firstRequest === undefined) throw new Error('the page shows no request');
    expect(firstRequest.path).to.equal('/tenant');
    const tenantWithProfile = await createProfileTenant(JSON.parse(firstRequest.text));
    const tenantWithoutProfile = await createProfileTenant({ id: 'no-profile', profile: null });
    let isFirstConfig = true;
    for (const request of otherRequests) {
      const isPlain = request.path === '/issuer/config' && !isFirstConfig;
      if (request.path === '/issuer/config') isFirstConfig = false;
      const isMdoc = request.text.includes('mdl');
      const answer = await send(isPlain || isMdoc ? tenantWithoutProfile : tenantWithProfile, request, isMdoc);
      expect(answer.status, `${request.path}: ${answer.text}`).to.equal(201);
      if (request.path.endsWith('/offer')) expect(answer.body.uri).to.be.a('string');
    }
    expect(otherRequests).to.have.length(8);
  });

  it('says which profiles, key chains and combinations of encryption there are', async () => {
    const token = await service.rootToken();
    const json = { id: 'none', name: 'None', profile: 'none' };
    expect((await service.call('POST', '/tenant', { token, json })).status).to.equal(400);
    const tenant = await createProfileTenant({ id: 'chains' });
    expect(tenant.chains.map(({ id }) => id)).to.deep.equal(['access', 'signing', 'status-list', 'trust-list']);
    for (const { id, rootCertificate, activeCertificate } of tenant.chains) {
      expect(PAGE).to.include(`\`${id}\``);
      expect(rootCertificate).to.not.equal(activeCertificate);
    }
    const display = [{ name: 'Conformance' }];
    const configurationStatus = async (body: object) =>
      (await service.call('POST', '/issuer/config', { token: tenant.token, json: body })).status;
    expect(await configurationStatus({ batchSize: 10 })).to.equal(400);
    expect(await configurationStatus({ display, responseEncryption: 'required' })).to.equal(400);
    const bothRequired = { requestEncryption: 'required', responseEncryption: 'required' };
    expect(await configurationStatus({ display, ...bothRequired })).to.equal(201);
  });
});
