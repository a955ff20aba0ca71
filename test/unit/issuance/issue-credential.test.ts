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
import { anOffer, endOf, failureOf, type Offered, Wallet, WalletWorld } from '../wallet-kit.ts';
import { aConfiguration } from './kit.ts';

describe('IssueCredential', () => {
  let world: WalletWorld;
  let wallet: Wallet;
  /** Serves every refusal, since none of them may change anything. */
  let offered: Offered;
  let token: string;

  before(async () => {
    world = await WalletWorld.open();
    await world.issues({ batchSize: 2 });
    await world.offers({ id: 'listed', statusManagement: true });
    await world.offers({ id: 'unbound', keyBinding: false });
    await world.offers({ id: 'visitor', iaeActions: [] });
    wallet = new Wallet(world);
    offered = await anOffer(world, { credentialConfigurationIds: ['card', 'visitor'] });
    token = await wallet.token(offered);
    // With this from the beginning there would be no pre-authorized code for it.
    await world.offers({ id: 'visitor', iaeActions: [{ type: 'redirect_to_web', url: 'https://a.example' }] });
  });
  afterEach(() => sinon.restore());

  const execute = (request: WalletRequest, tenantId = ACME) => world.issueCredential.execute(tenantId, request);

  type Refused = readonly [what: string, code: FailureCode, ask: () => Promise<WalletRequest>];
  const header = (authorization: string | undefined) => async () => {
    const request = await wallet.wanting(token);
    return { ...request, wallet: { ...request.wallet, authorization } };
  };
  const dpop = (make: () => string[]) => async () => {
    const request = await wallet.wanting(token);
    return { ...request, wallet: { ...request.wallet, dpop: make() } };
  };
  const changed = (changes: object) => () => wallet.wanting(token, changes);
  const proofs = (make: (nonce: string) => unknown) => async () => wallet.wanting(token, { proofs: make(await wallet.nonce()) });

  const callers: readonly Refused[] = [
    ['no access token', 'missing_token', header(undefined)],
    ['another scheme', 'missing_token', header('Basic YWJj')],
    ['an Authorization header of three words', 'invalid_token', header('DPoP one two')],
    ['an unknown token', 'invalid_token', header('DPoP abc')],
    ['a bound token as a bearer token', 'invalid_token', async () => header(`Bearer ${token}`)()],
    ['a token whose signature is another one', 'invalid_token', () => header(`DPoP ${token.slice(0, -4)}AAAA`)()],
    ['no DPoP proof', 'invalid_dpop_proof', dpop(() => [])],
    ['a DPoP proof for another address', 'invalid_dpop_proof', dpop(() => [wallet.dpop('notification', { token })])],
    ['a DPoP proof for another token', 'invalid_dpop_proof', dpop(() => [wallet.dpop('credential', { token: 'x' })])],
    ['a DPoP proof of another key', 'invalid_token', dpop(() => [wallet.dpop('credential', { token, key: newKey() })])],
    ['an unknown DPoP nonce', 'use_dpop_nonce', dpop(() => [wallet.dpop('credential', { token, payload: { nonce: 'abc' } })])],
  ];
  const bodies: readonly Refused[] = [
    ['a form', 'invalid_credential_request', () => wallet.wanting(token, {}, { contentType: 'application/x-www-form-urlencoded' })],
    ['broken JSON', 'invalid_credential_request', () => wallet.wanting(token, {}, { body: Buffer.from('{') })],
    [
      'what does not decrypt',
      'invalid_encryption_parameters',
      () => wallet.wanting(token, {}, { contentType: 'application/jwt', body: Buffer.from('a.b.c.d.e') }),
    ],
    [
      'an encrypted answer to a plain request',
      'invalid_encryption_parameters',
      changed({ credential_response_encryption: { enc: 'A256GCM', jwk: {} } }),
    ],
    ['a configuration and an identifier', 'invalid_credential_request', changed({ credential_identifier: 'card' })],
    ['a configuration that is not there', 'unknown_credential_configuration', changed({ credential_configuration_id: 'none' })],
    [
      'an identifier that the token response did not name',
      'unknown_credential_identifier',
      changed({ credential_configuration_id: undefined, credential_identifier: 'card' }),
    ],
    ['what the token does not cover', 'insufficient_scope', changed({ credential_configuration_id: 'unbound' })],
    ['what asks for an interaction by now', 'credential_request_denied', changed({ credential_configuration_id: 'visitor' })],
    ['no proofs', 'invalid_proof', changed({ proofs: undefined })],
    ['a proof of another type', 'invalid_proof', proofs(() => ({ attestation: ['abc'] }))],
    [
      'more proofs than a batch has',
      'invalid_credential_request',
      proofs((nonce) => ({ jwt: [1, 2, 3].map(() => wallet.keyProof(nonce)) })),
    ],
    ['a proof with another signature', 'invalid_proof', proofs((nonce) => ({ jwt: [`${wallet.keyProof(nonce).slice(0, -4)}AAAA`] }))],
    [
      'a proof for another issuer',
      'invalid_proof',
      proofs((nonce) => ({ jwt: [wallet.keyProof(nonce, { payload: { aud: 'https://else.example' } })] })),
    ],
    [
      'one key in two proofs',
      'invalid_proof',
      proofs((nonce) => {
        const key = newKey();
        return { jwt: [wallet.keyProof(nonce, {}, key), wallet.keyProof(nonce, {}, key)] };
      }),
    ],
    ['an unknown nonce', 'invalid_nonce', proofs(() => ({ jwt: [wallet.keyProof('abc')] }))],
  ];
  for (const [what, code, ask] of callers) {
    it(`rejects ${what}`, async () => {
      const before = await world.stored(offered.session.id);
      expect((await failureOf(execute(await ask()))).code).to.equal(code);
      expect(await world.stored(offered.session.id), 'what is stored').to.deep.equal(before);
    });
  }
  for (const [what, code, ask] of bodies) {
    it(`rejects ${what}, and records only the reason, up to a limit`, async () => {
      const { session: before, batches } = await world.stored(offered.session.id);
      const refused = await failureOf(execute({ ...(await ask()), requestId: 'r-1' }));
      expect(refused.code).to.equal(code);
      const { session: after, batches: made } = await world.stored(offered.session.id);
      const { attempts = [] } = after.outcome ?? {};
      const { at: _at, ...last } = attempts.at(-1) ?? { at: '' };
      expect(last).to.deep.equal({ code, reason: refused.message, requestId: 'r-1' });
      expect(attempts).to.have.length((before.outcome?.attempts?.length ?? 0) + 1);
      const noted = { outcome: after.outcome, version: after.version, updatedAt: after.updatedAt };
      expect([{ ...before, ...noted }, batches], 'what is stored').to.deep.equal([after, made]);
    });
  }

  it('issues with a token that was rejected repeatedly, and completes the session with the last credential', async () => {
    const { credentials, notification_id: id } = await wallet.issue(token);
    const { session, batches } = await world.stored(offered.session.id);
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
    const { batches } = await world.stored(session.id);
    const list = await world.store.read(ACME).statusList(batches[0]?.statusListId ?? '');
    expect(batches.map(({ count }) => count)).to.deep.equal([2]);
    expect(payloads[0]?.['status'].status_list.uri).to.equal(`${wallet.issuer}/status-list/${list?.id}`);
  });

  it('issues a credential without key binding without proofs, by its identifier', async () => {
    const { code } = await anOffer(world, { credentialConfigurationIds: ['unbound'] });
    const { body } = await wallet.redeem(code, { requestedIds: ['unbound'] });
    const named = { credential_configuration_id: undefined, credential_identifier: 'unbound', proofs: undefined };
    const { credentials } = await wallet.issue(body.access_token, named);
    expect(decode(credentials[0]?.credential ?? '').payload).not.to.have.property('cnf');
    const byConfiguration = await wallet.wanting(body.access_token, { credential_configuration_id: 'card' });
    expect(await endOf(execute(byConfiguration))).to.equal('insufficient_scope');
  });

  it('fails for an unknown tenant', async () => {
    expect(await endOf(execute(await wallet.wanting(token), 'nobody' as TenantId))).to.equal('not_found');
  });
});

