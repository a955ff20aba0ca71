import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import sinon from 'sinon';
import { AjvSchemaValidator } from '../../../adapters/system/schema-validator.ts';
import { binarySchemaOf, findClaimProblems, frameOf } from '../../../application/issuance/collect-claims.ts';
import { IssueCredential, type WalletRequest } from '../../../application/issuance/issue-credential.ts';
import { hashCode } from '../../../application/oauth/pre-authorized-code-grant.ts';
import { hostedType } from '../../../application/type-metadata/hosted-type.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import type { FailureCode } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { decode } from '../../support/present.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { cachedCaller } from '../../support/remembered-caller.ts';
import { aWorld } from '../administrators.ts';
import { ACME } from '../verification/kit.ts';
import { anOffer, type CreatedOffer, failureOf, outcomeOf, Wallet, WalletWorld } from '../wallet-kit.ts';
import { aConfiguration } from './kit.ts';

describe('IssueCredential', () => {
  let world: WalletWorld;
  let wallet: Wallet;
  /** One offer serves all rejections, since none of them may change it. */
  let offer: CreatedOffer;
  let token: string;

  before(async () => {
    world = await WalletWorld.open();
    await world.putIssuance({ batchSize: 2 });
    await world.putCredential({ id: 'listed', statusManagement: true });
    await world.putCredential({ id: 'unbound', keyBinding: false });
    await world.putCredential({ id: 'visitor', iaeActions: [] });
    wallet = new Wallet(world);
    offer = await anOffer(world, { credentialConfigurationIds: ['card', 'visitor'] });
    token = await wallet.token(offer);
    // Set after the offer, since such a configuration gets no pre-authorized code.
    await world.putCredential({ id: 'visitor', iaeActions: [{ type: 'redirect_to_web', url: 'https://a.example' }] });
  });
  afterEach(() => sinon.restore());

  const execute = (request: WalletRequest, tenantId = ACME) => world.issueCredential.execute(tenantId, request);

  type RejectionCase = readonly [description: string, code: FailureCode, call: () => Promise<WalletRequest>];
  const header = (authorization: string | undefined) => async () => {
    const request = await wallet.credentialRequest(token);
    return { ...request, wallet: { ...request.wallet, authorization } };
  };
  const dpop = (make: () => string[]) => async () => {
    const request = await wallet.credentialRequest(token);
    return { ...request, wallet: { ...request.wallet, dpop: make() } };
  };
  const withChanges = (changes: object) => () => wallet.credentialRequest(token, changes);
  const withProofs = (make: (nonce: string) => unknown) => async () =>
    wallet.credentialRequest(token, { proofs: make(await wallet.nonce()) });

  const callers: readonly RejectionCase[] = [
    ['no access token', 'missing_token', header(undefined)],
    ['another scheme', 'missing_token', header('Basic YWJj')],
    ['an Authorization header of three words', 'invalid_token', header('DPoP one two')],
    ['an unknown token', 'invalid_token', header('DPoP abc')],
    ['a bound token as a bearer token', 'invalid_token', async () => header(`Bearer ${token}`)()],
    ['a token with another signature', 'invalid_token', () => header(`DPoP ${token.slice(0, -4)}AAAA`)()],
    ['no DPoP proof', 'invalid_dpop_proof', dpop(() => [])],
    ['a DPoP proof for another address', 'invalid_dpop_proof', dpop(() => [wallet.dpop('notification', { token })])],
    ['a DPoP proof for another token', 'invalid_dpop_proof', dpop(() => [wallet.dpop('credential', { token: 'x' })])],
    ['a DPoP proof of another key', 'invalid_token', dpop(() => [wallet.dpop('credential', { token, key: newKey() })])],
    ['an unknown DPoP nonce', 'use_dpop_nonce', dpop(() => [wallet.dpop('credential', { token, payload: { nonce: 'abc' } })])],
  ];
  const bodies: readonly RejectionCase[] = [
    [
      'a form',
      'invalid_credential_request',
      () => wallet.credentialRequest(token, {}, { contentType: 'application/x-www-form-urlencoded' }),
    ],
    ['broken JSON', 'invalid_credential_request', () => wallet.credentialRequest(token, {}, { body: Buffer.from('{') })],
    [
      'an undecryptable request',
      'invalid_encryption_parameters',
      () => wallet.credentialRequest(token, {}, { contentType: 'application/jwt', body: Buffer.from('a.b.c.d.e') }),
    ],
    [
      'an encrypted answer to a plain request',
      'invalid_encryption_parameters',
      withChanges({ credential_response_encryption: { enc: 'A256GCM', jwk: {} } }),
    ],
    ['a configuration and an identifier', 'invalid_credential_request', withChanges({ credential_identifier: 'card' })],
    ['an unknown configuration', 'unknown_credential_configuration', withChanges({ credential_configuration_id: 'none' })],
    [
      'an identifier that the token response did not name',
      'unknown_credential_identifier',
      withChanges({ credential_configuration_id: undefined, credential_identifier: 'card' }),
    ],
    ['a configuration that the token does not cover', 'insufficient_scope', withChanges({ credential_configuration_id: 'unbound' })],
    [
      'a configuration that now requires an interaction',
      'credential_request_denied',
      withChanges({ credential_configuration_id: 'visitor' }),
    ],
    ['no proofs', 'invalid_proof', withChanges({ proofs: undefined })],
    ['a proof of another type', 'invalid_proof', withProofs(() => ({ attestation: ['abc'] }))],
    [
      'more proofs than a batch has',
      'invalid_credential_request',
      withProofs((nonce) => ({ jwt: [1, 2, 3].map(() => wallet.keyProof(nonce)) })),
    ],
    ['a proof with another signature', 'invalid_proof', withProofs((nonce) => ({ jwt: [`${wallet.keyProof(nonce).slice(0, -4)}AAAA`] }))],
    [
      'a proof for another issuer',
      'invalid_proof',
      withProofs((nonce) => ({ jwt: [wallet.keyProof(nonce, { payload: { aud: 'https://else.example' } })] })),
    ],
    [
      'one key in two proofs',
      'invalid_proof',
      withProofs((nonce) => {
        const key = newKey();
        return { jwt: [wallet.keyProof(nonce, {}, key), wallet.keyProof(nonce, {}, key)] };
      }),
    ],
    ['an unknown nonce', 'invalid_nonce', withProofs(() => ({ jwt: [wallet.keyProof('abc')] }))],
  ];
  for (const [description, code, buildRequest] of callers) {
    it(`rejects ${description}`, async () => {
      const before = await world.storedIssuance(offer.session.id);
      expect((await failureOf(execute(await buildRequest()))).code).to.equal(code);
      expect(await world.storedIssuance(offer.session.id), 'what is stored').to.deep.equal(before);
    });
  }
  for (const [description, code, buildRequest] of bodies) {
    it(`rejects ${description}, and records only the reason, up to a limit`, async () => {
      const { session: before, batches } = await world.storedIssuance(offer.session.id);
      const failure = await failureOf(execute({ ...(await buildRequest()), requestId: 'r-1' }));
      expect(failure.code).to.equal(code);
      const { session: after, batches: issuedBatches } = await world.storedIssuance(offer.session.id);
      const { attempts = [] } = after.outcome ?? {};
      const { at: _at, ...last } = attempts.at(-1) ?? { at: '' };
      expect(last).to.deep.equal({ code, reason: failure.message, requestId: 'r-1' });
      expect(attempts).to.have.length((before.outcome?.attempts?.length ?? 0) + 1);
      const expected = { outcome: after.outcome, version: after.version, updatedAt: after.updatedAt };
      expect([{ ...before, ...expected }, batches], 'what is stored').to.deep.equal([after, issuedBatches]);
    });
  }

  it('issues with a token that was rejected repeatedly, and completes the session with the last credential', async () => {
    const { credentials, notification_id: id } = await wallet.issue(token);
    const { session, batches } = await world.storedIssuance(offer.session.id);
    expect(credentials).to.have.length(1);
    expect(decode(credentials[0]?.credential ?? '').payload).to.deep.include({ name: 'Ada', iss: wallet.issuer });
    expect(session).to.deep.include({ status: 'active', issuedMask: 1 });
    expect(batches).to.deep.equal([
      {
        id,
        sessionId: session.id,
        credentialConfigurationId: 'card',
        count: 1,
        statusListId: null,
        firstCounter: null,
        issuedAt: world.clock.now(),
      },
    ]);
    const single = await anOffer(world);
    await wallet.issue(await wallet.token(single));
    expect((await world.session(single.session.id)).status).to.equal('completed');
  });

  it('issues one credential for each proven key, each with its own status entry', async () => {
    const { session, code } = await anOffer(world, { credentialConfigurationIds: ['listed'] });
    const nonce = await wallet.nonce();
    const keys = [newKey(), newKey()];
    const { credentials } = await wallet.issue(await wallet.token({ session, code }), {
      credential_configuration_id: 'listed',
      proofs: { jwt: keys.map((key) => wallet.keyProof(nonce, {}, key)) },
    });
    const payloads = credentials.map(({ credential }) => decode(credential).payload);
    expect(payloads.map((payload) => payload['cnf'].jwk)).to.deep.equal(keys.map(({ jwk }) => jwk));
    const entries = payloads.map((payload) => payload['status'].status_list.idx as number);
    expect(new Set(entries).size).to.equal(2);
    const { batches } = await world.storedIssuance(session.id);
    const list = await world.store.read(ACME).statusList(batches[0]?.statusListId ?? '');
    expect(batches.map(({ count }) => count)).to.deep.equal([2]);
    expect(payloads[0]?.['status'].status_list.uri).to.equal(`${wallet.issuer}/status-list/${list?.id}`);
  });

  it('issues a credential without key binding without proofs, by its identifier', async () => {
    const { code } = await anOffer(world, { credentialConfigurationIds: ['unbound'] });
    const { body } = await wallet.redeem(code, { requestedIds: ['unbound'] });
    const byIdentifier = { credential_configuration_id: undefined, credential_identifier: 'unbound', proofs: undefined };
    const { credentials } = await wallet.issue(body.access_token, byIdentifier);
    expect(decode(credentials[0]?.credential ?? '').payload).not.to.have.property('cnf');
    const byConfiguration = await wallet.credentialRequest(body.access_token, { credential_configuration_id: 'card' });
    expect(await outcomeOf(execute(byConfiguration))).to.equal('insufficient_scope');
  });

  it('fails for an unknown tenant', async () => {
    expect(await outcomeOf(execute(await wallet.credentialRequest(token), 'unknown' as TenantId))).to.equal('not_found');
  });
});

