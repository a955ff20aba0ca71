import { expect } from 'chai';
import { ChainedWallet, ChainedWorld } from '../support/chained-world.ts';
import { createResource, offerBody } from '../support/populated.ts';
import { dpopProof, RawWallet } from '../support/raw-wallet.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

describe('challenge endpoint', () => {
  let service: TestService;

  before(async () => {
    service = await startTestService();
    await createTenant(service, 'acme');
  });
  after(() => service.close());

  it('returns one challenge and nothing else, uncacheable', async () => {
    const { status, headers, body } = await service.call('POST', '/acme/challenge');
    expect(status).to.equal(200);
    expect(headers.get('content-type')).to.match(/^application\/json/);
    expect(headers.get('cache-control')).to.equal('no-store');
    expect(Object.keys(body)).to.deep.equal(['attestation_challenge']);
    expect(body.attestation_challenge).to.match(/^[A-Za-z0-9_-]{16,512}$/);
  });

  it('returns a different challenge each time', async () => {
    const challenges = await Promise.all(Array.from({ length: 5 }, async () => (await service.call('POST', '/acme/challenge')).body));
    expect(new Set(challenges.map((body) => body.attestation_challenge)).size).to.equal(5);
  });

  it('ignores the content of the request', async () => {
    const headers = { 'Content-Type': 'application/json', Authorization: 'Bearer nonsense' };
    expect((await service.call('POST', '/acme/challenge', { headers, text: '{' })).status).to.equal(200);
  });

  it('accepts POST for existing tenants', async () => {
    const challenge = await service.call('GET', '/acme/challenge');
    expect([challenge.status, challenge.headers.get('allow')]).to.deep.equal([405, 'POST']);
    expect((await service.call('POST', '/no-such-tenant/challenge')).status).to.equal(404);
  });
});

const NONCE = /^[A-Za-z0-9_-]{20,}$/;
const nonceOf = ({ headers }: Answer) => headers.get('dpop-nonce') ?? '';

describe('DPoP nonces in advance', () => {
  let world: ChainedWorld;
  let token: string;
  before(async () => {
    world = await ChainedWorld.start(['acme']);
    ({ token } = await world.createIssuingTenant('acme'));
  });
  after(() => world.close());

  const configure = (dPopNonce: string) => world.configure(token, { upstream: world.upstream() }, { dPopNonce });
  const call = (path: string) => world.service.call('POST', path);
  const authorizationForm = async (wallet: RawWallet) => {
    const body = { ...offerBody('card'), flow: 'authorization_code', authorization_server: wallet.issuer };
    const { uri } = await createResource(world.service, token, '/issuer/offer', body);
    const { grants } = (await wallet.offer(uri)) as { grants: { authorization_code: { issuer_state: string } } };
    return { issuer_state: grants.authorization_code.issuer_state, scope: 'card' };
  };

  it('are in the responses to a pushed request and of the nonce endpoint, so that no request is repeated', async () => {
    await configure('required');
    const wallet = new RawWallet(world.service, 'acme');
    const pushResponse = await wallet.par(await authorizationForm(wallet));
    expect(nonceOf(pushResponse), pushResponse.text).to.match(NONCE);
    const code = await wallet.authorize(pushResponse.body.request_uri);
    const proof = dpopProof(wallet.dpopKey, `${wallet.issuer}/token`, { payload: { nonce: nonceOf(pushResponse) } });
    const answer = await wallet.redeemCode(code, {}, { DPoP: proof });
    expect(answer.status, answer.text).to.equal(200);

    const nonceResponse = await call('/acme/nonce');
    expect(nonceOf(nonceResponse)).to.match(NONCE);
    expect(nonceResponse.body).to.have.keys(['c_nonce']);
    const { access_token } = answer.body;
    const headers = wallet.authorization(access_token, { payload: { nonce: nonceOf(nonceResponse) } });
    const credentialResponse = await wallet.request(access_token, 'card', { headers, nonce: nonceResponse.body.c_nonce });
    expect(credentialResponse.status, credentialResponse.text).to.equal(200);
  });

  it('belong to the server that answered and not to another', async () => {
    await configure('required');
    const wallet = new RawWallet(world.service, 'acme');
    const { uri } = await createResource(world.service, token, '/issuer/offer', offerBody('card'));
    const code = await wallet.code(uri);
    const redeemWith = (nonce: string) =>
      wallet.redeem(code, {}, { DPoP: dpopProof(wallet.dpopKey, `${wallet.issuer}/token`, { payload: { nonce } }) });
    // The nonce endpoint of the issuer returns nonces for the issuer only, not for its authorization server.
    const rejection = await redeemWith(nonceOf(await call('/acme/nonce')));
    expect([rejection.status, rejection.body.error]).to.deep.equal([400, 'use_dpop_nonce']);
    expect((await redeemWith(nonceOf(rejection))).status).to.equal(200);
  });

  it('come from the chained server as well', async () => {
    await configure('required');
    const wallet = new ChainedWallet(world.service, 'acme');
    const { issuer_state } = await world.offer(token, wallet, 'card', { authorization_server: wallet.server });
    const pushResponse = await wallet.par({ issuer_state, scope: 'card' }, {});
    expect(pushResponse.status, pushResponse.text).to.equal(201);
    expect(nonceOf(pushResponse)).to.match(NONCE);
    const secondResponse = await wallet.par(
      { issuer_state, scope: 'card' },
      { DPoP: dpopProof(wallet.dpopKey, `${wallet.server}/par`, { payload: { nonce: nonceOf(pushResponse) } }) },
    );
    expect(secondResponse.status, secondResponse.text).to.equal(201);
  });

  it('are omitted when the tenant uses none', async () => {
    await configure('off');
    const wallet = new RawWallet(world.service, 'acme');
    const pushResponse = await wallet.par(await authorizationForm(wallet));
    expect([pushResponse.status, nonceOf(pushResponse), nonceOf(await call('/acme/nonce'))]).to.deep.equal([201, '', '']);
  });
});
