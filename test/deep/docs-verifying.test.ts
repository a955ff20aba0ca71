import type { ChildProcess } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { createServer } from 'node:net';
import { runInNewContext } from 'node:vm';
import { SubjectKeyIdentifierExtension, X509Certificate } from '@peculiar/x509';
import { expect } from 'chai';
import { redirectTranscript } from '../../domain/formats/mdoc/session-transcript.ts';
import { MAX_UNUSED_LISTS, StatusListCreation } from '../../domain/status-lists/list-definition.ts';
import { signatureHeaders } from '../../domain/webhooks/sign-webhook.ts';
import { freePort } from '../demo/process.ts';
import { Backend } from '../support/backend.ts';
import { deviceResponse } from '../support/device.ts';
import {
  codeBlocks,
  type DocsPage,
  expectPropertiesNamed,
  type PageRequest,
  readPage,
  startScript,
  withCertificate,
} from '../support/docs-pages.ts';
import { withoutIssuers } from '../support/failures.ts';
import { findLoteProblems } from '../support/lote-schema.ts';
import { createResource, credentialBody } from '../support/populated.ts';
import {
  bindToRequest,
  decode,
  encryptResponse,
  type FetchedRequest,
  type HeldCredential,
  issue,
  postResponse,
  requestPresentation,
  responseForm,
} from '../support/present.ts';
import { RawWallet } from '../support/raw-wallet.ts';
import { certify, pem } from '../support/test-certificates.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

const SHOP = 'https://shop.example';
const STUDENT = 'urn:acme:student:1';
const LICENCE = 'org.iso.18013.5.1.mDL';
const SAMPLE_KEY_ID = 's9tIpPmhxdiuNkHMEWNpYim8S8Y';

