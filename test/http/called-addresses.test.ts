import { expect } from 'chai';
import { type HeldCredential, QUERY, Shop } from '../support/present.ts';
import { certify, pem } from '../support/test-certificates.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

const INSIDE = 'https://10.0.0.1/hook';
const CARD = { config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] }, vct: 'urn:card:1', claims: { name: 'Ada' } };
const OFFER = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'] };

/** What can never be called is refused where it is written, and not once a wallet waits. */
describe('blocked addresses in configurations', () => {
  let service: TestService;
  let tenant: { id: string; token: string };

  before(async () => {
    service = await startTestService({ OUTBOUND_ALLOW: 'backend.internal' });
    tenant = await createTenant(service, 'acme');
    await call('POST', '/issuer/config', { display: [{ name: 'Acme', locale: 'en' }] });
    for (const [path, body] of [
      ['/issuer/credentials', { ...CARD, id: 'card' }],
      ['/verifier/config', { id: 'ask', dcql_query: QUERY }],
    ] as const) {
      const answer = await call('POST', path, body);
      expect(answer.status, answer.text).to.equal(201);
    }
  });
  after(() => service.close());

  const call = (method: string, path: string, json?: unknown) =>
    service.call(method, path, { token: tenant.token, ...(json === undefined ? {} : { json }) });
  const expectRefused = (answer: Answer, ...paths: string[]) => {
    expect([answer.status, answer.body.code], answer.text).to.deep.equal([400, 'invalid_input']);
    expect(answer.body.errors.map(({ path }: { path: string }) => path)).to.deep.equal(paths);
    expect(answer.body.detail).to.include('OUTBOUND_ALLOW');
  };
  const offer = (more: object) => call('POST', '/issuer/offer', { ...OFFER, ...more });
  const source = (url: string) => ({ credentialClaims: { card: { type: 'webhook', webhook: { url } } } });

  it('are rejected in a credential configuration, each by its path, and nothing is stored', async () => {
    const page = { type: 'redirect_to_web', url: 'https://shop.example', callbackUrl: 'http://shop.example' };
    const body = {
      ...CARD,
      id: 'new',
      claimsWebhook: { url: INSIDE },
      notificationWebhook: { url: 'https://localhost/hook' },
      iaeActions: [page],
    };
    const paths = ['claimsWebhook.url', 'notificationWebhook.url', 'iaeActions.0.callbackUrl'];
    expectRefused(await call('POST', '/issuer/credentials', body), ...paths);
    expect((await call('GET', '/issuer/credentials/new')).status).to.equal(404);
    const change = { claimsWebhook: { url: 'https://169.254.169.254/latest' } };
    expectRefused(await call('PATCH', '/issuer/credentials/card', change), 'claimsWebhook.url');
  });

  it('are rejected in an offer', async () => {
    expectRefused(await offer(source(INSIDE)), 'credentialClaims.card.webhook.url');
    expectRefused(await offer({ notifyWebhook: { url: 'http://backend.example/hook' } }), 'notifyWebhook.url');
  });

  it('are rejected in a presentation configuration and in a request', async () => {
    const webhook = { url: INSIDE };
    const created = await call('POST', '/verifier/config', { id: 'new', dcql_query: QUERY, webhook });
    expectRefused(created, 'webhook.url');
    expectRefused(await call('PATCH', '/verifier/config/ask', { webhook }), 'webhook.url');
    const asked = { response_type: 'uri', requestId: 'ask', webhook };
    expectRefused(await call('POST', '/verifier/offer', asked), 'webhook.url');
  });

  const inside = ['http://127.0.0.1/', 'https://10.0.0.1/x', 'http://as.example', 'https://localhost:8443'];
  const display = [{ name: 'Acme', locale: 'en' }];
  const WORDS =
    'is a blocked address; add it to OUTBOUND_ALLOW if it is not public https; metadata services of clouds require an exact entry';
  const expectWords = (answer: Answer) => {
    for (const { message } of answer.body.errors) expect(message).to.equal(WORDS);
  };

  it('are rejected in the issuance configuration, each by its path, and nothing is stored', async () => {
    const before = (await call('GET', '/issuer/config')).text;
    for (const url of inside) {
      const body = {
        display,
        authServers: ['https://as.example', url],
        chainedAs: { upstream: { issuer: url, clientId: 'acme' } },
        walletProviderTrustLists: [url, 'https://lists.example/wallets'],
        walletClients: [{ client_id: 'wallet', jwks_uri: url }],
      };
      const answer = await call('POST', '/issuer/config', body);
      expectRefused(answer, 'authServers.1', 'chainedAs.upstream.issuer', 'walletProviderTrustLists.0', 'walletClients.0.jwks_uri');
      expectWords(answer);
      const asleep = { display, chainedAs: { enabled: false, upstream: { issuer: url, clientId: 'acme' } } };
      expectRefused(await call('POST', '/issuer/config', asleep), 'chainedAs.upstream.issuer');
    }
    expect((await call('GET', '/issuer/config')).text).to.equal(before);
  });

  it('are rejected in the trust anchors of a presentation configuration', async () => {
    const signedBy = [pem(await certify({ name: 'Operator' }))];
    const before = (await call('GET', '/verifier/config/ask')).text;
    for (const url of inside) {
      const trustAnchors = [{ keyChainId: 'signing' }, { trustList: 'https://lists.example/pid', signedBy }, { trustList: url, signedBy }];
      const body = { id: 'new', dcql_query: QUERY, trustAnchors, webhook: { url: INSIDE } };
      const created = await call('POST', '/verifier/config', body);
      expectRefused(created, 'webhook.url', 'trustAnchors.2.trustList');
      expectWords(created);
      expectRefused(await call('PATCH', '/verifier/config/ask', { trustAnchors }), 'trustAnchors.2.trustList');
    }
    expect((await call('GET', '/verifier/config/new')).status).to.equal(404);
    expect((await call('GET', '/verifier/config/ask')).text).to.equal(before);
  });

  it('are rejected in the login at a registrar before any call', async () => {
    const login = { clientId: 'acme', username: 'acme', password: 'password' };
    for (const url of inside) {
      const body = { ...login, registrarUrl: url, oidcUrl: url };
      const answer = await call('POST', '/registrar/config', body);
      expectRefused(answer, 'registrarUrl', 'oidcUrl');
      expectWords(answer);
      const api = { ...login, registrarUrl: url, oidcUrl: 'https://login.registrar.invalid' };
      expectRefused(await call('POST', '/registrar/config', api), 'registrarUrl');
    }
    expect((await call('GET', '/registrar/config')).status).to.equal(404);
  });

  it('do not include lists of this service, which it reads from its own database', async () => {
    const own = `${service.address}/acme/trust-list/issuers`;
    const trusting = { id: 'own', dcql_query: QUERY, trustAnchors: [{ trustList: own }] };
    const asked = await call('POST', '/verifier/config', trusting);
    expect(asked.status, asked.text).to.equal(201);
    const signers = [pem(await certify({ name: 'Operator' }))];
    const body = { display, walletProviderTrustLists: [own], walletProviderTrustListCertificates: signers };
    const configured = await call('POST', '/issuer/config', body);
    expect(configured.status, configured.text).to.equal(201);
  });

  it('do not include other services that are allowed', async () => {
    const body = {
      display,
      authServers: ['https://as.example', 'http://backend.internal:8080/as'],
      chainedAs: { upstream: { issuer: 'http://backend.internal', clientId: 'acme' } },
      walletProviderTrustLists: ['https://lists.example/wallets'],
      walletProviderTrustListCertificates: [pem(await certify({ name: 'Operator' }))],
      walletClients: [{ client_id: 'wallet', jwks_uri: 'http://backend.internal/jwks' }],
    };
    const answer = await call('POST', '/issuer/config', body);
    expect(answer.status, answer.text).to.equal(201);
  });

  it('do not include public https addresses or a listed host', async () => {
    for (const url of ['https://backend.example/hook', 'http://backend.internal:8080/hook']) {
      const answer = await offer(source(url));
      expect(answer.status, answer.text).to.equal(201);
    }
  });
});