/** One request each, whose offer, grant and proofs are its own. */
describe('credential request', () => {
  let world: WalletWorld;
  let wallet: Wallet;

  before(async () => {
    world = await WalletWorld.open();
    wallet = new Wallet(world);
    await world.offers({ id: 'listed', statusManagement: true });
  });
  afterEach(() => sinon.restore());

  type Ready = { readonly offered: Offered; readonly token: string; readonly request: WalletRequest };
  const ready = async (changes: object = {}, wanted: object = {}): Promise<Ready> => {
    const offered = await anOffer(world, changes);
    const token = await wallet.token(offered);
    return { offered, token, request: await wallet.wanting(token, wanted) };
  };
  const execute = (request: WalletRequest) => world.issueCredential.execute(ACME, request);
  const moved = (session: Session, to: Session['status']) =>
    world.store.commit(ACME, { session: { id: session.id, anytime: ['active'], to } }, world.clock.now());

  it('needs one commit and no read while all data are cached', async () => {
    const { request } = await ready();
    await world.caller();
    const [read, commit] = [sinon.spy(world.store, 'read'), sinon.spy(world.store, 'commit')];
    await execute(request);
    expect([read.callCount, commit.callCount]).to.deep.equal([0, 1]);
  });

  it('is issued by a process without cached data', async () => {
    const { request, offered } = await ready();
    const other = new IssueCredential(world.elsewhere());
    expect((await other.execute(ACME, request)).status).to.equal(200);
    expect((await world.stored(offered.session.id)).batches).to.have.length(1);
  });

  it('uses the configuration that another process changed just before', async () => {
    const { request, offered } = await ready();
    await world.offers({ id: 'card', claims: { name: 'Grace' } });
    const { text } = await execute(request);
    const [, payload = ''] = (JSON.parse(text).credentials[0].credential as string).split('.');
    expect(JSON.parse(Buffer.from(payload, 'base64url').toString())).to.include({ name: 'Grace' });
    expect((await world.stored(offered.session.id)).batches).to.have.length(1);
  });

  it('is rejected for a configuration that another process removed', async () => {
    await world.offers({ id: 'gone' });
    const gone = { credentialConfigurationIds: ['gone'] };
    const { request, offered } = await ready(gone, { credential_configuration_id: 'gone' });
    await world.store.forTenant(ACME, (own) => own.credentialConfigurations.remove('gone'), { by: 'system' });
    expect(await endOf(execute(request))).to.equal('unknown_credential_configuration');
    expect((await world.stored(offered.session.id)).batches).to.deep.equal([]);
  });

  it('is rejected for a tenant that another process suspended', async () => {
    const { request, offered } = await ready();
    await world.change({ status: 'suspended' });
    expect(await endOf(execute(request))).to.equal('not_found');
    await world.change({ status: 'active' });
    expect((await world.stored(offered.session.id)).batches).to.deep.equal([]);
    expect(await endOf(execute(request)), 'nothing of it was spent').to.equal('done');
  });

  type Meeting = (asked: Ready) => Promise<Partial<WalletRequest> | undefined>;
  const met: readonly [what: string, code: FailureCode, meet: Meeting][] = [
    [
      'comes with a nonce that was used',
      'invalid_nonce',
      async ({ request, token }) => {
        await execute(request);
        return { wallet: (await wallet.wanting(token)).wallet };
      },
    ],
    [
      'comes with a DPoP proof that was used',
      'invalid_dpop_proof',
      async ({ request, token }) => {
        await execute(request);
        return { body: (await wallet.wanting(token)).body };
      },
    ],
    [
      'comes with a token whose grant was revoked by another process',
      'invalid_token',
      async ({ offered }) => {
        const grant = (await world.store.read(ACME).grantByCode(hashCode(offered.code)))?.grant;
        await world.store.commit(ACME, { grant: { id: grant?.id ?? '', act: 'revoke' } }, world.clock.now());
        return undefined;
      },
    ],
    [
      'comes after another process ended the session',
      'credential_request_denied',
      async ({ offered }) => {
        await moved(offered.session, 'failed');
        return undefined;
      },
    ],
    [
      'comes for a session that is gone',
      'credential_request_denied',
      async ({ offered }) => {
        await world.store.commit(ACME, { removes: offered.session.id }, world.clock.now());
        return undefined;
      },
    ],
  ];
  for (const [what, code, meet] of met) {
    it(`is rejected when it ${what}, and nothing more is issued`, async () => {
      const asked = await ready();
      const changes = await meet(asked);
      const before = await world.store.read(ACME).issued(asked.offered.session.id);
      expect(await endOf(execute({ ...asked.request, ...changes }))).to.equal(code);
      expect(await world.store.read(ACME).issued(asked.offered.session.id)).to.deep.equal(before);
    });
  }

  const late: readonly [what: string, code: FailureCode, seconds: number, offer: object][] = [
    ['the access token has ended', 'invalid_token', 1800, {}],
    ['its nonce has ended', 'invalid_nonce', 300, {}],
    ['the offer has ended', 'credential_request_denied', 60, { expiresIn: 60 }],
  ];
  for (const [what, code, seconds, offer] of late) {
    it(`is rejected when ${what}`, async () => {
      const { token, request } = await ready(offer);
      const late = () => ({ wallet: { ...request.wallet, dpop: [wallet.dpop('credential', { token })] } });
      expect(await world.later(seconds, () => endOf(execute({ ...request, ...late() })))).to.equal(code);
    });
  }

  it('gets no credential after its revocation, and releases its status entry', async () => {
    const listed = { credential_configuration_id: 'listed' };
    const both = { credentialConfigurationIds: ['listed', 'card'] };
    const { token, request, offered } = await ready(both, listed);
    await execute(request);
    const caller = cachedCaller(await world.caller());
    await world.revokeSession.execute(caller, { sessionId: offered.session.id, status: 1 });
    const giveBack = sinon.spy(world.statusAllocator, 'release');
    expect(await endOf(wallet.issue(token, listed))).to.equal('credential_request_denied');
    expect(giveBack.callCount).to.be.at.least(1);
    expect((await world.stored(offered.session.id)).batches).to.have.length(1);
  });

  it('keeps its status entries while it is unknown whether its credentials were recorded', async () => {
    const listed = { credential_configuration_id: 'listed' };
    const { request } = await ready({ credentialConfigurationIds: ['listed'] }, listed);
    sinon.stub(world.store, 'commit').callsFake(() => Promise.reject(new Error('the connection broke')));
    const giveBack = sinon.spy(world.statusAllocator, 'release');
    const error = await execute(request).catch((reason: unknown) => reason);
    expect([String(error), giveBack.callCount]).to.deep.equal(['Error: the connection broke', 0]);
  });

  it('accepts a bearer token if the tenant allows it, and rejects it otherwise', async () => {
    await world.issues({ dPopRequired: false });
    const bearer = await wallet.redeem((await anOffer(world)).code, { request: wallet.oauth('token', {}, { dpop: [] }) });
    const token = bearer.body.access_token;
    const scheme = (authorization: string) => ({ wallet: { authorization, dpop: [] } });
    const wrong = await wallet.wanting(token, {}, scheme(`DPoP ${token}`));
    expect(await endOf(execute(wrong))).to.equal('invalid_token');
    expect(await endOf(execute(await wallet.wanting(token, {}, scheme(`Bearer ${token}`))))).to.equal('done');
    await world.issues();
  });
});