describe('the pages about verifying', () => {
  const pages = ['presentation-requests', 'verifying', 'issuer-trust'].map((name) => readPage(`reference/${name}.md`, 1));
  /** The requests of these pages build on each other in this order. */
  const PAGE: DocsPage = { text: pages.map(({ text }) => text).join('\n'), requests: pages.flatMap(({ requests }) => requests) };

  let service: TestService;
  let tenant: { id: string; token: string };
  let backend: Backend;
  let ca: string;
  let licence: HeldCredential;

  before(async () => {
    service = await startTestService();
    backend = await Backend.start();
    // The trust list of the example cannot be fetched, so the write succeeds with a warning.
    backend.on('/attestations.jwt', (response) => response.writeHead(404).end());
    tenant = await createTenant(service, 'acme');
    ca = (await call('GET', '/key-chain/signing')).body.rootCertificate;
    for (const request of ISSUING) if (isConfiguration(request)) await send(request);
    licence = await collect('mdl');
    const entities = [{ type: 'internal', issuerKeyChainId: 'signing', info: { name: 'Acme', country: 'DE', streetAddress: 'Weg 1' } }];
    expect((await call('POST', '/trust-list', { id: 'universities', entities })).status).to.equal(201);
  });
  after(async () => {
    await backend.close();
    await service.close();
  });

  const ISSUING = readPage('reference/issuing.md').requests;
  const isConfiguration = ({ path, text }: PageRequest) => path === '/key-chain' || /"id": "(student|mdl)"/.test(text);
  const call = (method: string, path: string, json?: unknown): Promise<Answer> =>
    service.call(method, path, { token: tenant.token, ...(json === undefined ? {} : { json }) });

  /** The JSON of a page with the addresses, the certificate and the key identifier of this service. */
  function adaptToTest(text: string) {
    const keyId = new X509Certificate(ca).getExtension(SubjectKeyIdentifierExtension)?.keyId ?? '';
    return JSON.parse(
      withCertificate(text, ca)
        .replaceAll(/https:\/\/(verifier|issuer)\.example/g, service.address)
        .replaceAll(/https:\/\/lists\.example|http:\/\/127\.0\.0\.1:8080/g, backend.url)
        .replace(SAMPLE_KEY_ID, Buffer.from(keyId, 'hex').toString('base64url')),
    );
  }
  async function send({ method, path, text }: PageRequest) {
    const answer = await call(method, path, adaptToTest(text));
    expect(answer.status, `${path} ${text}: ${answer.text}`).to.equal(method === 'POST' ? 201 : 200);
    return answer.body;
  }
  const findRequest = (fragment: string) => PAGE.requests.find(({ text }) => text.includes(fragment));
  /** Sends the first configuration of the pages, then the request that contains `mark`. */
  async function configure(fragment: string) {
    for (const request of [PAGE.requests[0], findRequest(fragment)]) {
      if (request === undefined) throw new Error(`no request of the pages contains ${fragment}`);
      await send(request);
    }
  }
  /** Issues a credential with the claims of the page about issuing. */
  function collect(id: string): Promise<HeldCredential> {
    const offers = ISSUING.map(({ text }) => JSON.parse(text).credentialClaims ?? {});
    const claims = offers.find((offer) => id in offer);
    return issue(service, tenant, id, { credentialClaims: claims });
  }
  const readSession = async (id: string) => (await call('GET', `/session/${id}`)).body;

  /** A wallet that presents matching credentials and confirms transaction data. */
  async function present(request: FetchedRequest, credential?: HeldCredential): Promise<Answer> {
    const presentedCredential = credential ?? (await collect('student'));
    const vpToken: Record<string, string[]> = {};
    for (const { id, meta } of request.payload['dcql_query'].credentials) {
      if (meta.doctype_value === LICENCE) vpToken[id] = [show(request)];
      if (meta.vct_values?.includes(STUDENT)) {
        vpToken[id] = [bindToRequest(request, presentedCredential, undefined, confirmation(request, id))];
      }
    }
    return postResponse(service, request, await responseForm(request, vpToken));
  }
  function show({ payload }: FetchedRequest): string {
    const { client_id: clientId, response_uri: responseUri, nonce, client_metadata } = payload;
    const [encryptionKey] = client_metadata.jwks.keys;
    const transcript = redirectTranscript({ clientId, responseUri, nonce, encryptionKey });
    return deviceResponse({ ...licence, docType: LICENCE }, transcript);
  }
  function confirmation({ payload }: FetchedRequest, id: string): object {
    const entries = ((payload['transaction_data'] ?? []) as string[]).filter((entry) =>
      JSON.parse(Buffer.from(entry, 'base64url').toString()).credential_ids.includes(id),
    );
    const hashes = entries.map((entry) => createHash('sha256').update(entry).digest('base64url'));
    if (hashes.length === 0) return {};
    const { transaction_data_hashes_alg: hashAlgorithm } = JSON.parse(Buffer.from(entries[0] ?? '', 'base64url').toString());
    // TS12: a European wallet states the authentication of the user for payments.
    const amr = [{ knowledge: 'pin_6_or_more_digits' }, { possession: 'key_in_remote_wscd' }];
    const strongAuthentication = { transaction_data_hashes_alg: 'sha-256', jti: randomUUID(), amr };
    const { response_mode } = payload;
    return { transaction_data_hashes: hashes, ...(hashAlgorithm !== undefined && { ...strongAuthentication, response_mode }) };
  }

  it('contain requests that the service accepts in this order and that a wallet can answer', async () => {
    const acceptedRequests: string[] = [];
    for (const request of PAGE.requests) {
      const body = await send(request);
      if (body.dcApi !== undefined) continue;
      const { response_type: _, requestId, ...offer } = adaptToTest(request.text);
      const id = requestId ?? body.id;
      const presentationRequest = await requestPresentation(service, tenant.token, id, requestId === undefined ? {} : offer);
      const { status } = await present(presentationRequest);
      const session = await readSession(presentationRequest.session);
      expect([status, session.status], `${request.text} ${session.failure?.message}`).to.deep.equal([200, 'completed']);
      acceptedRequests.push(...session.credentials.map((credential: { id: string }) => credential.id));
    }
    expect(new Set(acceptedRequests)).to.deep.equal(new Set(['card', 'licence', 'cards']));
  });

  describe('show the webhook body', () => {
    const deliverWebhook = async (credential?: HeldCredential) => {
      await configure('"webhook"');
      backend.clearCalls();
      const request = await requestPresentation(service, tenant.token, 'enrolment');
      await present(request, credential);
      const [delivery] = backend.callsTo('/presented');
      const { credentials = [], ...body } = (delivery?.body ?? {}) as { credentials?: Record<string, unknown>[] };
      const issuer = { subject: '<subject>', fingerprint: '<fingerprint>', anchor: '<anchor>' };
      const results = withoutIssuers(credentials).map((result) => ({ ...result, ...(result['values'] !== undefined && { issuer }) }));
      return JSON.parse(JSON.stringify({ ...body, credentials: results }).replace(request.session, '<session>'));
    };
    const documentedBodies = codeBlocks(PAGE, 'jsonc').map((text) => JSON.parse(text));

    it('of a completed session', async () => {
      expect(await deliverWebhook()).to.deep.equal(documentedBodies[0]);
    });
    it('of a rejected presentation', async () => {
      const credential = await collect('student');
      const revocation = await call('POST', '/session/revoke', { sessionId: credential.session, status: 1 });
      expect(revocation.status).to.equal(201);
      expect(await deliverWebhook(credential)).to.deep.equal(documentedBodies[1]);
    });
  });

  it('contain a backend that accepts the response code once, from the browser that started', async () => {
    await configure('"redirectUri"');
    const port = await freePort(createServer);
    const [code = ''] = codeBlocks(PAGE, 'js');
    const environment = { SERVICE: service.address, TOKEN: tenant.token };
    const script = await startScript(code, port, environment);
    const visit = (path: string, Cookie = '') => fetch(`http://127.0.0.1:${port}${path}`, { headers: { Cookie }, redirect: 'manual' });
    try {
      const firstVisit = await visit('/ask');
      const ownCookie = firstVisit.headers.get('set-cookie')?.split(';')[0] ?? '';
      const otherCookie = (await visit('/ask')).headers.get('set-cookie')?.split(';')[0] ?? '';
      const uri = firstVisit.headers.get('location') ?? '';
      const url = new URL(uri).searchParams.get('request_uri') ?? '';
      const { text } = await service.call('GET', url);
      const answer = await present({ session: '', uri, url, text, ...decode(text) });
      const back = new URL(answer.body.redirect_uri);
      expect(back.origin + back.pathname).to.equal(`${SHOP}/done`);
      const resultPath = `/done${back.search}`;
      for (const [path, cookie] of [
        ['/done', ownCookie],
        [resultPath, otherCookie],
        [resultPath, ''],
      ]) {
        expect((await visit(path ?? '', cookie)).status, `${path} ${cookie}`).to.equal(403);
      }
      const resultPage = await visit(resultPath, ownCookie);
      expect([resultPage.status, await resultPage.text()]).to.deep.equal([200, 'Welcome, Ada']);
      expect((await visit(resultPath, ownCookie)).status, 'once').to.equal(403);
    } finally {
      script.kill();
    }
  });

  it('contain a web page that sends a request through the Digital Credentials API', async () => {
    await configure('"expectedOrigins"');
    const offer = findRequest('"dc-api"');
    if (offer === undefined) throw new Error('no offer of the pages contains "dc-api"');
    const { uri, session } = await send(offer);
    const credential = await collect('student');
    const button: { onclick?: () => Promise<void> } = {};
    const location = { href: '' };
    /** The browser with a wallet, on a page of the shop. */
    const get = async ({ digital }: { digital: { requests: { data: { request: string } }[] } }) => {
      const { payload } = decode(digital.requests[0]?.data.request ?? '');
      const text = bindToRequest({ payload }, credential, undefined, { aud: `origin:${SHOP}` });
      return { data: { response: await encryptResponse({ payload }, { vp_token: { card: [text] } }) } };
    };
    const [, code = ''] = /<script type="module">([\s\S]*)<\/script>/.exec(codeBlocks(PAGE, 'html')[0] ?? '') ?? [];
    runInNewContext(code, {
      document: { querySelector: () => button },
      fetch: (url: string, init?: RequestInit) => (url === '/ask' ? Response.json({ uri }) : fetch(url, init)),
      navigator: { credentials: { get } },
      location,
    });
    await button.onclick?.();
    const sessionState = await readSession(session);
    expect(location.href, sessionState.failure?.message).to.equal('/done');
    expect(sessionState.credentials).to.have.length(1);
    expect(sessionState.credentials[0].values).to.deep.include({ name: 'Ada' });
  });

  it('name every property of a configuration and of an offer', async () => {
    const { components } = (await service.call('GET', '/openapi.json')).body;
    const { PresentationConfigurationInput: configuration, PresentationRequest: offer } = components.schemas;
    const properties = [configuration, offer].flatMap(({ properties }) =>
      Object.keys(properties).filter((name) => properties[name].readOnly !== true),
    );
    expect(properties).to.have.length.greaterThan(20);
    const olderNames = ['accessCertId'];
    expectPropertiesNamed(
      PAGE,
      properties.filter((property) => property !== 'description' && !olderNames.includes(property)),
    );
  });
});

