import { createHash } from 'node:crypto';
import { expect } from 'chai';
import sinon from 'sinon';
import { CreateNonce } from '../../../application/issuance/create-nonce.ts';
import { C_NONCE } from '../../../application/issuance/holder-keys.ts';
import { hashTxCode } from '../../../application/oauth/pre-authorized-code-grant.ts';
import { parseProofs, resolveConfiguration } from '../../../domain/issuance/credential-request.ts';
import { assertOfferRequest, composeOffer, OfferRequest, offerLink } from '../../../domain/issuance/offer.ts';
import type { WalletTokenClaims } from '../../../domain/oauth/access-token.ts';
import { parseChallenge } from '../../../domain/oauth/challenge.ts';
import { PRE_AUTHORIZED_CODE_GRANT } from '../../../domain/oauth/token-request.ts';
import type { IssuanceRequest } from '../../../domain/sessions/session.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { PublicId, TenantId } from '../../../domain/shared/ids.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { UPSTREAM } from '../../support/fakes.ts';
import { cachedCaller } from '../../support/remembered-caller.ts';
import { ACME, PUBLIC_URL } from '../verification/kit.ts';
import { anOffer, endOf, failureOf, WalletWorld } from '../wallet-kit.ts';
import { aConfiguration, ISSUER } from './kit.ts';

const OTHER = 'https://as.example';

const ended = (work: () => unknown) => {
  try {
    work();
    return 'done';
  } catch (error) {
    if (error instanceof Failure) return error.details.errors?.[0]?.path ?? error.code;
    throw error;
  }
};

const written = (changes: object = {}) =>
  OfferRequest.parse({ ...{ response_type: 'uri', flow: 'authorization_code', credentialConfigurationIds: ['card'] }, ...changes });
const PRE_AUTHORIZED = { flow: 'pre_authorized_code' };

describe('offer request', () => {
  const known = new Map([
    ['card', { interactive: false }],
    ['visitor', { interactive: true }],
  ]);
  const check = (changes: object, servers: readonly string[]) =>
    ended(() => assertOfferRequest(written(changes), { configurations: known, servers, issuer: ISSUER }));
  const visiting = { credentialConfigurationIds: ['visitor'] };
  const cases: readonly [string, object, readonly string[], string][] = [
    ['for a code, where the built-in server is on', PRE_AUTHORIZED, [ISSUER], 'done'],
    ['for a code, where it is off', PRE_AUTHORIZED, [OTHER], 'flow'],
    ['for a login elsewhere, where it is off', {}, [OTHER], 'done'],
    ['for a login at a server', { authorization_server: OTHER }, [ISSUER, OTHER], 'done'],
    ['for a login at nobody', { authorization_server: 'x' }, [ISSUER, OTHER], 'authorization_server'],
    ['for a code at the built-in server', { ...PRE_AUTHORIZED, authorization_server: ISSUER }, [ISSUER, OTHER], 'done'],
    ['for a code at another', { ...PRE_AUTHORIZED, authorization_server: OTHER }, [ISSUER, OTHER], 'authorization_server'],
    ['for a visit, where the built-in server is on', visiting, [ISSUER], 'done'],
    ['for a visit, where it is off', visiting, [OTHER], 'credentialConfigurationIds.0'],
    ['for a visit by code', { ...visiting, ...PRE_AUTHORIZED }, [ISSUER], 'flow'],
    ['with a transaction code', { ...PRE_AUTHORIZED, tx_code: '1234' }, [ISSUER], 'done'],
    [
      'with a transaction code and words about it',
      { ...PRE_AUTHORIZED, tx_code: '1234', tx_code_description: 'by post' },
      [ISSUER],
      'done',
    ],
    ['with words about none', { ...PRE_AUTHORIZED, tx_code_description: 'x' }, [ISSUER], 'tx_code_description'],
    ['for a login, with a transaction code', { tx_code: '1234' }, [ISSUER], 'tx_code'],
    ['for a login, with words about one', { tx_code_description: 'by post' }, [ISSUER], 'tx_code'],
  ];
  for (const [what, changes, servers, expected] of cases) {
    it(`${expected === 'done' ? 'is accepted' : 'is rejected'} ${what}`, () => expect(check(changes, servers)).to.equal(expected));
  }

  it('has a transaction code that a user can enter', () => {
    const takes = (tx_code: string) => {
      const { success } = OfferRequest.safeParse({ ...written(), ...PRE_AUTHORIZED, tx_code });
      return success;
    };
    for (const code of ['1234', 'a b', 'ä-1']) expect(takes(code), code).to.equal(true);
    for (const code of [' 1234', '1234 ', 'a\u0000b', 'a\u2028b', '']) expect(takes(code), code).to.equal(false);
  });
});

