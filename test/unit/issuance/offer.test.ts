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
import { anOffer, failureOf, outcomeOf, WalletWorld } from '../wallet-kit.ts';
import { aConfiguration, ISSUER } from './kit.ts';

const OTHER = 'https://as.example';

const resultOf = (work: () => unknown) => {
  try {
    work();
    return 'done';
  } catch (error) {
    if (error instanceof Failure) return error.details.errors?.[0]?.path ?? error.code;
    throw error;
  }
};

const offerRequest = (changes: object = {}) =>
  OfferRequest.parse({ ...{ response_type: 'uri', flow: 'authorization_code', credentialConfigurationIds: ['card'] }, ...changes });
const PRE_AUTHORIZED = { flow: 'pre_authorized_code' };

describe('offer request', () => {
  const configurations = new Map([
    ['card', { interactive: false }],
    ['visitor', { interactive: true }],
  ]);
  const check = (changes: object, servers: readonly string[]) =>
    resultOf(() => assertOfferRequest(offerRequest(changes), { configurations, servers, issuer: ISSUER }));
  const visitorOffer = { credentialConfigurationIds: ['visitor'] };
  const cases: readonly [string, object, readonly string[], string][] = [
    ['for a code, where the built-in server is on', PRE_AUTHORIZED, [ISSUER], 'done'],
    ['for a code, if the built-in server is disabled', PRE_AUTHORIZED, [OTHER], 'flow'],
    ['for a login at an external server, if the built-in server is disabled', {}, [OTHER], 'done'],
    ['for a login at a server', { authorization_server: OTHER }, [ISSUER, OTHER], 'done'],
    ['for a login without a server', { authorization_server: 'x' }, [ISSUER, OTHER], 'authorization_server'],
    ['for a code at the built-in server', { ...PRE_AUTHORIZED, authorization_server: ISSUER }, [ISSUER, OTHER], 'done'],
    ['for a code at another', { ...PRE_AUTHORIZED, authorization_server: OTHER }, [ISSUER, OTHER], 'authorization_server'],
    ['for a visit, where the built-in server is on', visitorOffer, [ISSUER], 'done'],
    ['for a page visit, if the built-in server is disabled', visitorOffer, [OTHER], 'credentialConfigurationIds.0'],
    ['for a visit by code', { ...visitorOffer, ...PRE_AUTHORIZED }, [ISSUER], 'flow'],
    ['with a transaction code', { ...PRE_AUTHORIZED, tx_code: '1234' }, [ISSUER], 'done'],
    [
      'with a transaction code and its description',
      { ...PRE_AUTHORIZED, tx_code: '1234', tx_code_description: 'by post' },
      [ISSUER],
      'done',
    ],
    ['with a description but no transaction code', { ...PRE_AUTHORIZED, tx_code_description: 'x' }, [ISSUER], 'tx_code_description'],
    ['for a login, with a transaction code', { tx_code: '1234' }, [ISSUER], 'tx_code'],
    ['for a login, with a description of a transaction code', { tx_code_description: 'by post' }, [ISSUER], 'tx_code'],
  ];
  for (const [description, changes, servers, expected] of cases) {
    it(`${expected === 'done' ? 'is accepted' : 'is rejected'} ${description}`, () => expect(check(changes, servers)).to.equal(expected));
  }

  it('has a transaction code that a user can enter', () => {
    const isAccepted = (tx_code: string) => {
      const { success } = OfferRequest.safeParse({ ...offerRequest(), ...PRE_AUTHORIZED, tx_code });
      return success;
    };
    for (const code of ['1234', 'a b', 'ä-1']) expect(isAccepted(code), code).to.equal(true);
    for (const code of [' 1234', '1234 ', 'a\u0000b', 'a\u2028b', '']) expect(isAccepted(code), code).to.equal(false);
  });
});