describe('the page about trust lists', () => {
  const PAGE = readPage('reference/trust-lists.md');

  let service: TestService;

  before(async () => {
    service = await startTestService();
  });
  after(() => service.close());

  it('contains requests that the service accepts in this order', async () => {
    const { token } = await createTenant(service, 'acme');
    const certificate = pem(await certify({ name: 'University', ca: true }));
    for (const { method, path, text } of PAGE.requests) {
      const json = JSON.parse(withCertificate(text, certificate));
      const answer = await service.call(method, path, { token, json });
      expect(answer.status, `${path}: ${answer.text}`).to.equal(method === 'POST' ? 201 : 200);
      if (path.startsWith('/trust-list')) expect(findLoteProblems(answer.body.data), path).to.deep.equal([]);
    }
    const published = await service.call('GET', '/acme/trust-list/universities');
    expect(published.status).to.equal(200);
    const chain = await service.call('GET', '/key-chain/trust-list', { token });
    expect(chain.body.rootCertificate).to.match(/BEGIN CERTIFICATE/);
  });

  it('names every writable property of the scheme information', async () => {
    const { components } = (await service.call('GET', '/openapi.json')).body;
    const properties = Object.keys(components.schemas.SchemeInformation.properties);
    expect(properties).to.have.length.greaterThan(10);
    expectPropertiesNamed(PAGE, properties);
  });
});