/** Each request has its own offer, grant and proofs. */
describe('credential request', () => {
  let world: WalletWorld;
  let wallet: Wallet;

  before(async () => {
    world = await WalletWorld.open();
    wallet = new Wallet(world);
    await world.putCredential({ id: 'listed', statusManagement: true });
  });
  afterEach(() => sinon.restore());

  type PreparedRequest = { readonly offer: CreatedOffer; readonly token: string; readonly request: WalletRequest };
  const prepareRequest = async (changes: object = {}, bodyChanges: object = {}): Promise<PreparedRequest> => {
    const offer = await anOffer(world, changes);
    const token = await wallet.token(offer);
    return { offer, token, request: await wallet.credentialRequest(token, bodyChanges) };
  };
  const execute = (request: WalletRequest) => world.issueCredential.execute(ACME, request);
  const setStatus = (session: Session, status: Session['status']) =>
    world.store.commit(ACME, { session: { id: session.id, anytime: ['active'], to: status } }, world.clock.now());

  it('needs one commit and no read while all data are cached', async () => {
    const { request } = await prepareRequest();
    await world.caller();
    const [read, commit] = [sinon.spy(world.store, 'read'), sinon.spy(world.store, 'commit')];
    await execute(request);
    expect([read.callCount, commit.callCount]).to.deep.equal([0, 1]);
  });

  it('is issued by a process without cached data', async () => {
    const { request, offer } = await prepareRequest();
    const otherProcess = new IssueCredential(world.otherProcess());
    expect((await otherProcess.execute(ACME, request)).status).to.equal(200);
    expect((await world.storedIssuance(offer.session.id)).batches).to.have.length(1);
  });

  it('uses the configuration that another process changed just before', async () => {
    const { request, offer } = await prepareRequest();
    await world.putCredential({ id: 'card', claims: { name: 'Grace' } });
    const { text } = await execute(request);
    const [, payload = ''] = (JSON.parse(text).credentials[0].credential as string).split('.');
    expect(JSON.parse(Buffer.from(payload, 'base64url').toString())).to.include({ name: 'Grace' });
    expect((await world.storedIssuance(offer.session.id)).batches).to.have.length(1);
  });

  it('is rejected for a configuration that another process removed', async () => {
    await world.putCredential({ id: 'gone' });
    const removed = { credentialConfigurationIds: ['gone'] };
    const { request, offer } = await prepareRequest(removed, { credential_configuration_id: 'gone' });
    await world.store.forTenant(ACME, (repositories) => repositories.credentialConfigurations.remove('gone'), { by: 'system' });
    expect(await outcomeOf(execute(request))).to.equal('unknown_credential_configuration');
    expect((await world.storedIssuance(offer.session.id)).batches).to.deep.equal([]);
  });

  it('is rejected for a tenant that another process suspended', async () => {
    const { request, offer } = await prepareRequest();
    await world.changeTenant({ status: 'suspended' });
    expect(await outcomeOf(execute(request))).to.equal('not_found');
    await world.changeTenant({ status: 'active' });
    expect((await world.storedIssuance(offer.session.id)).batches).to.deep.equal([]);
    expect(await outcomeOf(execute(request)), 'nothing of it was consumed').to.equal('done');
  });

  type ConcurrentChange = (prepared: PreparedRequest) => Promise<Partial<WalletRequest> | undefined>;
  const concurrentChanges: readonly [description: string, code: FailureCode, prepare: ConcurrentChange][] = [
    [
      'has a used nonce',
      'invalid_nonce',
      async ({ request, token }) => {
        await execute(request);
        return { wallet: (await wallet.credentialRequest(token)).wallet };
      },
    ],
    [
      'has a used DPoP proof',
      'invalid_dpop_proof',
      async ({ request, token }) => {
        await execute(request);
        return { body: (await wallet.credentialRequest(token)).body };
      },
    ],
    [
      'comes with a token whose grant was revoked by another process',
      'invalid_token',
      async ({ offer }) => {
        const grant = (await world.store.read(ACME).grantByCode(hashCode(offer.code)))?.grant;
        await world.store.commit(ACME, { grant: { id: grant?.id ?? '', act: 'revoke' } }, world.clock.now());
        return undefined;
      },
    ],
    [
      'follows after another process ended the session',
      'credential_request_denied',
      async ({ offer }) => {
        await setStatus(offer.session, 'failed');
        return undefined;
      },
    ],
    [
      'is for a deleted session',
      'credential_request_denied',
      async ({ offer }) => {
        await world.store.commit(ACME, { removes: offer.session.id }, world.clock.now());
        return undefined;
      },
    ],
  ];
  for (const [description, code, changeMeanwhile] of concurrentChanges) {
    it(`is rejected when it ${description}, and nothing more is issued`, async () => {
      const prepared = await prepareRequest();
      const changes = await changeMeanwhile(prepared);
      const before = await world.store.read(ACME).issued(prepared.offer.session.id);
      expect(await outcomeOf(execute({ ...prepared.request, ...changes }))).to.equal(code);
      expect(await world.store.read(ACME).issued(prepared.offer.session.id)).to.deep.equal(before);
    });
  }

  const expiries: readonly [description: string, code: FailureCode, seconds: number, offer: object][] = [
    ['the access token has expired', 'invalid_token', 1800, {}],
    ['its nonce has expired', 'invalid_nonce', 300, {}],
    ['the offer has expired', 'credential_request_denied', 60, { expiresIn: 60 }],
  ];
  for (const [description, code, seconds, offer] of expiries) {
    it(`is rejected when ${description}`, async () => {
      const { token, request } = await prepareRequest(offer);
      const lateRequest = () => ({ wallet: { ...request.wallet, dpop: [wallet.dpop('credential', { token })] } });
      expect(await world.afterSeconds(seconds, () => outcomeOf(execute({ ...request, ...lateRequest() })))).to.equal(code);
    });
  }

  it('gets no credential after its revocation, and releases its status entry', async () => {
    const listed = { credential_configuration_id: 'listed' };
    const bothIds = { credentialConfigurationIds: ['listed', 'card'] };
    const { token, request, offer } = await prepareRequest(bothIds, listed);
    await execute(request);
    const caller = cachedCaller(await world.caller());
    await world.revokeSession.execute(caller, { sessionId: offer.session.id, status: 1 });
    const giveBack = sinon.spy(world.statusAllocator, 'release');
    expect(await outcomeOf(wallet.issue(token, listed))).to.equal('credential_request_denied');
    expect(giveBack.callCount).to.be.at.least(1);
    expect((await world.storedIssuance(offer.session.id)).batches).to.have.length(1);
  });

  it('keeps its status entries while it is unknown whether its credentials were recorded', async () => {
    const listed = { credential_configuration_id: 'listed' };
    const { request } = await prepareRequest({ credentialConfigurationIds: ['listed'] }, listed);
    sinon.stub(world.store, 'commit').callsFake(() => Promise.reject(new Error('the connection broke')));
    const giveBack = sinon.spy(world.statusAllocator, 'release');
    const error = await execute(request).catch((reason: unknown) => reason);
    expect([String(error), giveBack.callCount]).to.deep.equal(['Error: the connection broke', 0]);
  });

  it('accepts a bearer token if the tenant allows it, and rejects it otherwise', async () => {
    await world.putIssuance({ dPopRequired: false });
    const bearer = await wallet.redeem((await anOffer(world)).code, { request: wallet.createOAuthRequest('token', {}, { dpop: [] }) });
    const token = bearer.body.access_token;
    const scheme = (authorization: string) => ({ wallet: { authorization, dpop: [] } });
    const wrongScheme = await wallet.credentialRequest(token, {}, scheme(`DPoP ${token}`));
    expect(await outcomeOf(execute(wrongScheme))).to.equal('invalid_token');
    expect(await outcomeOf(execute(await wallet.credentialRequest(token, {}, scheme(`Bearer ${token}`))))).to.equal('done');
    await world.putIssuance();
  });
});

