import { expect } from 'chai';
import sinon from 'sinon';
import type { WalletRequest } from '../../../application/issuance/issue-credential.ts';
import type { FailureCode } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { decode } from '../../support/present.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { ACME } from '../verification-flow/kit.ts';
import { anOffer, type Offered, Wallet } from '../wallet.ts';
import { endOf, failureOf, WalletWorld } from '../wallet-kit.ts';

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
    await world.offers({
      id: 'visitor',
      iaeActions: [{ type: 'redirect_to_web', url: 'https://a.example' }],
    });
  });
  afterEach(() => sinon.restore());

  const execute = (request: WalletRequest, tenantId = ACME) =>
    world.issueCredential.execute(tenantId, request);

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
  const proofs = (make: (nonce: string) => unknown) => async () =>
    wallet.wanting(token, { proofs: make(await wallet.nonce()) });

  const callers: readonly Refused[] = [
    ['no access token', 'missing_token', header(undefined)],
    ['another scheme', 'missing_token', header('Basic YWJj')],
    ['an Authorization header of three words', 'invalid_token', header('DPoP one two')],
    ['a token of nobody', 'invalid_token', header('DPoP abc')],
    ['a bound token as a bearer token', 'invalid_token', async () => header(`Bearer ${token}`)()],
    [
      'a token whose signature is another one',
      'invalid_token',
      () => header(`DPoP ${token.slice(0, -4)}AAAA`)(),
    ],
    ['no DPoP proof', 'invalid_dpop_proof', dpop(() => [])],
    [
      'a DPoP proof for another address',
      'invalid_dpop_proof',
      dpop(() => [wallet.dpop('notification', { token })]),
    ],
    [
      'a DPoP proof for another token',
      'invalid_dpop_proof',
      dpop(() => [wallet.dpop('credential', { token: 'x' })]),
    ],
    [
      'a DPoP proof of another key',
      'invalid_token',
      dpop(() => [wallet.dpop('credential', { token, key: newKey() })]),
    ],
    [
      'a DPoP nonce of somebody',
      'use_dpop_nonce',
      dpop(() => [wallet.dpop('credential', { token, payload: { nonce: 'abc' } })]),
    ],
  ];
  const bodies: readonly Refused[] = [
    [
      'a form',
      'invalid_credential_request',
      () => wallet.wanting(token, {}, { contentType: 'application/x-www-form-urlencoded' }),
    ],
    [
      'broken JSON',
      'invalid_credential_request',
      () => wallet.wanting(token, {}, { body: Buffer.from('{') }),
    ],
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
    [
      'a configuration and an identifier',
      'invalid_credential_request',
      changed({ credential_identifier: 'card' }),
    ],
    [
      'a configuration that is not there',
      'unknown_credential_configuration',
      changed({ credential_configuration_id: 'none' }),
    ],
    [
      'an identifier that the token response did not name',
      'unknown_credential_identifier',
      changed({ credential_configuration_id: undefined, credential_identifier: 'card' }),
    ],
    [
      'what the token does not cover',
      'insufficient_scope',
      changed({ credential_configuration_id: 'unbound' }),
    ],
    [
      'what asks for an interaction by now',
      'credential_request_denied',
      changed({ credential_configuration_id: 'visitor' }),
    ],
    ['no proofs', 'invalid_proof', changed({ proofs: undefined })],
    ['a proof of another type', 'invalid_proof', proofs(() => ({ attestation: ['abc'] }))],
    [
      'more proofs than a batch has',
      'invalid_credential_request',
      proofs((nonce) => ({ jwt: [1, 2, 3].map(() => wallet.keyProof(nonce)) })),
    ],
    [
      'a proof with another signature',
      'invalid_proof',
      proofs((nonce) => ({ jwt: [`${wallet.keyProof(nonce).slice(0, -4)}AAAA`] })),
    ],
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
    ['a nonce of somebody', 'invalid_nonce', proofs(() => ({ jwt: [wallet.keyProof('abc')] }))],
  ];
  for (const [what, code, ask] of callers) {
    it(`refuses ${what}`, async () => {
      const before = await world.stored(offered.session.id);
      expect((await failureOf(execute(await ask()))).code).to.equal(code);
      expect(await world.stored(offered.session.id), 'what is stored').to.deep.equal(before);
    });
  }
  for (const [what, code, ask] of bodies) {
    it(`refuses ${what}, and keeps why, as long as there is place, and nothing else`, async () => {
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

  it('issues with the token that was refused so often, and completes the session with the last credential', async () => {
    const { credentials, notification_id: id } = await wallet.issue(token);
    const { session, batches } = await world.stored(offered.session.id);
    expect(credentials).to.have.length(1);
    expect(decode(credentials[0]?.credential ?? '').payload).to.deep.include({
      name: 'Ada',
      iss: wallet.issuer,
    });
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

  it('issues one credential for each proven key, each with a status entry of its own', async () => {
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

  it('issues without proofs what binds no key, by the identifier that the wallet was given', async () => {
    const { code } = await anOffer(world, { credentialConfigurationIds: ['unbound'] });
    const { body } = await wallet.redeem(code, { wanted: ['unbound'] });
    const named = {
      credential_configuration_id: undefined,
      credential_identifier: 'unbound',
      proofs: undefined,
    };
    const { credentials } = await wallet.issue(body.access_token, named);
    expect(decode(credentials[0]?.credential ?? '').payload).not.to.have.property('cnf');
    const byConfiguration = await wallet.wanting(body.access_token, {
      credential_configuration_id: 'card',
    });
    expect(await endOf(execute(byConfiguration))).to.equal('insufficient_scope');
  });

  it('is not found at a tenant that is not there', async () => {
    expect(await endOf(execute(await wallet.wanting(token), 'nobody' as TenantId))).to.equal('not_found');
  });
});
