import { createHash } from 'node:crypto';
import { expect } from 'chai';
import sinon from 'sinon';
import { hashTxCode } from '../../../application/oauth/redeem-grant.ts';
import { OfferRequest } from '../../../domain/issuance/offer.ts';
import type { IssuanceRequest } from '../../../domain/sessions/session.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { UPSTREAM } from '../../support/fake-authorization-servers.ts';
import { rememberedCaller } from '../../support/remembered-caller.ts';
import { ACME, PUBLIC_URL } from '../verification-flow/kit.ts';
import { anOffer } from '../wallet.ts';
import { endOf, failureOf, WalletWorld } from '../wallet-kit.ts';

const ISSUER = `${PUBLIC_URL}/acme`;
const WEBHOOK = { url: 'https://backend.example/claims' };

let world: WalletWorld;

const all = () => world.store.read(ACME).sessions({ kinds: [], ascending: true, limit: 100 });

describe('CreateOffer', () => {
  before(async () => {
    world = await WalletWorld.open();
    await world.issues({ chainedAs: { upstream: { issuer: UPSTREAM, clientId: 'vidimus' } } });
    const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
    await world.offers({ id: 'strict', schema });
    await world.offers({ id: 'empty', schema, claims: {} });
    await world.offers({ id: 'hooked', claims: null, claimsWebhook: WEBHOOK });
    const iaeActions = [{ type: 'redirect_to_web', url: 'https://shop.example/page' }];
    await world.offers({ id: 'visitor', iaeActions });
  });
  afterEach(() => sinon.restore());

  const body = (changes: object = {}) =>
    OfferRequest.parse({
      response_type: 'uri',
      flow: 'pre_authorized_code',
      credentialConfigurationIds: ['card'],
      ...changes,
    });
  const offer = async (changes: object = {}, allowed: readonly string[] | null = null) =>
    world.createOffer.execute(
      rememberedCaller({ ...(await world.caller()), allowedIssuanceConfigs: allowed }),
      body(changes),
    );

  const refusals: readonly [what: string, changes: object, path: string][] = [
    ['an unknown configuration', { credentialConfigurationIds: ['none'] }, 'credentialConfigurationIds.0'],
    [
      'one that stands twice',
      { credentialConfigurationIds: ['card', 'card'] },
      'credentialConfigurationIds.1',
    ],
    ['a code for what needs an interaction', { credentialConfigurationIds: ['visitor'] }, 'flow'],
    ['a transaction code without its flow', { flow: 'authorization_code', tx_code: '1234' }, 'tx_code'],
    ['words about no transaction code', { tx_code_description: 'by post' }, 'tx_code_description'],
    [
      'claims of something else',
      { credentialClaims: { strict: { type: 'inline', claims: { name: 'Eve' } } } },
      'credentialClaims.strict',
    ],
    ['a server of somebody', { authorization_server: 'https://else.example' }, 'authorization_server'],
    [
      'a code for the chained server',
      { authorization_server: `${ISSUER}/chained-as` },
      'authorization_server',
    ],
    [
      'claims that do not fit the schema',
      {
        credentialConfigurationIds: ['strict'],
        credentialClaims: { strict: { type: 'inline', claims: { name: 7 } } },
      },
      'credentialClaims.strict.claims.name',
    ],
    [
      'claims that belong to the issuer',
      { credentialClaims: { card: { type: 'inline', claims: { name: 'Ada', iss: 'me' } } } },
      'credentialClaims.card.claims.iss',
    ],
    [
      'a configuration whose own claims do not fit',
      { credentialConfigurationIds: ['empty'] },
      'credentialConfigurationIds.0',
    ],
  ];
  for (const [what, changes, path] of refusals) {
    it(`refuses ${what} and says where`, async () => {
      const before = await all();
      const { code, details } = await failureOf(offer(changes));
      expect([code, details.errors?.map((error) => error.path)]).to.deep.equal(['invalid_input', [path]]);
      expect(await all(), 'what is stored').to.deep.equal(before);
    });
  }

  const addresses: readonly [path: string, changes: object][] = [
    [
      'credentialClaims.card.webhook.url',
      { credentialClaims: { card: { type: 'webhook', webhook: WEBHOOK } } },
    ],
    ['notifyWebhook.url', { notifyWebhook: WEBHOOK }],
  ];
  for (const [path, changes] of addresses) {
    it(`refuses an address in ${path} that may not be called`, async () => {
      sinon.stub(world.webhooks, 'refuses').returns(true);
      const { code, details } = await failureOf(offer(changes));
      expect([code, details.errors?.[0]?.path]).to.deep.equal(['invalid_input', path]);
    });
  }

  it('is forbidden outside the configurations of the client', async () => {
    expect(await endOf(offer({}, ['strict']))).to.equal('forbidden');
    expect(await endOf(offer({}, ['card']))).to.equal('done');
  });

  it('stores a session and the hash of a code, and keeps no transaction code', async () => {
    const { uri, session: id } = await offer({ tx_code: '402917', notifyWebhook: WEBHOOK });
    const { session, batches } = await world.stored(id);
    const request = session.request as IssuanceRequest;
    expect(session).to.deep.include({ status: 'active', version: 1, kind: 'issuance', issuedMask: 0 });
    expect(session).to.deep.include({
      configurationIds: ['card'],
      outcome: null,
      createdAt: world.clock.now(),
    });
    expect(session.expiresAt.getTime() - session.createdAt.getTime()).to.equal(86_400_000);
    expect(batches).to.deep.equal([]);
    expect(uri).to.include(encodeURIComponent(`${ISSUER}/credential-offer/${session.publicId}`));
    expect(request.notifyWebhook).to.deep.equal(WEBHOOK);
    expect(JSON.stringify(request)).not.to.include('402917');
    const grants = request.offer['grants'] as Record<string, Record<string, string>>;
    const [code = ''] = Object.values(grants).map((grant) => grant['pre-authorized_code']);
    const codeHash = createHash('sha256').update(code).digest('base64url');
    const stored = (await world.store.read(ACME).grantByCode(codeHash))?.grant;
    expect(stored).to.deep.include({ codeHash, sessionId: id, consumedAt: null, attempts: 0 });
    expect(stored?.txCodeHash).to.equal(hashTxCode(world.settings, '402917')[0]);
    expect(stored?.expiresAt).to.deep.equal(session.expiresAt);
  });

  it('stores no code for an authorization server, which gets the name of the session', async () => {
    const { session } = await anOffer(world, { flow: 'authorization_code' });
    const { offer: sent } = session.request as IssuanceRequest;
    expect(sent['grants']).to.deep.equal({
      authorization_code: {
        issuer_state: session.publicId,
        authorization_server: `${PUBLIC_URL}/${ACME}/chained-as`,
      },
    });
  });

  it('lives as long as it is wished for, and never longer than sessions do', async () => {
    const seconds = async (expiresIn: number) => {
      const { session } = await anOffer(world, { expiresIn });
      return (session.expiresAt.getTime() - session.createdAt.getTime()) / 1000;
    };
    expect([await seconds(60), await seconds(31_536_000)]).to.deep.equal([60, 86_400]);
  });

  it('passes the offer to a page that asks for it', async () => {
    const { dcApi, session } = await offer({ response_type: 'dc-api' });
    const { offer: sent } = (await world.session(session)).request as IssuanceRequest;
    expect(dcApi).to.deep.equal({ protocol: 'openid4vci-v1', data: sent });
  });

  it('is made of what another process configured a moment ago', async () => {
    const remembered = rememberedCaller(await world.caller());
    await world.offers({ id: 'newest' });
    const wanted = body({ credentialConfigurationIds: ['newest'] });
    expect(await endOf(world.createOffer.execute(remembered, wanted))).to.equal('done');
    await world.store.forTenant(ACME, (own) => own.credentialConfigurations.remove('newest'), {
      by: 'system',
    });
    const stale = rememberedCaller({ ...(await world.caller()), configured: remembered.remembered });
    expect(await endOf(world.createOffer.execute(stale, wanted))).to.equal('invalid_input');
  });

  it('is judged by the rights that the client has now', async () => {
    const remembered = rememberedCaller(await world.caller());
    await world.issues({ batchSize: 2, chainedAs: { upstream: { issuer: UPSTREAM, clientId: 'vidimus' } } });
    const again = async () => {
      throw new Failure('forbidden', 'the client lost its role');
    };
    expect(await endOf(world.createOffer.execute({ ...remembered, again }, body()))).to.equal('forbidden');
  });
});
