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
    const got = await service.call('GET', '/acme/challenge');
    expect([got.status, got.headers.get('allow')]).to.deep.equal([405, 'POST']);
    expect((await service.call('POST', '/nobody/challenge')).status).to.equal(404);
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
  const offered = async (wallet: RawWallet) => {
    const body = { ...offerBody('card'), flow: 'authorization_code', authorization_server: wallet.issuer };
    const { uri } = await createResource(world.service, token, '/issuer/offer', body);
    const { grants } = (await wallet.offer(uri)) as { grants: { authorization_code: { issuer_state: string } } };
    return { issuer_state: grants.authorization_code.issuer_state, scope: 'card' };
  };

  it('are in the answers to a pushed request and of the nonce endpoint, so that no request is repeated', async () => {
    await configure('required');
    const wallet = new RawWallet(world.service, 'acme');
    const pushed = await wallet.par(await offered(wallet));
    expect(nonceOf(pushed), pushed.text).to.match(NONCE);
    const code = await wallet.authorize(pushed.body.request_uri);
    const proof = dpopProof(wallet.dpopKey, `${wallet.issuer}/token`, { payload: { nonce: nonceOf(pushed) } });
    const answer = await wallet.redeemCode(code, {}, { DPoP: proof });
    expect(answer.status, answer.text).to.equal(200);

    const asked = await call('/acme/nonce');
    expect(nonceOf(asked)).to.match(NONCE);
    expect(asked.body).to.have.keys(['c_nonce']);
    const { access_token } = answer.body;
    const headers = wallet.authorization(access_token, { payload: { nonce: nonceOf(asked) } });
    const issued = await wallet.request(access_token, 'card', { headers, nonce: asked.body.c_nonce });
    expect(issued.status, issued.text).to.equal(200);
  });

  it('belong to the server that answered and not to another', async () => {
    await configure('required');
    const wallet = new RawWallet(world.service, 'acme');
    const { uri } = await createResource(world.service, token, '/issuer/offer', offerBody('card'));
    const code = await wallet.code(uri);
    const redeem = (nonce: string) =>
      wallet.redeem(code, {}, { DPoP: dpopProof(wallet.dpopKey, `${wallet.issuer}/token`, { payload: { nonce } }) });
    // The endpoint of the issuer gives nonces for its own requests, not for those of its server.
    const refused = await redeem(nonceOf(await call('/acme/nonce')));
    expect([refused.status, refused.body.error]).to.deep.equal([400, 'use_dpop_nonce']);
    expect((await redeem(nonceOf(refused))).status).to.equal(200);
  });

  it('come from the chained server as well', async () => {
    await configure('required');
    const wallet = new ChainedWallet(world.service, 'acme');
    const { issuer_state } = await world.offer(token, wallet, 'card', { authorization_server: wallet.server });
    const pushed = await wallet.par({ issuer_state, scope: 'card' }, {});
    expect(pushed.status, pushed.text).to.equal(201);
    expect(nonceOf(pushed)).to.match(NONCE);
    const again = await wallet.par(
      { issuer_state, scope: 'card' },
      { DPoP: dpopProof(wallet.dpopKey, `${wallet.server}/par`, { payload: { nonce: nonceOf(pushed) } }) },
    );
    expect(again.status, again.text).to.equal(201);
  });

  it('are omitted when the tenant uses none', async () => {
    await configure('off');
    const wallet = new RawWallet(world.service, 'acme');
    const pushed = await wallet.par(await offered(wallet));
    expect([pushed.status, nonceOf(pushed), nonceOf(await call('/acme/nonce'))]).to.deep.equal([201, '', '']);
  });
});