describe('credential offer', () => {
  const byCode = (changes: object, servers: readonly string[]) => {
    const request = written({ ...PRE_AUTHORIZED, ...changes });
    const { grants } = composeOffer(ISSUER, request, { preAuthorizedCode: 'c' }, servers);
    return (grants as JsonObject)[PRE_AUTHORIZED_CODE_GRANT];
  };
  const byLogin = (changes: object, servers: readonly string[]) =>
    composeOffer(ISSUER, written(changes), { issuerState: 's' }, servers)['grants'];

  it('names a server only if there are several and one was requested', () => {
    const code = { 'pre-authorized_code': 'c' };
    expect(byCode({}, [ISSUER])).to.deep.equal(code);
    expect(byCode({}, [ISSUER, OTHER])).to.deep.equal({ ...code, authorization_server: ISSUER });
    const login = { issuer_state: 's' };
    expect(byLogin({}, [ISSUER, OTHER])).to.deep.equal({ authorization_code: login });
    expect(byLogin({ authorization_server: OTHER }, [OTHER])).to.deep.equal({ authorization_code: login });
    expect(byLogin({ authorization_server: OTHER }, [ISSUER, OTHER])).to.deep.equal({
      authorization_code: { ...login, authorization_server: OTHER },
    });
  });

  it('describes the transaction code for the user', () => {
    const told = (changes: object) => (byCode(changes, [ISSUER]) as JsonObject)['tx_code'];
    expect(told({ tx_code: '1234' })).to.deep.equal({ input_mode: 'numeric', length: 4 });
    expect(told({ tx_code: 'ab1', tx_code_description: 'by post' })).to.deep.equal({
      ...{ input_mode: 'text', length: 3, description: 'by post' },
    });
  });
});

describe('link of an offer', () => {
  const link = (invocationUri?: string) => {
    const request = OfferRequest.safeParse({
      ...{ response_type: 'uri', flow: 'authorization_code', credentialConfigurationIds: ['card'] },
      ...(invocationUri !== undefined && { invocationUri }),
    });
    return request.success ? offerLink('https://i.example/o', request.data.invocationUri) : 'refused';
  };
  const query = 'credential_offer_uri=https%3A%2F%2Fi.example%2Fo';

  it('starts any wallet, those of a profile, or the configured one', () => {
    expect(link()).to.equal(`openid-credential-offer://?${query}`);
    expect(link('haip-vci://')).to.equal(`haip-vci://?${query}`);
    expect(link('https://wallet.example/add?from=acme')).to.equal(`https://wallet.example/add?from=acme&${query}`);
  });

  it('is rejected with other schemes', () => {
    for (const other of ['javascript://', 'http://wallet.example', 'intent://x', 'ms-word://', 'https://a b', '']) {
      expect(link(other), other).to.equal('refused');
    }
  });
});