describe('value derived from one version of a credential configuration', () => {
  const world = aWorld();
  const { tenant } = world.caller([]);
  const bytes = { type: 'string', contentEncoding: 'base64' };
  const versions = [
    aConfiguration({ disclosureFrame: { _sd: ['name'] }, schema: { type: 'object', properties: { name: { type: 'string' } } } }),
    aConfiguration({
      disclosureFrame: { _sd: ['born'] },
      schema: { type: 'object', properties: { name: { type: 'number' }, born: bytes } },
    }),
  ] as const;
  /** Applies `make` to both versions in turn, like requests during a change of the configuration. */
  const forBothVersions = <T>(make: (version: (typeof versions)[number]) => T): readonly T[] =>
    [versions[0], versions[1], versions[0]].map(make);

  it('has its own disclosures', () => {
    const hiddenPaths = forBothVersions((version) => [...(frameOf(tenant, version)?.hidden ?? [])]);
    expect(hiddenPaths).to.deep.equal([['name'], ['born'], ['name']]);
  });

  it('has its own claim types', async () => {
    const ports = { ...world, schemaValidator: new AjvSchemaValidator() };
    const faults = await Promise.all(
      forBothVersions((configuration) => findClaimProblems(ports, { tenant: tenant, configuration, claims: { name: 'Ada' } })),
    );
    expect(faults.map(({ length }) => length)).to.deep.equal([0, 1, 0]);
  });

  it('is derived once while that version exists', () => {
    const computed: string[] = [];
    const make = (document: object, name: string) => tenant.deriveOf(document, 'counted', () => computed.push(name));
    const [first, second] = [{}, {}];
    make(first, 'one');
    for (let time = 0; time < 3; time++) make(second, 'other');
    expect(computed).to.deep.equal(['one', 'other']);
  });

  it('does not reference the version: a cached value counts only its own size', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const make = () => {
      const version = aConfiguration({ id: 'removed', schema: { type: 'object' } });
      binarySchemaOf(tenant, version);
      return new WeakRef(version);
    };
    const versionRef = make();
    // A value that was used in a turn of the event loop is kept until its end.
    await turn();
    collect();
    expect(versionRef.deref()).to.equal(undefined);
  });

  it('has its own binary claims and its own type', () => {
    expect(forBothVersions((version) => binarySchemaOf(tenant, version)).map(Boolean)).to.deep.equal([false, true, false]);
    const texts = forBothVersions((version) => hostedType(tenant, version)?.text);
    expect(texts[0]).to.be.a('string').and.not.equal(texts[1]);
    expect(texts[2]).to.equal(texts[0]);
  });
});