describe('address that cannot be called', () => {
  let shop: Shop;
  let held: HeldCredential;

  before(async () => {
    shop = await Shop.open({}, () => startTestService({ OUTBOUND_ALLOW: 'localhost,127.0.0.1,*.invalid' }));
    held = await shop.issue();
    shop.backend.on('/down', (response) => response.writeHead(503).end());
  });
  after(() => shop.close());

  const webhooks: readonly [string, () => string, RegExp][] = [
    ['a closed port', () => 'https://localhost:1/hook?key=secret', /could not be reached: the connection was refused/],
    ['plain HTTP', () => `https://localhost:${new URL(shop.backend.url).port}/hook`, /TLS: the server does not speak TLS/],
    ['an unknown name', () => 'https://nosuch.invalid/hook?key=secret', /could not be reached: DNS: /],
    ['an HTTP status', () => `${shop.backend.url}/down`, /answered with status 503/],
  ];
  for (const [what, url, reason] of webhooks) {
    it(`is named in session and delivery of a presentation webhook: ${what}`, async () => {
      await shop.configure({ id: 'hook', webhook: { url: url() } });
      const asked = await shop.requestPresentation('hook');
      expect((await shop.present(asked, held)).status).to.equal(400);
      const { failure, deliveries } = await shop.session(asked.session);
      expect(failure.message).to.match(reason).and.not.include('secret');
      expect(deliveries[0].detail).to.match(reason).and.not.include('secret');
    });
  }

  it('is named in the report and in the cache statistics for a trust list', async () => {
    const lists = ['https://localhost:1/list', 'https://nosuch.invalid/list'];
    const trustAnchors = lists.map((trustList) => ({ trustList, signedBy: [shop.anchor] }));
    await shop.configure({ id: 'listed', trustAnchors });
    const asked = await shop.requestPresentation('listed');
    await shop.present(asked, held);
    const { report } = await shop.session(asked.session);
    expect(JSON.stringify(report)).to.include('unreachable (the connection was refused)').and.include('unreachable (DNS: ');
    const { trustListCache } = (await shop.call('GET', '/cache/stats')).body;
    const reasons = trustListCache.failing.map((entry: { reason: string }) => entry.reason).join();
    expect(reasons).to.include('the connection was refused').and.include('DNS: ');
  });
});