describe('credential request parameters', () => {
  const token = (changes: Partial<WalletTokenClaims> = {}) =>
    ({ credentialConfigurationIds: ['card'], identifiers: false, ...changes }) as WalletTokenClaims;
  const find = (id: string) => (['card', 'pass'].includes(id) ? aConfiguration({ id }) : undefined);
  const named = (body: JsonObject, claims = token()) => {
    let id = '';
    const end = ended(() => {
      id = resolveConfiguration(body, claims, find).id;
    });
    return end === 'done' ? id : end;
  };
  const byId = (id: unknown) => ({ credential_configuration_id: id }) as JsonObject;
  const byIdentifier = (id: unknown) => ({ credential_identifier: id }) as JsonObject;

  it('name the credential by its configuration, or by an identifier of the token', () => {
    expect(named(byId('card'))).to.equal('card');
    expect(named(byIdentifier('card'), token({ identifiers: true }))).to.equal('card');
    const configurationOfIdentifier = new Map([['theirs', 'card']]);
    const foreign = token({ identifiers: true, configurationOfIdentifier });
    expect(named(byIdentifier('theirs'), foreign)).to.equal('card');
    expect(named(byIdentifier('card'), foreign)).to.equal('unknown_credential_identifier');
  });

  it('name the credential by its configuration, although the token has identifiers', () => {
    const configurationOfIdentifier = new Map([['theirs', 'card']]);
    expect(named(byId('card'), token({ identifiers: true }))).to.equal('card');
    expect(named(byId('card'), token({ identifiers: true, configurationOfIdentifier }))).to.equal('card');
    expect(named(byId('theirs'), token({ identifiers: true, configurationOfIdentifier }))).to.equal('unknown_credential_configuration');
  });

  it('return the error code for an invalid name', () => {
    const identified = token({ identifiers: true });
    expect([{}, { ...byId('card'), ...byIdentifier('card') }].map((body) => named(body))).to.deep.equal(
      Array(2).fill('invalid_credential_request'),
    );
    for (const id of [7, null, ['card']]) {
      expect(named(byId(id))).to.equal('invalid_credential_request');
      expect(named(byIdentifier(id), identified)).to.equal('invalid_credential_request');
    }
    expect(named(byIdentifier('card'))).to.equal('unknown_credential_identifier');
    expect(named(byIdentifier('pass'), identified)).to.equal('unknown_credential_identifier');
    expect(named(byId('else'))).to.equal('unknown_credential_configuration');
    expect(named(byId('pass'))).to.equal('insufficient_scope');
    expect(named(byId('pass'), identified)).to.equal('insufficient_scope');
  });

  it('contain proofs of one type, and at least one', () => {
    const proofs = (given: JsonObject) => () => parseProofs({ proofs: given }, { keyBinding: true }, 3);
    for (const given of [{}, { jwt: ['a'], attestation: ['b'] }, { undefined: ['a'] }, { attestation: ['a'] }]) {
      expect(proofs(given)).to.throw('send exactly one proof type, of: jwt');
    }
    for (const given of [[], 'a', [7]]) {
      expect(proofs({ jwt: given })).to.throw('must be a non-empty array of strings');
    }
  });
});

const WEBHOOK = { url: 'https://backend.example/claims' };