describe('value derived from one version of a credential configuration', () => {
  const world = aWorld();
  const { tenant: configured } = world.caller([]);
  const bytes = { type: 'string', contentEncoding: 'base64' };
  const versions = [
    aConfiguration({ disclosureFrame: { _sd: ['name'] }, schema: { type: 'object', properties: { name: { type: 'string' } } } }),
    aConfiguration({
      disclosureFrame: { _sd: ['born'] },
      schema: { type: 'object', properties: { name: { type: 'number' }, born: bytes } },
    }),
  ] as const;
  /** Both of them before the tenant is known to have another revision, as somebody sees them who reads while it changes. */
  const ofBoth = <T>(make: (version: (typeof versions)[number]) => T): readonly T[] => [versions[0], versions[1], versions[0]].map(make);

  it('has its own disclosures', () => {
    const hidden = ofBoth((version) => [...(frameOf(configured, version)?.hidden ?? [])]);
    expect(hidden).to.deep.equal([['name'], ['born'], ['name']]);
  });

  it('has its own claim types', async () => {
    const ports = { ...world, schemaValidator: new AjvSchemaValidator() };
    const faults = await Promise.all(
      ofBoth((configuration) => findClaimProblems(ports, { tenant: configured, configuration, claims: { name: 'Ada' } })),
    );
    expect(faults.map(({ length }) => length)).to.deep.equal([0, 1, 0]);
  });

  it('is derived once while that version exists', () => {
    const counted: string[] = [];
    const make = (document: object, name: string) => configured.deriveOf(document, 'counted', () => counted.push(name));
    const [one, other] = [{}, {}];
    make(one, 'one');
    for (let time = 0; time < 3; time++) make(other, 'other');
    expect(counted).to.deep.equal(['one', 'other']);
  });

  it('does not reference the version: a cached value counts only its own size', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const make = () => {
      const version = aConfiguration({ id: 'removed', schema: { type: 'object' } });
      binarySchemaOf(configured, version);
      return new WeakRef(version);
    };
    const made = make();
    // What was looked at in a turn of the event loop stays until its end.
    await turn();
    collect();
    expect(made.deref()).to.equal(undefined);
  });

  it('has its own binary claims and its own type', () => {
    expect(ofBoth((version) => binarySchemaOf(configured, version)).map(Boolean)).to.deep.equal([false, true, false]);
    const texts = ofBoth((version) => hostedType(configured, version)?.text);
    expect(texts[0]).to.be.a('string').and.not.equal(texts[1]);
    expect(texts[2]).to.equal(texts[0]);
  });
});
