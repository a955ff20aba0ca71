import { expect } from 'chai';
import { Backend } from '../support/backend.ts';
import { withClockAdvanced } from '../support/chained-world.ts';
import { AUTHORIZATION_REQUEST, CLIENT_ID, dpopProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

describe('the authorization code flow', () => {
  let service: TestService;
  let backend: Backend;
  let tenant: { id: string; token: string };

  before(async () => {
    backend = await Backend.start();
    service = await startTestService();
    tenant = await createTenant(service, 'acme');
    const base = {
      config: { format: 'dc+sd-jwt', display: [{ name: 'Card <of> honour', locale: 'en' }] },
      vct: 'urn:card:1',
      claims: { name: 'Ada' },
    };
    await write({ ...base, id: 'card' });
    await write({ ...base, id: 'pass', vct: 'urn:pass:1' });
    await write({ ...base, id: 'hooked', vct: 'urn:hook:1', claimsWebhook: { url: `${backend.url}/claims` } });
    await createTenant(service, 'other');
  });
  after(async () => {
    await service.close();
    await backend.close();
  });

  const call = (method: string, path: string, json?: unknown) =>
    service.call(method, path, { token: tenant.token, ...(json === undefined ? {} : { json }) });
  const write = async (json: object) => {
    const answer = await call('POST', '/issuer/credentials', json);
    expect(answer.status, answer.text).to.equal(201);
  };
  const configure = async (more: object = {}) => {
    const answer = await call('POST', '/issuer/config', { display: [{ name: 'Acme', locale: 'en' }], ...more });
    expect(answer.status, answer.text).to.equal(201);
  };
  beforeEach(() => configure());
  const offer = async (ids: readonly string[] = ['card'], more: object = {}) => {
    const answer = await call('POST', '/issuer/offer', {
      response_type: 'uri',
      flow: 'authorization_code',
      credentialConfigurationIds: ids,
      ...more,
    });
    expect(answer.status, answer.text).to.equal(201);
    return answer.body as { uri: string; session: string };
  };
  const tokens = async (scope = 'card', uri?: string) => {
    const wallet = new RawWallet(service, 'acme');
    const requestUri = await wallet.push(uri ?? (await offer([scope])).uri, scope);
    const code = await wallet.authorize(requestUri);
    const answer = await wallet.redeemCode(code);
    expect(answer.status, answer.text).to.equal(200);
    return { wallet, code, answer, token: answer.body.access_token as string };
  };
  const errorOf = ({ status, body }: Answer) => [status, body?.error];

  it('begins with an offer in plain JSON', async () => {
    const reference = new URL((await offer()).uri).searchParams.get('credential_offer_uri') ?? '';
    const answer = await service.call('GET', reference);
    expect([answer.status, answer.headers.get('content-type')]).to.deep.equal([200, 'application/json']);
    expect(JSON.parse(answer.text)).to.have.keys(['credential_issuer', 'credential_configuration_ids', 'grants']);
  });

  it('leads from an offer and the page to a credential', async () => {
    const { uri, session } = await offer();
    const wallet = new RawWallet(service, 'acme');
    const { grants } = (await wallet.offer(uri)) as { grants: Record<string, Record<string, string>> };
    expect(Object.keys(grants)).to.deep.equal(['authorization_code']);
    expect(Object.keys(grants['authorization_code'] ?? {})).to.deep.equal(['issuer_state']);
    const issuerState = grants['authorization_code']?.['issuer_state'] ?? '';

    const pushed = await wallet.par({ issuer_state: issuerState, scope: 'card' });
    expect(pushed.status, pushed.text).to.equal(201);
    expect(pushed.headers.get('cache-control')).to.equal('no-cache, no-store');
    expect(pushed.body).to.have.keys(['request_uri', 'expires_in']);
    expect(pushed.body.expires_in).to.be.within(5, 60);

    const { request_uri } = pushed.body;
    const query = new URLSearchParams({ client_id: CLIENT_ID, request_uri });
    const page = await service.call('GET', `/acme/authorize?${query}`);
    expect([page.status, page.headers.get('content-type')]).to.deep.equal([200, 'text/html; charset=utf-8']);
    expect(page.headers.get('cache-control')).to.equal('no-store');
    expect(page.headers.get('content-security-policy')).to.include("default-src 'none'").and.not.include('script');
    expect(page.text)
      .to.include('Card &#60;of&#62; honour')
      .and.not.match(/<script|<img|<link|src=/);
    expect(page.text).to.include('id="approve"').and.include('id="deny"').and.include('lang="en"');
    const again = await service.call('GET', `/acme/authorize?${query}`);
    expect(again.status, 'a reload').to.equal(200);
    expect((await call('GET', `/session/${session}`)).body.status).to.equal('fetched');

    const decided = await wallet.decide(request_uri);
    expect(decided.status, decided.text).to.equal(303);
    const location = new URL(decided.headers.get('location') ?? '');
    expect(location.origin + location.pathname).to.equal('https://wallet.example/cb');
    expect([...location.searchParams.keys()]).to.deep.equal(['keep', 'code', 'state', 'iss']);
    expect(location.searchParams.get('state')).to.equal(AUTHORIZATION_REQUEST.state);
    expect(location.searchParams.get('iss')).to.equal(`${service.address}/acme`);

    const answer = await wallet.redeemCode(location.searchParams.get('code') ?? '');
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.headers.get('cache-control')).to.equal('no-store');
    expect(answer.headers.get('dpop-nonce')).to.be.a('string');
    expect(answer.body).to.have.keys(['access_token', 'token_type', 'expires_in', 'refresh_token', 'scope']);
    expect(answer.body).to.include({ token_type: 'DPoP', scope: 'card' });
    const issued = await wallet.request(answer.body.access_token, 'card');
    expect(issued.status, issued.text).to.equal(200);
    expect((await call('GET', `/session/${session}`)).body.status).to.equal('completed');
  });

  it('serves an offer to more than one wallet, also after the first one has finished', async () => {
    const { uri } = await offer();
    for (const what of ['first', 'second']) {
      const { wallet, token } = await tokens('card', uri);
      expect((await wallet.request(token, 'card')).status, what).to.equal(200);
    }
  });

  it('returns identifiers for authorization_details, and accepts the configuration id as well', async () => {
    const { uri } = await offer(['card', 'pass']);
    const wallet = new RawWallet(service, 'acme');
    const details = (...ids: string[]) => JSON.stringify(ids.map((id) => ({ type: 'openid_credential', credential_configuration_id: id })));
    const requestUri = await wallet.push(uri, '', { authorization_details: details('card', 'pass') });
    const answer = await wallet.redeemCode(await wallet.authorize(requestUri), { authorization_details: details('pass') });
    expect(answer.body.authorization_details).to.deep.equal([
      { type: 'openid_credential', credential_configuration_id: 'pass', credential_identifiers: ['pass'] },
    ]);
    expect(answer.body).not.to.have.property('scope');
    const { access_token, refresh_token } = answer.body;
    const uncovered = await wallet.request(access_token, 'card');
    expect(errorOf(uncovered)).to.deep.equal([403, 'insufficient_scope']);
    const issued = await wallet.request(access_token, 'pass');
    expect(issued.status, issued.text).to.equal(200);
    const refreshed = await wallet.refresh(refresh_token, { client_id: CLIENT_ID });
    expect(refreshed.body.authorization_details).to.deep.equal(answer.body.authorization_details);
    const beyond = await wallet.refresh(refreshed.body.refresh_token, { client_id: CLIENT_ID, authorization_details: details('card') });
    expect(errorOf(beyond)).to.deep.equal([400, 'invalid_authorization_details']);
  });

  it('reports the denial of the user to the wallet, and accepts no second decision', async () => {
    const wallet = new RawWallet(service, 'acme');
    const requestUri = await wallet.push((await offer()).uri, 'card');
    const denied = await wallet.decide(requestUri, 'deny');
    const location = new URL(denied.headers.get('location') ?? '');
    expect(denied.status).to.equal(303);
    expect(location.searchParams.get('error')).to.equal('access_denied');
    expect(location.searchParams.get('state')).to.equal(AUTHORIZATION_REQUEST.state);
    expect(location.searchParams.get('iss')).to.equal(`${service.address}/acme`);
    expect(location.searchParams.has('code')).to.equal(false);
    const again = await wallet.decide(requestUri);
    expect([again.status, again.headers.get('location')]).to.deep.equal([400, null]);
  });

  it('issues one code for any number of approvals', async () => {
    const wallet = new RawWallet(service, 'acme');
    const requestUri = await wallet.push((await offer()).uri, 'card');
    const answers = await Promise.all(Array.from({ length: 20 }, () => wallet.decide(requestUri)));
    expect(answers.filter(({ status }) => status === 303)).to.have.length(1);
    expect(answers.filter(({ status }) => status === 400)).to.have.length(19);
  });

  it('redeems a code once, and revokes its tokens on a second attempt', async () => {
    const { wallet, code, token, answer } = await tokens();
    expect((await wallet.request(token, 'card')).status).to.equal(200);
    expect(errorOf(await wallet.redeemCode(code))).to.deep.equal([400, 'invalid_grant']);
    expect(errorOf(await wallet.request(token, 'card'))).to.deep.equal([401, 'invalid_token']);
    const refreshed = await wallet.refresh(answer.body.refresh_token, { client_id: CLIENT_ID });
    expect(errorOf(refreshed)).to.deep.equal([400, 'invalid_grant']);
  });

  it('redeems a code for one of many concurrent callers', async () => {
    const wallet = new RawWallet(service, 'acme');
    const code = await wallet.authorize(await wallet.push((await offer()).uri, 'card'));
    const answers = await Promise.all(Array.from({ length: 30 }, () => wallet.redeemCode(code)));
    expect(answers.filter(({ status }) => status === 200)).to.have.length(1);
    for (const answer of answers.filter(({ status }) => status !== 200)) {
      expect(errorOf(answer)).to.deep.equal([400, 'invalid_grant']);
    }
  });

  describe('an error page', () => {
    const onPage = async (what: string, path: string) => {
      const answer = await service.call('GET', path);
      expect([answer.status, answer.headers.get('location')], what).to.deep.equal([400, null]);
      expect(answer.headers.get('content-type'), what).to.include('text/html');
    };

    it('is the answer to every untrusted request, never a redirect', async () => {
      const wallet = new RawWallet(service, 'acme');
      const requestUri = await wallet.push((await offer()).uri, 'card');
      const query = (entries: Record<string, string>) => new URLSearchParams(entries).toString();
      const raw = { ...AUTHORIZATION_REQUEST, scope: 'card' };
      await onPage('a request without PAR', `/acme/authorize?${query(raw)}`);
      await onPage('an empty request', '/acme/authorize');
      await onPage('a request_uri of another client', `/acme/authorize?${query({ client_id: 'x', request_uri: requestUri })}`);
      await onPage('a request without client_id', `/acme/authorize?${query({ request_uri: requestUri })}`);
      const unknown = 'urn:ietf:params:oauth:request_uri:nothing';
      await onPage('an unknown request_uri', `/acme/authorize?${query({ client_id: CLIENT_ID, request_uri: unknown })}`);
      const cut = requestUri.slice(0, -1);
      await onPage('a request_uri with a wrong secret', `/acme/authorize?${query({ client_id: CLIENT_ID, request_uri: cut })}`);
      const both = query({ client_id: CLIENT_ID, request_uri: requestUri });
      await onPage('a request_uri of another tenant', `/other/authorize?${both}`);
      expect((await service.call('GET', `/acme/authorize?${both}&redirect_uri=https://evil.example`)).status).to.equal(200);
      const decided = await wallet.decide(requestUri);
      expect(decided.headers.get('location')).to.match(/^https:\/\/wallet\.example\//);
    });

    it('must be opened before it can be submitted', async () => {
      const wallet = new RawWallet(service, 'acme');
      const [one, other] = [await wallet.push((await offer()).uri, 'card'), await wallet.push((await offer()).uri, 'card')];
      const seen = await service.call('GET', `/acme/authorize?${new URLSearchParams({ client_id: CLIENT_ID, request_uri: other })}`);
      const [, foreign = ''] = /name="decision_token" value="([^"]+)"/.exec(seen.text) ?? [];
      for (const decision_token of ['', 'guessed', foreign]) {
        const form = { client_id: CLIENT_ID, request_uri: one, decision: 'approve', decision_token };
        const answer = await service.call('POST', '/acme/authorize', { form });
        expect([answer.status, answer.headers.get('location')]).to.deep.equal([400, null]);
      }
      expect((await wallet.decide(one, 'perhaps')).status).to.equal(400);
      expect((await wallet.decide(one)).status, 'none of that counted').to.equal(303);
    });
  });

  describe('an authorization request without an offer', () => {
    it('is rejected unless the tenant allows it', async () => {
      const wallet = new RawWallet(service, 'acme');
      expect(errorOf(await wallet.par({ scope: 'card' }))).to.deep.equal([400, 'invalid_request']);
      await configure({ builtInAs: { walletInitiated: true } });
      const pushed = await wallet.par({ scope: 'card' });
      expect(pushed.status, pushed.text).to.equal(201);
      const answer = await wallet.redeemCode(await wallet.authorize(pushed.body.request_uri));
      const issued = await wallet.request(answer.body.access_token, 'card');
      expect(issued.status, issued.text).to.equal(200);
      const [, claims = ''] = answer.body.access_token.split('.');
      const { issuer_state } = JSON.parse(Buffer.from(claims, 'base64url').toString());
      const offered = await service.call('GET', `/acme/credential-offer/${issuer_state}`);
      expect([typeof issuer_state, offered.status], 'nothing was offered').to.deep.equal(['string', 404]);
    });

    it('does not accept a pre-authorized offer as its own', async () => {
      const preAuthorized = await offer(['card'], { flow: 'pre_authorized_code', tx_code: '123456' });
      const wallet = new RawWallet(service, 'acme');
      const publicId = new URL(new URL(preAuthorized.uri).searchParams.get('credential_offer_uri') ?? '').pathname.split('/').at(-1);
      const answer = await wallet.par({ scope: 'card', issuer_state: publicId ?? '' });
      expect(errorOf(answer)).to.deep.equal([400, 'invalid_request']);
    });
  });

  describe('a refresh token', () => {
    const form = { client_id: CLIENT_ID };

    it('stays the same after any number of uses', async () => {
      const { wallet, answer } = await tokens();
      const token = answer.body.refresh_token;
      for (const _ of [1, 2, 3]) {
        const { status, body, text } = await wallet.refresh(token, form);
        expect([status, body.refresh_token], text).to.deep.equal([200, token]);
        expect((await wallet.request(body.access_token, 'card')).status).to.equal(200);
      }
    });

    it('is bound to the key of a public wallet and to its client', async () => {
      const { wallet, answer } = await tokens();
      const token = answer.body.refresh_token;
      const other = dpopProof(newKey(), `${wallet.issuer}/token`);
      expect(errorOf(await wallet.refresh(token, form, { DPoP: other }))).to.deep.equal([400, 'invalid_grant']);
      const stranger = { client_id: 'https://other.example' };
      expect(errorOf(await wallet.refresh(token, stranger))).to.deep.equal([400, 'invalid_grant']);
      expect(errorOf(await wallet.refresh(token, form, {}))).to.deep.equal([400, 'invalid_dpop_proof']);
      for (const last of ['A', 'B']) {
        // One of the two may spell the same bytes as the token: that is refused as well.
        const changed = `${token.slice(0, -1)}${last}`;
        if (changed === token) continue;
        expect(errorOf(await wallet.refresh(changed, form))).to.deep.equal([400, 'invalid_grant']);
      }
      expect((await wallet.refresh(token, form)).status, 'none of that counted').to.equal(200);
    });

    it('is refreshed once for many concurrent callers', async () => {
      const { wallet, answer } = await tokens();
      const token = answer.body.refresh_token;
      const answers = await Promise.all(Array.from({ length: 20 }, () => wallet.refresh(token, form)));
      expect(answers.map(({ status }) => status)).to.deep.equal(Array(20).fill(200));
      expect(new Set(answers.map(({ body }) => body.refresh_token)).size).to.equal(1);
    });

    it('expires on time, and is rejected once the tenant issues no refresh tokens', async () => {
      await configure({ refreshTokenSeconds: 100 });
      const { wallet, answer } = await tokens();
      const kept = await tokens();
      expect((await kept.wallet.refresh(kept.answer.body.refresh_token, form)).status).to.equal(200);
      await withClockAdvanced(101, async () => {
        expect(errorOf(await wallet.refresh(answer.body.refresh_token, form))).to.deep.equal([400, 'invalid_grant']);
        const { access_token } = answer.body;
        expect((await wallet.request(access_token, 'card')).status, 'the access token lives on').to.equal(200);
      });
      await configure();
      const withoutRefresh = await tokens();
      await configure({ refreshTokenSeconds: 0 });
      expect(errorOf(await withoutRefresh.wallet.refresh(withoutRefresh.answer.body.refresh_token, form))).to.deep.equal([
        400,
        'invalid_grant',
      ]);
    });

    it('returns its part of the scope', async () => {
      const { uri } = await offer(['card', 'pass']);
      const wallet = new RawWallet(service, 'acme');
      const code = await wallet.authorize(await wallet.push(uri, 'card pass'));
      const whole = (await wallet.redeemCode(code)).body;
      expect(whole.scope).to.equal('card pass');
      const less = (await wallet.refresh(whole.refresh_token, { ...form, scope: 'pass' })).body;
      expect(less.scope).to.equal('pass');
      const claims = JSON.parse(Buffer.from(less.access_token.split('.')[1], 'base64url').toString());
      expect(claims.scope).to.equal('pass');
    });

    it('does not widen the scope', async () => {
      const { uri } = await offer(['card', 'pass']);
      const wallet = new RawWallet(service, 'acme');
      const code = await wallet.authorize(await wallet.push(uri, 'card'));
      const { refresh_token } = (await wallet.redeemCode(code)).body;
      const wider = await wallet.refresh(refresh_token, { ...form, scope: 'card pass' });
      expect(errorOf(wider)).to.deep.equal([400, 'invalid_scope']);
      expect((await wallet.refresh(refresh_token, { ...form, scope: 'card' })).status).to.equal(200);
    });

    it('is issued with a pre-authorized code as well, unless the tenant disables it', async () => {
      const { uri } = await offer(['card'], { flow: 'pre_authorized_code' });
      const wallet = new RawWallet(service, 'acme');
      const { refresh_token } = (await wallet.redeem(await wallet.code(uri))).body;
      const refreshed = await wallet.refresh(refresh_token);
      expect(refreshed.status, refreshed.text).to.equal(200);
      expect((await wallet.request(refreshed.body.access_token, 'card')).status).to.equal(200);
      await configure({ refreshTokenSeconds: 0 });
      expect((await tokens()).answer.body).not.to.have.property('refresh_token');
    });
  });

  describe('DPoP nonces', () => {
    const proof = (wallet: RawWallet, nonce?: string) =>
      dpopProof(wallet.dpopKey, `${wallet.issuer}/token`, nonce === undefined ? {} : { payload: { nonce } });

    it('are required at the authorization server and at the issuer if the tenant requires them', async () => {
      await configure({ dPopNonce: 'required' });
      const wallet = new RawWallet(service, 'acme');
      const code = await wallet.authorize(await wallet.push((await offer()).uri, 'card'));
      const told = await wallet.redeemCode(code, {}, { DPoP: proof(wallet) });
      expect(errorOf(told)).to.deep.equal([400, 'use_dpop_nonce']);
      const nonce = told.headers.get('dpop-nonce') ?? '';
      expect(nonce).to.match(/^[A-Za-z0-9_-]{20,}$/);
      const answer = await wallet.redeemCode(code, {}, { DPoP: proof(wallet, nonce) });
      expect(answer.status, answer.text).to.equal(200);
      const token = answer.body.access_token;
      const body = { credential_configuration_id: 'card' };
      const bare = await wallet.request(token, 'card', { body });
      expect(errorOf(bare)).to.deep.equal([401, 'use_dpop_nonce']);
      expect(bare.headers.get('www-authenticate')).to.include('use_dpop_nonce');
      const resource = bare.headers.get('dpop-nonce') ?? '';
      const foreign = wallet.authorization(token, { payload: { nonce } });
      expect(errorOf(await wallet.request(token, 'card', { headers: foreign }))).to.deep.equal([401, 'use_dpop_nonce']);
      const headers = wallet.authorization(token, { payload: { nonce: resource } });
      expect((await wallet.request(token, 'card', { headers })).status).to.equal(200);
    });

    it('are rejected if they are old or invented, also where optional, and ignored where disabled', async () => {
      const wallet = new RawWallet(service, 'acme');
      const code = await wallet.authorize(await wallet.push((await offer()).uri, 'card'));
      const invented = await wallet.redeemCode(code, {}, { DPoP: proof(wallet, 'invented') });
      expect(errorOf(invented)).to.deep.equal([400, 'use_dpop_nonce']);
      await configure({ dPopNonce: 'off' });
      const answer = await wallet.redeemCode(code, {}, { DPoP: proof(wallet, 'invented') });
      expect([answer.status, answer.headers.get('dpop-nonce')]).to.deep.equal([200, null]);
    });
  });

  it('passes the identity of the token to the claims webhook', async () => {
    backend.clearCalls();
    backend.on('/claims', { json: { hooked: { name: 'Ada' } } });
    const { wallet, token } = await tokens('hooked');
    expect((await wallet.request(token, 'hooked')).status).to.equal(200);
    const [told] = backend.callsTo('/claims');
    const payload = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
    expect(told?.body.identity).to.deep.equal({ iss: `${service.address}/acme`, sub: payload.sub, token_claims: payload });
    expect(told?.body.credentials).to.deep.equal([]);
  });

  it('binds the code to the key that pushed the request', async () => {
    const { uri } = await offer();
    const wallet = new RawWallet(service, 'acme');
    const stranger = newKey();
    const push = async () => {
      const { grants } = (await wallet.offer(uri)) as { grants: Record<string, Record<string, string>> };
      const form = { scope: 'card', issuer_state: grants['authorization_code']?.['issuer_state'] ?? '' };
      return wallet.par(form, { DPoP: dpopProof(wallet.dpopKey, `${wallet.issuer}/par`) });
    };
    const code = await wallet.authorize((await push()).body.request_uri);
    const stolen = { DPoP: dpopProof(stranger, `${wallet.issuer}/token`) };
    expect(errorOf(await wallet.redeemCode(code, {}, stolen))).to.deep.equal([400, 'invalid_grant']);
    expect((await wallet.redeemCode(code)).status).to.equal(200);
  });
});