describe('CreateOffer', () => {
  const ISSUER = `${PUBLIC_URL}/acme`;

  let world: WalletWorld;

  const all = () => world.store.read(ACME).sessions({ kinds: [], ascending: true, limit: 100 });

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
    OfferRequest.parse({ response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'], ...changes });
  const offer = async (changes: object = {}, allowed: readonly string[] | null = null) =>
    world.createOffer.execute(cachedCaller({ ...(await world.caller()), allowedIssuanceConfigs: allowed }), body(changes));

  const refusals: readonly [what: string, changes: object, path: string][] = [
    ['an unknown configuration', { credentialConfigurationIds: ['none'] }, 'credentialConfigurationIds.0'],
    ['one that stands twice', { credentialConfigurationIds: ['card', 'card'] }, 'credentialConfigurationIds.1'],
    ['a code for what needs an interaction', { credentialConfigurationIds: ['visitor'] }, 'flow'],
    ['a transaction code without its flow', { flow: 'authorization_code', tx_code: '1234' }, 'tx_code'],
    ['words about no transaction code', { tx_code_description: 'by post' }, 'tx_code_description'],
    ['claims of something else', { credentialClaims: { strict: { type: 'inline', claims: { name: 'Eve' } } } }, 'credentialClaims.strict'],
    ['an unknown server', { authorization_server: 'https://else.example' }, 'authorization_server'],
    ['a code for the chained server', { authorization_server: `${ISSUER}/chained-as` }, 'authorization_server'],
    [
      'claims that do not fit the schema',
      { credentialConfigurationIds: ['strict'], credentialClaims: { strict: { type: 'inline', claims: { name: 7 } } } },
      'credentialClaims.strict.claims.name',
    ],
    [
      'claims that belong to the issuer',
      { credentialClaims: { card: { type: 'inline', claims: { name: 'Ada', iss: 'me' } } } },
      'credentialClaims.card.claims.iss',
    ],
    ['a configuration whose own claims do not fit', { credentialConfigurationIds: ['empty'] }, 'credentialConfigurationIds.0'],
  ];
  for (const [what, changes, path] of refusals) {
    it(`rejects ${what} and names the path`, async () => {
      const before = await all();
      const { code, details } = await failureOf(offer(changes));
      expect([code, details.errors?.map((error) => error.path)]).to.deep.equal(['invalid_input', [path]]);
      expect(await all(), 'what is stored').to.deep.equal(before);
    });
  }

  const addresses: readonly [path: string, changes: object][] = [
    ['credentialClaims.card.webhook.url', { credentialClaims: { card: { type: 'webhook', webhook: WEBHOOK } } }],
    ['notifyWebhook.url', { notifyWebhook: WEBHOOK }],
  ];
  for (const [path, changes] of addresses) {
    it(`rejects a blocked address in ${path}`, async () => {
      sinon.stub(world.webhooks, 'refuses').returns(true);
      const { code, details } = await failureOf(offer(changes));
      expect([code, details.errors?.[0]?.path]).to.deep.equal(['invalid_input', path]);
    });
  }

  it('is forbidden outside the configurations of the client', async () => {
    expect(await endOf(offer({}, ['strict']))).to.equal('forbidden');
    expect(await endOf(offer({}, ['card']))).to.equal('done');
  });

  it('stores a session and the hash of a code, but no transaction code', async () => {
    const { uri, session: id } = await offer({ tx_code: '402917', notifyWebhook: WEBHOOK });
    const { session, batches } = await world.stored(id);
    const request = session.request as IssuanceRequest;
    expect(session).to.deep.include({ status: 'active', version: 1, kind: 'issuance', issuedMask: 0 });
    expect(session).to.deep.include({ configurationIds: ['card'], outcome: null, createdAt: world.clock.now() });
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
      authorization_code: { issuer_state: session.publicId, authorization_server: `${PUBLIC_URL}/${ACME}/chained-as` },
    });
  });

  it('uses the requested lifetime, up to the maximum of sessions', async () => {
    const seconds = async (expiresIn: number) => {
      const { session } = await anOffer(world, { expiresIn });
      return (session.expiresAt.getTime() - session.createdAt.getTime()) / 1000;
    };
    expect([await seconds(60), await seconds(31_536_000)]).to.deep.equal([60, 86_400]);
  });

  it('returns the offer for a page on request', async () => {
    const { dcApi, session } = await offer({ response_type: 'dc-api' });
    const { offer: sent } = (await world.session(session)).request as IssuanceRequest;
    expect(dcApi).to.deep.equal({ protocol: 'openid4vci-v1', data: sent });
  });

  it('uses the configuration that another process changed just before', async () => {
    const remembered = cachedCaller(await world.caller());
    await world.offers({ id: 'newest' });
    const wanted = body({ credentialConfigurationIds: ['newest'] });
    expect(await endOf(world.createOffer.execute(remembered, wanted))).to.equal('done');
    await world.store.forTenant(ACME, (own) => own.credentialConfigurations.remove('newest'), { by: 'system' });
    const stale = cachedCaller({ ...(await world.caller()), tenant: remembered.cachedTenant });
    expect(await endOf(world.createOffer.execute(stale, wanted))).to.equal('invalid_input');
  });

  it('is checked with the current rights of the client', async () => {
    const remembered = cachedCaller(await world.caller());
    await world.issues({ batchSize: 2, chainedAs: { upstream: { issuer: UPSTREAM, clientId: 'vidimus' } } });
    const again = async () => {
      throw new Failure('forbidden', 'the client lost its role');
    };
    expect(await endOf(world.createOffer.execute({ ...remembered, reauthorize: again }, body()))).to.equal('forbidden');
  });
});

