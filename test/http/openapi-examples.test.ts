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

/** One tenant from its first call to its last; each part continues where the previous one stopped. */
describe('The examples of the API document', () => {
  let world: ChainedWorld;
  let service: TestService;
  let registrar: TestRegistrar;
  let examples: ExampleCalls;
  let token: string;
  let heldCredential: HeldCredential;
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
  /** Calls without an access token, for example by a wallet. */
  const runOpen = (name: string, calling: ExampleCallOptions = {}) => examples.run(name, calling);
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
      await runOpen(name);
    examples.answered['ticket of the printed link'] = service.service.container.get(ConsoleTickets).issue();
    await runOpen('logInToConsole');
  });

  it('create a tenant and its clients', async () => {
    const root = await service.rootToken();
    const { body } = await runOpen('createTenant', { token: root });
    examples.answered['client secret'] = body.clients[0].secret;
    ({ access_token: token } = (await runOpen('createAccessToken')).body);
    examples.answered['access token'] = token;
    for (const name of ['listTenants', 'listTenantRemovals', 'getTenant', 'updateTenant', 'listSettings'])
      await runOpen(name, { token: root });
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
    for (const name of ['fetchRevocationList', 'fetchAuthorityCertificate']) await runOpen(name);
  });

  it('create its lists', async () => {
    await all('getStatusListDefaults', 'replaceStatusListDefaults', 'listStatusLists');
    examples.answered['status list'] = (await run('createStatusList')).body.id;
    await all('getStatusList', 'updateStatusList');
    for (const name of ['fetchStatusList', 'fetchStatusListAggregation', 'showPresentedPage']) await runOpen(name);
    await run('deleteStatusList');
    await all('createTrustList', 'listTrustLists', 'getTrustList', 'exportTrustList', 'replaceTrustList');
    await run('updateTrustList');
    const { body } = await run('listTrustListVersions');
    examples.answered['version'] = body[0].id;
    await run('getTrustListVersion');
    await runOpen('fetchTrustList');
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
    for (const name of ['getIssuerMetadata', 'getIssuerMetadataBelowTenant', 'getServerMetadata']) await runOpen(name);
    for (const name of ['getServerMetadataBelowTenant', 'getServerKeys']) await runOpen(name);
    const config = { format: 'dc+sd-jwt', display: [{ name: 'Badge', locale: 'en' }] };
    const vct = { name: 'Badge' };
    await call('POST', '/issuer/credentials', { id: 'badge', config, vct, schema: { type: 'object' } });
    examples.answered['type'] = 'badge';
    for (const name of ['getTypeMetadata', 'getCredentialSchema']) await runOpen(name);
  });

  it('order certificates from a registrar', async () => {
    // The registrar of the example does not exist.
    const login = { registrarUrl: `${registrar.url}/api`, oidcUrl: registrar.url };
    examples.replace('https://registrar.example/api', login.registrarUrl);
    examples.replace('https://login.registrar.example/realms/relying-parties', login.oidcUrl);
    registrar.password = 'the password of the account';
    await all('replaceRegistrarConfiguration', 'getRegistrarConfiguration');
    registrar.password = 'the new password of the account';
    await all('updateRegistrarConfiguration', 'orderAccessCertificate', 'orderRegistrationCertificate');
    await run('deleteRegistrarConfiguration');
  });

  /** Creates an offer that is not an example. */
  const createOffer = async (overrides: object = {}) => call('POST', '/issuer/offer', { ...CODE_FLOW, ...overrides });
  const issuerStateOf = async (uri: string) => {
    const { grants } = (await wallet().offer(uri)) as { grants: { authorization_code: { issuer_state: string } } };
    return grants.authorization_code.issuer_state;
  };

  it('issue a credential', async () => {
    const createdOffer = (await run('createOffer')).body;
    examples.answered['session'] = createdOffer.session;
    examples.answered['offer'] = lastSegment(new URL(createdOffer.uri).searchParams.get('credential_offer_uri'));
    examples.answered['page'] = lastSegment(createdOffer.pageUrl);
    await runOpen('fetchCredentialOffer');
    await runOpen('showOfferPage');
    const { uri, session } = await createOffer();
    examples.answered['issuer state'] = await issuerStateOf(uri);
    await runOpen('createAttestationChallenge');
    const pushResponse = (await runOpen('pushAuthorizationRequest')).body;
    examples.replace(EXAMPLE_REQUEST_URI, pushResponse.request_uri);
    const page = await runOpen('authorize');
    examples.answered['decision token'] = /name="decision_token" value="([^"]+)"/.exec(page.text)?.[1] ?? '';
    const cookie = (page.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
    const decision = await runOpen('decideAuthorization', { headers: { Cookie: cookie } });
    examples.answered['authorization code'] = parameterOf(decision, 'code');
    const holder = wallet();
    const headers = { DPoP: dpopProof(holder.dpopKey, `${holder.issuer}/token`) };
    const { access_token } = (await runOpen('redeemGrant', { headers })).body;
    const key = newKey();
    const nonce = (await runOpen('createNonce')).body.c_nonce;
    examples.answered['proof'] = keyProof(key, holder.issuer, nonce);
    const credentialResponse = (await runOpen('requestCredential', { headers: holder.authorization(access_token) })).body;
    examples.answered['notification'] = credentialResponse.notification_id;
    await runOpen('notifyIssuer', { headers: holder.authorization(access_token, { path: 'notification' }) });
    heldCredential = { text: credentialResponse.credentials[0].credential, holder: key, session };
    await run('listSessions');
  });

  it('promise a deferred credential', async () => {
    const json = { deferred: true, interval: 1 };
    world.backend.on('/later', (response) => response.end(JSON.stringify(json)));
    const webhook = { url: `${world.backend.url}/later` };
    const createDeferred = async () => {
      const holder = wallet();
      const credentialClaims = { pid: { type: 'webhook', webhook } };
      const { uri, session } = await createOffer({ flow: 'pre_authorized_code', credentialClaims });
      const accessToken = await holder.accessToken(uri);
      const { body } = await holder.request(accessToken, 'pid');
      examples.answered['transaction'] = body.transaction_id;
      examples.answered['session'] = session;
      const headers = (path: string, method?: string) =>
        holder.authorization(accessToken, { path, ...(method !== undefined && { method, url: `${service.address}/${path}` }) });
      return headers;
    };
    const first = await createDeferred();
    await all('listDeferredTransactions', 'getDeferredTransaction', 'completeDeferredTransaction');
    await runOpen('requestDeferredCredential', { headers: first('deferred_credential') });
    const second = await createDeferred();
    await run('completeDeferredTransaction');
    await runOpen('pollDeferredCredential', { headers: second('deferred_credential', 'GET') });
    await createDeferred();
    await run('failDeferredTransaction');
  });

  it('verify the credential', async () => {
    const createdRequest = (await run('createPresentationRequest')).body;
    const requestUrl = (link: string) => new URL(link).searchParams.get('request_uri') ?? '';
    examples.answered['request'] = lastSegment(requestUrl(createdRequest.crossDeviceUri).replace(/\/cross-device$/, ''));
    await runOpen('fetchCrossDeviceRequest');
    await runOpen('fetchCrossDeviceRequestForWallet');
    examples.answered['request'] = lastSegment(requestUrl(createdRequest.uri));
    await runOpen('fetchPresentationRequest');
    const requestObject = decode((await runOpen('fetchPresentationRequestForWallet')).text);
    const vp_token = { pid: [bindToRequest(requestObject, heldCredential)] };
    examples.answered['encrypted response'] = await encryptResponse(requestObject, { vp_token, state: requestObject.payload['state'] });
    const { redirect_uri } = (await runOpen('respondToPresentationRequest')).body;
    examples.answered['session'] = createdRequest.session;
    examples.answered['response code'] = new URL(redirect_uri).searchParams.get('response_code') ?? '';
    expect((await run('getSession')).body.status).to.equal('completed');
    const ofPage = await call('POST', '/verifier/offer', { response_type: 'dc-api', requestId: 'name-check' });
    examples.answered['request'] = lastSegment(ofPage.uri);
    for (const name of ['fetchDigitalCredentialRequests', 'respondToDigitalCredentialRequest']) await runOpen(name);
    await run('tryPresentation');
    await run('updatePresentationConfiguration');
  });

  it('revoke the credential and end sessions', async () => {
    examples.answered['session'] = heldCredential.session;
    await run('revokeCredentials');
    await run('listSessionStatuses');
    await run('countSessions');
    await run('revokeCredentialsBySubject');
    examples.answered['session'] = (await createOffer()).session;
    await all('showSession', 'cancelSession', 'watchSession');
    const holder = wallet();
    const notifyWebhook = { url: 'http://127.0.0.1:9/no-server' };
    const { uri, session } = await createOffer({ flow: 'pre_authorized_code', notifyWebhook });
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
    const { uri } = await createOffer({ authorization_server: holder.server });
    examples.answered['issuer state'] = await issuerStateOf(uri);
    for (const name of ['getChainedServerKeys', 'getChainedServerMetadata', 'getChainedServerMetadataBelowTenant']) await runOpen(name);
    await runOpen('createChainedChallenge');
    const proof = (path: string) => ({ DPoP: dpopProof(holder.dpopKey, `${holder.server}/${path}`) });
    const pushResponse = (await runOpen('pushChainedAuthorizationRequest', { headers: proof('par') })).body;
    examples.replace(EXAMPLE_REQUEST_URI, pushResponse.request_uri);
    const redirect = await runOpen('authorizeChained');
    const headers = { Cookie: (redirect.headers.get('set-cookie') ?? '').split(';')[0] ?? '' };
    const callbackUrl = await world.provider.login(redirect.headers.get('location') ?? '');
    examples.answered['code of the provider'] = callbackUrl.searchParams.get('code') ?? '';
    examples.answered['state'] = callbackUrl.searchParams.get('state') ?? '';
    examples.answered['issuer of the provider'] = world.provider.issuer;
    const page = await runOpen('returnFromUpstream', { headers });
    const [, confirmation = ''] = /name="confirmation" value="([^"]+)"/.exec(page.text) ?? [];
    examples.replace(EXAMPLE_HANDLE, confirmation);
    const decision = await runOpen('confirmChainedWallet', { headers });
    examples.answered['authorization code'] = parameterOf(decision, 'code');
    await runOpen('redeemChainedGrant', { headers: proof('token') });
  });

  it('request presentations of users before the issuance', async () => {
    examples.answered['issuer state'] = await issuerStateOf((await createOffer({ authorization_server: wallet().issuer })).uri);
    await runOpen('authorizeInteractively');
    const issuer = await Issuer.open();
    const { wallet: visitorWallet, interaction: asked } = await startWebStep(issuer);
    const page = await openCustomerPage(visitorWallet, asked);
    const returnUrl = new URL(page.searchParams.get('return_to') ?? '');
    examples.replace(EXAMPLE_HANDLE, returnUrl.searchParams.get('auth_session') ?? '');
    const headers = { Cookie: visitorWallet.browser.cookie };
    await runOpen('returnFromWebStep', { service: issuer.service, headers });
    await issuer.close();
  });

  it('delete everything again', async () => {
    await all('deletePresentationConfiguration', 'deleteCredentialConfiguration', 'deleteClient');
    await all('deleteCertificate', 'deleteKey', 'deleteKeyChain', 'deleteTrustList');
    await runOpen('deleteTenant', { token: await service.rootToken() });
  });

  it('cover every operation', () => {
    expect(examples.names.filter((name) => !examples.executed.has(name))).to.deep.equal([]);
  });
});