describe('credential offer', () => {
  const codeGrant = (changes: object, servers: readonly string[]) => {
    const request = offerRequest({ ...PRE_AUTHORIZED, ...changes });
    const { grants } = composeOffer(ISSUER, request, { preAuthorizedCode: 'c' }, servers);
    return (grants as JsonObject)[PRE_AUTHORIZED_CODE_GRANT];
  };
  const loginGrant = (changes: object, servers: readonly string[]) =>
    composeOffer(ISSUER, offerRequest(changes), { issuerState: 's' }, servers)['grants'];

  it('names a server only if there are several and one was requested', () => {
    const code = { 'pre-authorized_code': 'c' };
    expect(codeGrant({}, [ISSUER])).to.deep.equal(code);
    expect(codeGrant({}, [ISSUER, OTHER])).to.deep.equal({ ...code, authorization_server: ISSUER });
    const login = { issuer_state: 's' };
    expect(loginGrant({}, [ISSUER, OTHER])).to.deep.equal({ authorization_code: login });
    expect(loginGrant({ authorization_server: OTHER }, [OTHER])).to.deep.equal({ authorization_code: login });
    expect(loginGrant({ authorization_server: OTHER }, [ISSUER, OTHER])).to.deep.equal({
      authorization_code: { ...login, authorization_server: OTHER },
    });
  });

  it('describes the transaction code for the user', () => {
    const txCodeObject = (changes: object) => (codeGrant(changes, [ISSUER]) as JsonObject)['tx_code'];
    expect(txCodeObject({ tx_code: '1234' })).to.deep.equal({ input_mode: 'numeric', length: 4 });
    expect(txCodeObject({ tx_code: 'ab1', tx_code_description: 'by post' })).to.deep.equal({
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
    for (const address of ['javascript://', 'http://wallet.example', 'intent://x', 'ms-word://', 'https://a b', '']) {
      expect(link(address), address).to.equal('refused');
    }
  });
});

describe('credential request parameters', () => {
  const token = (changes: Partial<WalletTokenClaims> = {}) =>
    ({ credentialConfigurationIds: ['card'], identifiers: false, ...changes }) as WalletTokenClaims;
  const find = (id: string) => (['card', 'pass'].includes(id) ? aConfiguration({ id }) : undefined);
  const resolvedId = (body: JsonObject, claims = token()) => {
    let id = '';
    const outcome = resultOf(() => {
      id = resolveConfiguration(body, claims, find).id;
    });
    return outcome === 'done' ? id : outcome;
  };
  const byId = (id: unknown) => ({ credential_configuration_id: id }) as JsonObject;
  const byIdentifier = (id: unknown) => ({ credential_identifier: id }) as JsonObject;

  it('name the credential by its configuration, or by an identifier of the token', () => {
    expect(resolvedId(byId('card'))).to.equal('card');
    expect(resolvedId(byIdentifier('card'), token({ identifiers: true }))).to.equal('card');
    const configurationOfIdentifier = new Map([['theirs', 'card']]);
    const foreign = token({ identifiers: true, configurationOfIdentifier });
    expect(resolvedId(byIdentifier('theirs'), foreign)).to.equal('card');
    expect(resolvedId(byIdentifier('card'), foreign)).to.equal('unknown_credential_identifier');
  });

  it('name the credential by its configuration, although the token has identifiers', () => {
    const configurationOfIdentifier = new Map([['theirs', 'card']]);
    expect(resolvedId(byId('card'), token({ identifiers: true }))).to.equal('card');
    expect(resolvedId(byId('card'), token({ identifiers: true, configurationOfIdentifier }))).to.equal('card');
    expect(resolvedId(byId('theirs'), token({ identifiers: true, configurationOfIdentifier }))).to.equal(
      'unknown_credential_configuration',
    );
  });

  it('return the error code for an invalid name', () => {
    const tokenWithIdentifiers = token({ identifiers: true });
    expect([{}, { ...byId('card'), ...byIdentifier('card') }].map((body) => resolvedId(body))).to.deep.equal(
      Array(2).fill('invalid_credential_request'),
    );
    for (const id of [7, null, ['card']]) {
      expect(resolvedId(byId(id))).to.equal('invalid_credential_request');
      expect(resolvedId(byIdentifier(id), tokenWithIdentifiers)).to.equal('invalid_credential_request');
    }
    expect(resolvedId(byIdentifier('card'))).to.equal('unknown_credential_identifier');
    expect(resolvedId(byIdentifier('pass'), tokenWithIdentifiers)).to.equal('unknown_credential_identifier');
    expect(resolvedId(byId('else'))).to.equal('unknown_credential_configuration');
    expect(resolvedId(byId('pass'))).to.equal('insufficient_scope');
    expect(resolvedId(byId('pass'), tokenWithIdentifiers)).to.equal('insufficient_scope');
  });

  it('contain proofs of one type, and at least one', () => {
    const parseProofList = (value: JsonObject) => () => parseProofs({ proofs: value }, { keyBinding: true }, 3);
    for (const value of [{}, { jwt: ['a'], attestation: ['b'] }, { undefined: ['a'] }, { attestation: ['a'] }]) {
      expect(parseProofList(value)).to.throw('send exactly one proof type, of: jwt');
    }
    for (const value of [[], 'a', [7]]) {
      expect(parseProofList({ jwt: value })).to.throw('must be a non-empty array of strings');
    }
  });
});

const WEBHOOK = { url: 'https://backend.example/claims' };

describe('CreateOffer', () => {
  const ISSUER = `${PUBLIC_URL}/acme`;

  let world: WalletWorld;

  const allSessions = () => world.store.read(ACME).sessions({ kinds: [], ascending: true, limit: 100 });

  before(async () => {
    world = await WalletWorld.open();
    await world.putIssuance({ chainedAs: { upstream: { issuer: UPSTREAM, clientId: 'vidimus' } } });
    const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
    await world.putCredential({ id: 'strict', schema });
    await world.putCredential({ id: 'empty', schema, claims: {} });
    await world.putCredential({ id: 'hooked', claims: null, claimsWebhook: WEBHOOK });
    const iaeActions = [{ type: 'redirect_to_web', url: 'https://shop.example/page' }];
    await world.putCredential({ id: 'visitor', iaeActions });
  });
  afterEach(() => sinon.restore());

  const body = (changes: object = {}) =>
    OfferRequest.parse({ response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'], ...changes });
  const offer = async (changes: object = {}, allowed: readonly string[] | null = null) =>
    world.createOffer.execute(cachedCaller({ ...(await world.caller()), allowedIssuanceConfigs: allowed }), body(changes));

  const rejections: readonly [description: string, changes: object, path: string][] = [
    ['an unknown configuration', { credentialConfigurationIds: ['none'] }, 'credentialConfigurationIds.0'],
    ['a duplicate configuration', { credentialConfigurationIds: ['card', 'card'] }, 'credentialConfigurationIds.1'],
    ['a code for a configuration with an interaction', { credentialConfigurationIds: ['visitor'] }, 'flow'],
    ['a transaction code without its flow', { flow: 'authorization_code', tx_code: '1234' }, 'tx_code'],
    ['a description without a transaction code', { tx_code_description: 'by post' }, 'tx_code_description'],
    [
      'claims of another configuration',
      { credentialClaims: { strict: { type: 'inline', claims: { name: 'Eve' } } } },
      'credentialClaims.strict',
    ],
    ['an unknown server', { authorization_server: 'https://else.example' }, 'authorization_server'],
    ['a code for the chained server', { authorization_server: `${ISSUER}/chained-as` }, 'authorization_server'],
    [
      'claims that violate the schema',
      { credentialConfigurationIds: ['strict'], credentialClaims: { strict: { type: 'inline', claims: { name: 7 } } } },
      'credentialClaims.strict.claims.name',
    ],
    [
      'claims that only the issuer sets',
      { credentialClaims: { card: { type: 'inline', claims: { name: 'Ada', iss: 'me' } } } },
      'credentialClaims.card.claims.iss',
    ],
    ['a configuration whose static claims violate its schema', { credentialConfigurationIds: ['empty'] }, 'credentialConfigurationIds.0'],
  ];
  for (const [description, changes, path] of rejections) {
    it(`rejects ${description} and names the path`, async () => {
      const before = await allSessions();
      const { code, details } = await failureOf(offer(changes));
      expect([code, details.errors?.map((error) => error.path)]).to.deep.equal(['invalid_input', [path]]);
      expect(await allSessions(), 'the stored session').to.deep.equal(before);
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
    expect(await outcomeOf(offer({}, ['strict']))).to.equal('forbidden');
    expect(await outcomeOf(offer({}, ['card']))).to.equal('done');
  });

  it('stores a session and the hash of a code, but no transaction code', async () => {
    const { uri, session: id } = await offer({ tx_code: '402917', notifyWebhook: WEBHOOK });
    const { session, batches } = await world.storedIssuance(id);
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
    const storedGrant = (await world.store.read(ACME).grantByCode(codeHash))?.grant;
    expect(storedGrant).to.deep.include({ codeHash, sessionId: id, consumedAt: null, attempts: 0 });
    expect(storedGrant?.txCodeHash).to.equal(hashTxCode(world.settings, '402917')[0]);
    expect(storedGrant?.expiresAt).to.deep.equal(session.expiresAt);
  });

  it('stores no code for an authorization server, which gets the name of the session', async () => {
    const { session } = await anOffer(world, { flow: 'authorization_code' });
    const { offer: offerObject } = session.request as IssuanceRequest;
    expect(offerObject['grants']).to.deep.equal({
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
    const { offer: offerObject } = (await world.session(session)).request as IssuanceRequest;
    expect(dcApi).to.deep.equal({ protocol: 'openid4vci-v1', data: offerObject });
  });

  it('uses the configuration that another process changed just before', async () => {
    const caller = cachedCaller(await world.caller());
    await world.putCredential({ id: 'newest' });
    const request = body({ credentialConfigurationIds: ['newest'] });
    expect(await outcomeOf(world.createOffer.execute(caller, request))).to.equal('done');
    await world.store.forTenant(ACME, (repositories) => repositories.credentialConfigurations.remove('newest'), { by: 'system' });
    const stale = cachedCaller({ ...(await world.caller()), tenant: caller.cachedTenant });
    expect(await outcomeOf(world.createOffer.execute(stale, request))).to.equal('invalid_input');
  });

  it('is checked with the current rights of the client', async () => {
    const caller = cachedCaller(await world.caller());
    await world.putIssuance({ batchSize: 2, chainedAs: { upstream: { issuer: UPSTREAM, clientId: 'vidimus' } } });
    const reject = async () => {
      throw new Failure('forbidden', 'the client lost its role');
    };
    expect(await outcomeOf(world.createOffer.execute({ ...caller, reauthorize: reject }, body()))).to.equal('forbidden');
  });
});

const UNKNOWN_TENANT = 'unknown' as TenantId;

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
      const fetchedSession = await world.session(session.id);
      expect(fetchedSession).to.deep.include({ status: 'fetched', version: 2 });
      expect(await fetch(session.publicId)).to.deep.equal(request.offer);
      expect(await world.session(session.id)).to.deep.equal(fetchedSession);
    });

    it('rejects an unknown name', async () => {
      expect(await outcomeOf(fetch('a name that is not there'))).to.equal('not_found');
    });

    it('finds nothing at another tenant', async () => {
      const { session } = await anOffer(world);
      expect(await outcomeOf(fetch(session.publicId, UNKNOWN_TENANT))).to.equal('not_found');
    });

    it('fails once the offer has expired', async () => {
      const { session } = await anOffer(world, { expiresIn: 60 });
      expect(await world.afterSeconds(60, () => outcomeOf(fetch(session.publicId)))).to.equal('not_found');
      expect((await world.session(session.id)).status).to.equal('active');
    });

    for (const visits of [0, 1]) {
      it(`rejects an offer that another process ended after ${visits} visits here`, async () => {
        const { session } = await anOffer(world);
        for (let visit = 0; visit < visits; visit++) await fetch(session.publicId);
        const change = { id: session.id, anytime: ['active', 'fetched'], to: 'failed' } as const;
        await world.store.commit(ACME, { session: change }, world.clock.now());
        expect(await outcomeOf(fetch(session.publicId))).to.equal('not_found');
      });
    }

    it('returns no presentation request', async () => {
      await world.putPresentation();
      const { publicId } = await world.request();
      expect(await outcomeOf(fetch(publicId))).to.equal('not_found');
    });

    it('fails for a tenant that another process has suspended', async () => {
      const { session } = await anOffer(world);
      await world.changeTenant({ status: 'suspended' });
      expect(await outcomeOf(fetch(session.publicId))).to.equal('not_found');
      await world.changeTenant({ status: 'active' });
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
      expect([read(UNKNOWN_TENANT), read(ACME, 300)]).to.deep.equal([undefined, undefined]);
      expect(commit.callCount).to.equal(0);
      expect((await world.createNonce.execute(ACME)).cNonce).not.to.equal(nonce);
    });

    it('creates one for DPoP proofs with it, if the tenant uses them', async () => {
      expect((await world.createNonce.execute(ACME)).dpopNonce).to.be.a('string');
    });

    it('creates none for a tenant that is unknown or suspended', async () => {
      expect(await outcomeOf(world.createNonce.execute(UNKNOWN_TENANT))).to.equal('not_found');
      await world.changeTenant({ status: 'suspended' });
      const otherProcess = new CreateNonce(world.otherProcess());
      expect(await outcomeOf(otherProcess.execute(ACME))).to.equal('not_found');
      await world.changeTenant({ status: 'active' });
    });
  });
});