const NOBODY = 'nobody' as TenantId;

describe('preparation of an issuance', () => {
  let world: WalletWorld;

  before(async () => {
    world = await WalletWorld.open();
  });
  afterEach(() => sinon.restore());

  describe('FetchOffer', () => {
    const fetch = (publicId: string, tenantId = ACME) => world.fetchOffer.execute(tenantId, publicId as PublicId);

    it('returns the offer and records the first fetch only', async () => {
      const { session } = await anOffer(world);
      const request = session.request as IssuanceRequest;
      expect(await fetch(session.publicId)).to.deep.equal(request.offer);
      const fetched = await world.session(session.id);
      expect(fetched).to.deep.include({ status: 'fetched', version: 2 });
      expect(await fetch(session.publicId)).to.deep.equal(request.offer);
      expect(await world.session(session.id)).to.deep.equal(fetched);
    });

    it('rejects an unknown name', async () => {
      expect(await endOf(fetch('a name that is not there'))).to.equal('not_found');
    });

    it('finds nothing at another tenant', async () => {
      const { session } = await anOffer(world);
      expect(await endOf(fetch(session.publicId, NOBODY))).to.equal('not_found');
    });

    it('fails once the offer has expired', async () => {
      const { session } = await anOffer(world, { expiresIn: 60 });
      expect(await world.later(60, () => endOf(fetch(session.publicId)))).to.equal('not_found');
      expect((await world.session(session.id)).status).to.equal('active');
    });

    for (const visits of [0, 1]) {
      it(`rejects an offer that another process ended after ${visits} visits here`, async () => {
        const { session } = await anOffer(world);
        for (let visit = 0; visit < visits; visit++) await fetch(session.publicId);
        const failed = { id: session.id, anytime: ['active', 'fetched'], to: 'failed' } as const;
        await world.store.commit(ACME, { session: failed }, world.clock.now());
        expect(await endOf(fetch(session.publicId))).to.equal('not_found');
      });
    }

    it('returns no presentation request', async () => {
      await world.verifies();
      const { publicId } = await world.request();
      expect(await endOf(fetch(publicId))).to.equal('not_found');
    });

    it('fails for a tenant that another process has suspended', async () => {
      const { session } = await anOffer(world);
      await world.change({ status: 'suspended' });
      expect(await endOf(fetch(session.publicId))).to.equal('not_found');
      await world.change({ status: 'active' });
      expect((await world.session(session.id)).status).to.equal('active');
    });
  });

  describe('CreateNonce', () => {
    it('creates a nonce of this tenant that is valid for five minutes, without a write', async () => {
      const commit = sinon.spy(world.store, 'commit');
      const { cNonce: nonce } = await world.createNonce.execute(ACME);
      const read = (tenantId: TenantId, seconds = 0) =>
        parseChallenge(world.settings.nonceKeys, tenantId, C_NONCE, new Date(world.clock.time + seconds * 1000), nonce);
      expect(read(ACME)?.expiresAt.getTime()).to.equal(world.clock.time + 300_000);
      expect([read(NOBODY), read(ACME, 300)]).to.deep.equal([undefined, undefined]);
      expect(commit.callCount).to.equal(0);
      expect((await world.createNonce.execute(ACME)).cNonce).not.to.equal(nonce);
    });

    it('creates one for DPoP proofs with it, if the tenant uses them', async () => {
      expect((await world.createNonce.execute(ACME)).dpopNonce).to.be.a('string');
    });

    it('creates none for a tenant that is unknown or suspended', async () => {
      expect(await endOf(world.createNonce.execute(NOBODY))).to.equal('not_found');
      await world.change({ status: 'suspended' });
      const elsewhere = new CreateNonce(world.elsewhere());
      expect(await endOf(elsewhere.execute(ACME))).to.equal('not_found');
      await world.change({ status: 'active' });
    });
  });
});