describe('the page about status lists', () => {
  const PAGE = readPage('reference/status-lists.md');

  let service: TestService;

  before(async () => {
    service = await startTestService();
  });
  after(() => service.close());

  it('contains requests that the service accepts in this order', async () => {
    const { token } = await createTenant(service, 'acme');
    await createResource(service, token, '/issuer/credentials', credentialBody('student', 'signing'));
    let listId = '';
    for (const { method, path, text } of PAGE.requests) {
      const json = JSON.parse(text);
      const answer = await service.call(method, path.replace('<listId>', listId), { token, json });
      expect(answer.status, `${path}: ${answer.text}`).to.equal(method === 'POST' ? 201 : 200);
      expect(answer.body).to.include(json);
      if (method === 'POST') listId = answer.body.id;
    }
    expect((await service.call('DELETE', `/status-lists/${listId}`, { token })).status).to.equal(204);
  });

  it('names every property of a list and the limit of unused lists', () => {
    expectPropertiesNamed(PAGE, Object.keys(StatusListCreation.shape));
    expect(PAGE.text).to.contain(`${MAX_UNUSED_LISTS} lists that nothing uses`);
  });
});

const VERIFIER = new URL('../../docs/examples/verify-webhook.mjs', import.meta.url).href;

describe('the page about webhooks', () => {
  const PAGE = readPage('reference/webhooks.md');

  let service: TestService;
  let tenant: { id: string; token: string };
  let port: number;
  let backend: ChildProcess | undefined;

  before(async () => {
    port = await freePort(createServer);
    service = await startTestService();
    tenant = await createTenant(service, 'acme');
  });
  after(async () => {
    backend?.kill();
    await service.close();
  });

  const [enableSigning, configuration, rotation, disableSigning] = PAGE.requests;
  const send = async (request = enableSigning) => {
    const { method, path, text } = request as NonNullable<typeof request>;
    const json = JSON.parse(text.replaceAll('127.0.0.1:8080', `127.0.0.1:${port}`));
    const answer = await service.call(method, path, { token: tenant.token, json });
    expect(answer.status, `${path}: ${answer.text}`).to.equal(method === 'POST' ? 201 : 200);
    return answer.body;
  };
  /** Starts the backend of the page with these secrets. */
  const start = async (...secrets: string[]) => {
    backend?.kill();
    port = await freePort(createServer);
    const [code = ''] = codeBlocks(PAGE, 'js');
    expect(code.split('\n')).to.have.length.lessThan(41);
    const adaptedCode = code.replace("'./verify-webhook.mjs'", JSON.stringify(VERIFIER));
    backend = await startScript(adaptedCode, port, { WEBHOOK_SECRETS: secrets.join(' ') });
    await send(configuration);
  };
  const isIssued = async () => {
    const offer = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['badge'] };
    const wallet = new RawWallet(service, tenant.id);
    const { uri } = await createResource(service, tenant.token, '/issuer/offer', offer);
    const answer = await wallet.request(await wallet.accessToken(uri), 'badge');
    if (answer.status !== 200) expect(answer.body.error, answer.text).to.equal('credential_request_denied');
    else expect(JSON.stringify(decode(answer.body.credentials[0].credential).payload)).to.include('Ada');
    return answer.status === 200;
  };

  it('contains a backend that accepts signed calls with either secret of a rotation', async () => {
    const { secret: firstSecret } = await send(enableSigning);
    await start(firstSecret);
    expect(await isIssued()).to.equal(true);
    const { secret: secondSecret } = await send(rotation);
    expect(await isIssued(), 'a backend with the previous secret').to.equal(true);
    await start(secondSecret);
    expect(await isIssued(), 'a backend with the new secret').to.equal(true);
    await start(firstSecret, secondSecret);
    await send(enableSigning);
    expect(await isIssued(), 'a backend with neither secret').to.equal(false);
    await send(disableSigning);
    expect(await isIssued(), 'without a signature').to.equal(false);
  });

  it('contains a backend that answers a repeated delivery identically and rejects a forged one', async () => {
    const key = Buffer.alloc(32, 7);
    await start(`whsec_${key.toString('base64')}`);
    const post = async (body: string, headers: Readonly<Record<string, string>>) => {
      const answer = await fetch(`http://127.0.0.1:${port}/claims`, { method: 'POST', body, headers });
      return [answer.status, await answer.text()];
    };
    const signCall = (id: string, configuration: string) => {
      const body = JSON.stringify({ credential_configuration_id: configuration });
      return [body, signatureHeaders(id, body, [key], new Date())] as const;
    };
    const firstSecret = await post(...signCall('one', 'badge'));
    expect(firstSecret).to.deep.equal([200, '{"badge":{"name":"Ada"}}']);
    expect(await post(...signCall('one', 'other'))).to.deep.equal(firstSecret);
    expect(await post(...signCall('two', 'other'))).to.deep.equal([200, '{"other":{"name":"Ada"}}']);
    const [, headers] = signCall('three', 'badge');
    expect(await post('{}', headers)).to.deep.equal([401, '']);
  });

  it('names every webhook and header', async () => {
    const { webhooks } = (await service.call('GET', '/openapi.json')).body;
    for (const name of Object.keys(webhooks)) {
      const spacedName = name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
      expect(PAGE.text, name).to.match(new RegExp(`^\\| ${spacedName} \\|`, 'm'));
    }
    const properties = ['claimsWebhook', 'notificationWebhook', 'notifyWebhook', 'webhook', 'callbackUrl'];
    expectPropertiesNamed(PAGE, [...properties, 'webhook-id', 'webhook-timestamp', 'webhook-signature']);
  });
});
