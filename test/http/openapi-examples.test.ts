import { expect } from 'chai';
import { EXAMPLE_HANDLE, EXAMPLE_REQUEST_URI } from '../../adapters/http/oauth/described-parameters.ts';
import { ConsoleTickets } from '../../application/console/console-tickets.ts';
import { parseCertificate } from '../../domain/formats/der/certificate.ts';
import { parsePemCertificates } from '../../domain/formats/der/pem.ts';
import { ChainedWallet, ChainedWorld } from '../support/chained-world.ts';
import { buildConsole } from '../support/console.ts';
import { type ExampleCallOptions, ExampleCalls } from '../support/example-calls.ts';
import { Issuer, openCustomerPage, startWebStep } from '../support/interactive-authorization.ts';
import { addPendingSigner, lastSegment } from '../support/populated.ts';
import { bindToRequest, decode, encryptResponse, type HeldCredential } from '../support/present.ts';
import { dpopProof, keyProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { TestRegistrar } from '../support/registrar.ts';
import type { Answer, TestService } from '../support/test-service.ts';

const CODE_FLOW = { response_type: 'uri', flow: 'authorization_code', credentialConfigurationIds: ['pid'] };

/** One tenant from its first call to its last; each part goes on where the one before ended. */
describe('The examples of the API document', () => {
  let world: ChainedWorld;
  let service: TestService;
  let registrar: TestRegistrar;
  let examples: ExampleCalls;
  let token: string;
  let held: HeldCredential;
  const wallet = () => new RawWallet(service, 'acme');

  before(async () => {
    buildConsole();
    world = await ChainedWorld.start(['acme']);
    ({ service } = world);
    registrar = await TestRegistrar.start();
    examples = await ExampleCalls.of(service);
  });
  after(async () => {
    await world.close();
    await registrar.close();
  });

  const run = (name: string, calling: ExampleCallOptions = {}) => examples.run(name, { token, ...calling });
  const all = async (...names: string[]) => {
    for (const name of names) await run(name);
  };
  /** By anybody, such as a wallet. */
  const open = (name: string, calling: ExampleCallOptions = {}) => examples.run(name, calling);
  const call = async (method: string, path: string, json?: object): Promise<Answer['body']> => {
    const answer = await service.call(method, path, { token, ...(json && { json }) });
    expect(answer.status, `${path}: ${answer.text}`).to.be.within(200, 201);
    return answer.body;
  };
  const parameterOf = (answer: Answer, name: string) => new URL(answer.headers.get('location') ?? '').searchParams.get(name) ?? '';

  it('describe the service', async () => {
    for (const name of [
      'getService',
      'getHealth',
      'getLiveness',
      'getReadiness',
      'getApiDocument',
      'getApiPage',
      'getApiPageFile',
      'getConsole',
      'getConsoleFile',
      'getConsoleLogin',
    ])
      await open(name);
    examples.answered['ticket of the printed link'] = service.service.container.get(ConsoleTickets).issue();
    await open('logInToConsole');
  });

  it('create a tenant and its clients', async () => {
    const root = await service.rootToken();
    const { body } = await open('createTenant', { token: root });
    examples.answered['client secret'] = body.clients[0].secret;
    ({ access_token: token } = (await open('createAccessToken')).body);
    examples.answered['access token'] = token;
    for (const name of ['listTenants', 'listTenantRemovals', 'getTenant', 'updateTenant', 'listSettings'])
      await open(name, { token: root });
    await all('createClient', 'getClientSecret', 'listClients', 'getIdentity', 'getClient', 'updateClient', 'rotateClientSecret');
  });

  it('create its keys', async () => {
    await all('createKeyChain', 'importKeyChain', 'listKeyChains', 'listKeyProviders', 'getKeyChain');
    await all('updateKeyChain', 'rotateKeyChain', 'createKeyChainRequest');
    await all('createCertificate', 'listCertificates', 'getCertificate', 'updateCertificate');
    await all('createCertificateRequest', 'createKey', 'listKeys', 'getKey');
    const chains = await call('GET', '/key-chain/signing');
    const [der = ''] = parsePemCertificates(chains.rootCertificate, 1) ?? [];
    const { keyHash = '' } = parseCertificate(Buffer.from(der, 'base64')) ?? {};
    examples.answered['authority'] = Buffer.from(keyHash, 'base64url').toString('hex');
    for (const name of ['fetchRevocationList', 'fetchAuthorityCertificate']) await open(name);
  });

  it('create its lists', async () => {
    await all('getStatusListDefaults', 'replaceStatusListDefaults', 'listStatusLists');
    examples.answered['status list'] = (await run('createStatusList')).body.id;
    await all('getStatusList', 'updateStatusList');
    for (const name of ['fetchStatusList', 'fetchStatusListAggregation', 'showPresentedPage']) await open(name);
    await run('deleteStatusList');
    await all('createTrustList', 'listTrustLists', 'getTrustList', 'exportTrustList', 'replaceTrustList');
    await run('updateTrustList');
    const { body } = await run('listTrustListVersions');
    examples.answered['version'] = body[0].id;
    await run('getTrustListVersion');
    await open('fetchTrustList');
  });

  it('report the operation', async () => {
    await all('getSessionStorage', 'replaceSessionStorage', 'resetSessionStorage');
    await all('rotateWebhookSecret', 'getWebhookSecret', 'updateWebhookSecret');
    await all('replaceIssuanceConfiguration', 'getIssuanceConfiguration');
    await all('replaceCredentialConfiguration', 'listCredentialConfigurations', 'getCredentialConfiguration');
    await all('updateCredentialConfiguration', 'replacePresentationConfiguration');
    await all('listPresentationConfigurations', 'getPresentationConfiguration');
    examples.answered['followed list'] = await addPendingSigner(service, token, { tenant: 'acme', name: 'follower' });
    const [waiting] = (await run('listFollowedTrustLists')).body;
    examples.answered['fingerprint'] = waiting.held.signer.fingerprint;
    await all('confirmTrustListSigner', 'forecastTrust');
    await all('getCacheStatistics', 'clearCaches', 'clearTrustListCache', 'clearStatusListCache');
    for (const name of ['getIssuerMetadata', 'getIssuerMetadataBelowTenant', 'getServerMetadata']) await open(name);
    for (const name of ['getServerMetadataBelowTenant', 'getServerKeys']) await open(name);
    const config = { format: 'dc+sd-jwt', display: [{ name: 'Badge', locale: 'en' }] };
    const vct = { name: 'Badge' };
    await call('POST', '/issuer/credentials', { id: 'badge', config, vct, schema: { type: 'object' } });
    examples.answered['type'] = 'badge';
    for (const name of ['getTypeMetadata', 'getCredentialSchema']) await open(name);
  });

  it('order certificates from a registrar', async () => {
    // The registrar of the example is one that there is not.
    const login = { registrarUrl: `${registrar.url}/api`, oidcUrl: registrar.url };
    examples.replace('https://registrar.example/api', login.registrarUrl);
    examples.replace('https://login.registrar.example/realms/relying-parties', login.oidcUrl);
    registrar.password = 'the password of the account';
    await all('replaceRegistrarConfiguration', 'getRegistrarConfiguration');
    registrar.password = 'the new password of the account';
    await all('updateRegistrarConfiguration', 'orderAccessCertificate', 'orderRegistrationCertificate');
    await run('deleteRegistrarConfiguration');
  });

  /** An offer that nobody but the test makes. */
  const offered = async (more: object = {}) => call('POST', '/issuer/offer', { ...CODE_FLOW, ...more });
  const stateOf = async (uri: string) => {
    const { grants } = (await wallet().offer(uri)) as { grants: { authorization_code: { issuer_state: string } } };
    return grants.authorization_code.issuer_state;
  };

  it('issue a credential', async () => {
    const made = (await run('createOffer')).body;
    examples.answered['session'] = made.session;
    examples.answered['offer'] = lastSegment(new URL(made.uri).searchParams.get('credential_offer_uri'));
    examples.answered['page'] = lastSegment(made.pageUrl);
    await open('fetchCredentialOffer');
    await open('showOfferPage');
    const { uri, session } = await offered();
    examples.answered['issuer state'] = await stateOf(uri);
    await open('createAttestationChallenge');
    const pushed = (await open('pushAuthorizationRequest')).body;
    examples.replace(EXAMPLE_REQUEST_URI, pushed.request_uri);
    const page = await open('authorize');
    examples.answered['decision token'] = /name="decision_token" value="([^"]+)"/.exec(page.text)?.[1] ?? '';
    const cookie = (page.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
    const decided = await open('decideAuthorization', { headers: { Cookie: cookie } });
    examples.answered['authorization code'] = parameterOf(decided, 'code');
    const holder = wallet();
    const headers = { DPoP: dpopProof(holder.dpopKey, `${holder.issuer}/token`) };
    const { access_token } = (await open('redeemGrant', { headers })).body;
    const key = newKey();
    const nonce = (await open('createNonce')).body.c_nonce;
    examples.answered['proof'] = keyProof(key, holder.issuer, nonce);
    const issued = (await open('requestCredential', { headers: holder.authorization(access_token) })).body;
    examples.answered['notification'] = issued.notification_id;
    await open('notifyIssuer', { headers: holder.authorization(access_token, { path: 'notification' }) });
    held = { text: issued.credentials[0].credential, holder: key, session };
    await run('listSessions');
  });

  it('promise a deferred credential', async () => {
    const json = { deferred: true, interval: 1 };
    world.backend.on('/later', (response) => response.end(JSON.stringify(json)));
    const webhook = { url: `${world.backend.url}/later` };
    const promised = async () => {
      const holder = wallet();
      const credentialClaims = { pid: { type: 'webhook', webhook } };
      const { uri, session } = await offered({ flow: 'pre_authorized_code', credentialClaims });
      const accessToken = await holder.accessToken(uri);
      const { body } = await holder.request(accessToken, 'pid');
      examples.answered['transaction'] = body.transaction_id;
      examples.answered['session'] = session;
      const headers = (path: string, method?: string) =>
        holder.authorization(accessToken, { path, ...(method !== undefined && { method, url: `${service.address}/${path}` }) });
      return headers;
    };
    const first = await promised();
    await all('listDeferredTransactions', 'getDeferredTransaction', 'completeDeferredTransaction');
    await open('requestDeferredCredential', { headers: first('deferred_credential') });
    const second = await promised();
    await run('completeDeferredTransaction');
    await open('pollDeferredCredential', { headers: second('deferred_credential', 'GET') });
    await promised();
    await run('failDeferredTransaction');
  });

  it('verify the credential', async () => {
    const made = (await run('createPresentationRequest')).body;
    const requestUrl = (link: string) => new URL(link).searchParams.get('request_uri') ?? '';
    examples.answered['request'] = lastSegment(requestUrl(made.crossDeviceUri).replace(/\/cross-device$/, ''));
    await open('fetchCrossDeviceRequest');
    await open('fetchCrossDeviceRequestForWallet');
    examples.answered['request'] = lastSegment(requestUrl(made.uri));
    await open('fetchPresentationRequest');
    const asked = decode((await open('fetchPresentationRequestForWallet')).text);
    const vp_token = { pid: [bindToRequest(asked, held)] };
    examples.answered['encrypted response'] = await encryptResponse(asked, { vp_token, state: asked.payload['state'] });
    const { redirect_uri } = (await open('respondToPresentationRequest')).body;
    examples.answered['session'] = made.session;
    examples.answered['response code'] = new URL(redirect_uri).searchParams.get('response_code') ?? '';
    expect((await run('getSession')).body.status).to.equal('completed');
    const ofPage = await call('POST', '/verifier/offer', { response_type: 'dc-api', requestId: 'name-check' });
    examples.answered['request'] = lastSegment(ofPage.uri);
    for (const name of ['fetchDigitalCredentialRequests', 'respondToDigitalCredentialRequest']) await open(name);
    await run('tryPresentation');
    await run('updatePresentationConfiguration');
  });

  it('revoke the credential and end sessions', async () => {
    examples.answered['session'] = held.session;
    await run('revokeCredentials');
    await run('listSessionStatuses');
    await run('countSessions');
    await run('revokeCredentialsBySubject');
    examples.answered['session'] = (await offered()).session;
    await all('showSession', 'cancelSession', 'watchSession');
    const holder = wallet();
    const notifyWebhook = { url: 'http://127.0.0.1:9/nobody-listens' };
    const { uri, session } = await offered({ flow: 'pre_authorized_code', notifyWebhook });
    const accessToken = await holder.accessToken(uri);
    const { notification_id } = (await holder.request(accessToken, 'pid')).body;
    await service.call('POST', '/acme/notification', {
      headers: holder.authorization(accessToken, { path: 'notification' }),
      json: { notification_id, event: 'credential_accepted' },
    });
    examples.answered['session'] = session;
    examples.answered['delivery'] = (await call('GET', `/session/${session}`)).deliveries[0].id;
    await all('retryDelivery', 'deleteSession', 'listAuditEntries', 'verifyAuditLog');
  });

  it('let users log in at another provider', async () => {
    const display = [{ name: 'Ministry of Examples', locale: 'en' }];
    await call('POST', '/issuer/config', { display, chainedAs: { upstream: world.upstream() } });
    const holder = new ChainedWallet(service, 'acme');
    const { uri } = await offered({ authorization_server: holder.server });
    examples.answered['issuer state'] = await stateOf(uri);
    for (const name of ['getChainedServerKeys', 'getChainedServerMetadata', 'getChainedServerMetadataBelowTenant']) await open(name);
    await open('createChainedChallenge');
    const proof = (path: string) => ({ DPoP: dpopProof(holder.dpopKey, `${holder.server}/${path}`) });
    const pushed = (await open('pushChainedAuthorizationRequest', { headers: proof('par') })).body;
    examples.replace(EXAMPLE_REQUEST_URI, pushed.request_uri);
    const away = await open('authorizeChained');
    const headers = { Cookie: (away.headers.get('set-cookie') ?? '').split(';')[0] ?? '' };
    const back = await world.provider.login(away.headers.get('location') ?? '');
    examples.answered['code of the provider'] = back.searchParams.get('code') ?? '';
    examples.answered['state'] = back.searchParams.get('state') ?? '';
    examples.answered['issuer of the provider'] = world.provider.issuer;
    const page = await open('returnFromUpstream', { headers });
    const [, confirmation = ''] = /name="confirmation" value="([^"]+)"/.exec(page.text) ?? [];
    examples.replace(EXAMPLE_HANDLE, confirmation);
    const decided = await open('confirmChainedWallet', { headers });
    examples.answered['authorization code'] = parameterOf(decided, 'code');
    await open('redeemChainedGrant', { headers: proof('token') });
  });

  it('request presentations of users before the issuance', async () => {
    examples.answered['issuer state'] = await stateOf((await offered({ authorization_server: wallet().issuer })).uri);
    await open('authorizeInteractively');
    const issuer = await Issuer.open();
    const { wallet: visitor, interaction: asked } = await startWebStep(issuer);
    const page = await openCustomerPage(visitor, asked);
    const back = new URL(page.searchParams.get('return_to') ?? '');
    examples.replace(EXAMPLE_HANDLE, back.searchParams.get('auth_session') ?? '');
    const headers = { Cookie: visitor.browser.cookie };
    await open('returnFromWebStep', { service: issuer.service, headers });
    await issuer.close();
  });

  it('delete everything again', async () => {
    await all('deletePresentationConfiguration', 'deleteCredentialConfiguration', 'deleteClient');
    await all('deleteCertificate', 'deleteKey', 'deleteKeyChain', 'deleteTrustList');
    await open('deleteTenant', { token: await service.rootToken() });
  });

  it('cover every operation', () => {
    expect(examples.names.filter((name) => !examples.executed.has(name))).to.deep.equal([]);
  });
});
