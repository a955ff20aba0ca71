import { expect } from 'chai';
import type { TenantCaller } from '../../../application/caller.ts';
import { type DecideDeferred, DeferredCompletion } from '../../../application/issuance/decide-deferred.ts';
import type { WalletRequest } from '../../../application/issuance/issue-credential.ts';
import type { DeferredForm } from '../../../application/issuance/retrieve-deferred.ts';
import type { FailureCode } from '../../../domain/shared/failure.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import { decode } from '../../support/present.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { cachedCaller } from '../../support/remembered-caller.ts';
import { ACME, PUBLIC_URL } from '../verification/kit.ts';
import { anOffer, type CredentialResponse, failureOf, outcomeOf, Wallet, WalletWorld } from '../wallet-kit.ts';

const DEFERRED = { credential_configuration_id: 'later' };

describe('RetrieveDeferred', () => {
  let world: WalletWorld;
  let wallet: Wallet;

  before(async () => {
    world = await WalletWorld.open();
    wallet = new Wallet(world);
    const claimsWebhook = { url: 'https://backend.example/claims' };
    await world.putCredential({ id: 'later', claims: null, claimsWebhook, statusManagement: true });
    world.webhooks.answer = { deferred: true, interval: 7 };
  });

  type DeferredIssuance = {
    readonly id: string;
    readonly session: SessionId;
    readonly token: string;
    readonly refreshToken: string | undefined;
  };

  const startDeferred = async (): Promise<DeferredIssuance> => {
    const { session, code } = await anOffer(world, { credentialConfigurationIds: ['later'] });
    const { access_token: token, refresh_token: refreshToken } = (await wallet.redeem(code)).body;
    const { transaction_id: id = '' } = await wallet.issue(token, DEFERRED);
    return { id, session: session.id, token, refreshToken };
  };
  const startCompleted = async (): Promise<DeferredIssuance> => {
    const deferred = await startDeferred();
    await world.decideDeferred.complete(await world.caller(), deferred.id, { claims: { name: 'Grace' } });
    return deferred;
  };
  const requestDeferred = (token: string, body: unknown, options: Partial<WalletRequest> = {}) =>
    world.retrieveDeferred.execute(ACME, wallet.protectedRequest(token, 'deferred_credential', body, options), { form: 'post' });
  const fetchCredential = ({ id, token }: DeferredIssuance) => requestDeferred(token, { transaction_id: id });
  /** The older form has one address for all tenants. */
  const get = (token: string, transactionId: string | undefined) => {
    const form: DeferredForm = { form: 'get', transactionId };
    const proof = wallet.dpop('', { token, method: 'GET', payload: { htu: `${PUBLIC_URL}/deferred_credential` } });
    const request = { wallet: { authorization: `DPoP ${token}`, dpop: [proof] }, contentType: undefined };
    return world.retrieveDeferred.execute(ACME, { ...request, body: Buffer.alloc(0) }, form);
  };
  const transaction = (id: string) => world.store.read(ACME).deferred(id);

  it('returns issuance_pending while the backend has not decided', async () => {
    const deferred = await startDeferred();
    const { status, text } = await fetchCredential(deferred);
    expect([status, JSON.parse(text)]).to.deep.equal([202, { transaction_id: deferred.id, interval: 7 }]);
    const failure = await failureOf(get(deferred.token, deferred.id));
    expect([failure.code, failure.details.intervalSeconds]).to.deep.equal(['issuance_pending', 7]);
  });

  it('returns the ready credential once, and completes the session', async () => {
    const deferred = await startCompleted();
    const { status, text } = await fetchCredential(deferred);
    const response = JSON.parse(text) as CredentialResponse;
    expect(status).to.equal(200);
    expect(decode(response.credentials[0]?.credential ?? '').payload).to.include({ name: 'Grace' });
    const { session, batches } = await world.storedIssuance(deferred.session);
    expect([session.status, batches.map(({ id }) => id)]).to.deep.equal(['completed', [response.notification_id]]);
    expect(await transaction(deferred.id)).to.deep.include({ status: 'retrieved', credentials: null });
    expect(await outcomeOf(fetchCredential(deferred))).to.equal('invalid_transaction_id');
  });

  it('returns one credential by name in the former format', async () => {
    const { token, id } = await startCompleted();
    const { text } = await get(token, id);
    const body = JSON.parse(text) as CredentialResponse & { credential: string };
    expect(body.credential).to.equal(body.credentials[0]?.credential);
  });

  it('returns it once to concurrent requests', async () => {
    const deferred = await startCompleted();
    const outcomes = await Promise.all([1, 2, 3].map(() => outcomeOf(fetchCredential(deferred))));
    expect(outcomes.sort()).to.deep.equal(['done', 'invalid_transaction_id', 'invalid_transaction_id']);
  });

  type RejectionCase = readonly [description: string, code: FailureCode, call: () => Promise<unknown>];
  const rejections: readonly RejectionCase[] = [
    ['an unknown transaction', 'invalid_transaction_id', async () => fetchCredential({ ...(await startDeferred()), id: 'none' })],
    ['no transaction', 'invalid_credential_request', async () => requestDeferred((await startDeferred()).token, {})],
    ['no transaction in the older form', 'invalid_credential_request', async () => get((await startDeferred()).token, undefined)],
    [
      'a transaction of another session',
      'invalid_transaction_id',
      async () => fetchCredential({ ...(await startCompleted()), token: (await startDeferred()).token }),
    ],
    [
      'a transaction of another wallet with the same offer',
      'invalid_transaction_id',
      async () => {
        const ids = ['later'];
        const { session } = await anOffer(world, { flow: 'authorization_code', credentialConfigurationIds: ids });
        const tokenOf = async (user: Wallet) => {
          const requestUri = await user.push({ issuer_state: session.publicId, scope: 'later' });
          return (await user.redeemCode(await user.approve(requestUri))).body.access_token;
        };
        const { transaction_id: id = '' } = await wallet.issue(await tokenOf(wallet), DEFERRED);
        const otherWallet = new Wallet(world);
        const request = otherWallet.protectedRequest(await tokenOf(otherWallet), 'deferred_credential', { transaction_id: id });
        return world.retrieveDeferred.execute(ACME, request, { form: 'post' });
      },
    ],
    [
      'a transaction whose time is over',
      'invalid_transaction_id',
      async () => {
        const deferred = await startCompleted();
        return world.afterSeconds(86_400, async () => {
          const { access_token: token } = (await wallet.refresh(deferred.refreshToken)).body;
          return fetchCredential({ ...deferred, token });
        });
      },
    ],
    [
      'a transaction that its backend failed',
      'credential_request_denied',
      async () => {
        const deferred = await startDeferred();
        await world.decideDeferred.fail(await world.caller(), deferred.id, 'no such person');
        return fetchCredential(deferred);
      },
    ],
    [
      'another body',
      'invalid_credential_request',
      async () => requestDeferred((await startDeferred()).token, {}, { contentType: 'text/plain' }),
    ],
    [
      'a proof for another address',
      'invalid_dpop_proof',
      async () => {
        const { token, id } = await startDeferred();
        const request = wallet.protectedRequest(token, 'credential', { transaction_id: id });
        return world.retrieveDeferred.execute(ACME, request, { form: 'post' });
      },
    ],
    [
      'a proof that was used',
      'invalid_dpop_proof',
      async () => {
        const { token, id } = await startDeferred();
        const request = wallet.protectedRequest(token, 'deferred_credential', { transaction_id: id });
        await world.retrieveDeferred.execute(ACME, request, { form: 'post' });
        return world.retrieveDeferred.execute(ACME, request, { form: 'post' });
      },
    ],
    [
      'a token whose grant was revoked',
      'invalid_token',
      async () => {
        const deferred = await startDeferred();
        const { grantId } = (await transaction(deferred.id)) ?? {};
        const change = { grant: { id: grantId ?? '', act: 'revoke' } } as const;
        await world.store.commit(ACME, change, world.clock.now());
        return fetchCredential(deferred);
      },
    ],
    [
      'the older form where answers are encrypted',
      'invalid_encryption_parameters',
      async () => {
        const { token, id } = await startDeferred();
        await world.putIssuance({ requestEncryption: 'required' });
        return get(token, id).finally(() => world.putIssuance());
      },
    ],
    [
      'everything at an unknown tenant',
      'not_found',
      async () => {
        const request = wallet.protectedRequest('x', 'deferred_credential', {});
        return world.retrieveDeferred.execute('unknown' as TenantId, request, { form: 'post' });
      },
    ],
  ];
  for (const [description, code, call] of rejections) {
    it(`rejects ${description}`, async () => {
      expect(await outcomeOf(call())).to.equal(code);
    });
  }

  it('fails a transaction that its session can no longer complete', async () => {
    const deferred = await startDeferred();
    const change = { id: deferred.session, anytime: ['active'], to: 'failed' } as const;
    await world.store.commit(ACME, { session: change }, world.clock.now());
    expect(await outcomeOf(fetchCredential(deferred))).to.equal('credential_request_denied');
    expect(await transaction(deferred.id)).to.deep.include({ status: 'failed' });
  });

  it('returns no credential that was revoked before the request', async () => {
    const deferred = await startCompleted();
    const caller = cachedCaller(await world.caller());
    await world.revokeSession.execute(caller, { sessionId: deferred.session, status: 1 });
    expect(await outcomeOf(fetchCredential(deferred))).to.equal('credential_request_denied');
    expect(await transaction(deferred.id)).to.deep.include({ status: 'failed', credentials: null });
    expect((await world.session(deferred.session)).status).to.equal('active');
  });
});

describe('DecideDeferred', () => {
  let world: WalletWorld;
  let wallet: Wallet;
  let decide: DecideDeferred;
  let caller: TenantCaller;

  before(async () => {
    world = await WalletWorld.open();
    wallet = new Wallet(world);
    decide = world.decideDeferred;
    await world.putIssuance({ batchSize: 2 });
    const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
    const claimsWebhook = { url: 'https://backend.example/claims' };
    await world.putCredential({ id: 'later', claims: null, claimsWebhook, schema, statusManagement: true });
    world.webhooks.answer = { deferred: true };
  });
  beforeEach(async () => {
    caller = await world.caller();
  });

  const startDeferred = async () => {
    const offer = await anOffer(world, { credentialConfigurationIds: ['later'] });
    const nonce = await wallet.nonce();
    const keys = [newKey(), newKey()];
    const { transaction_id: id = '' } = await wallet.issue(await wallet.token(offer), {
      credential_configuration_id: 'later',
      proofs: { jwt: keys.map((key) => wallet.keyProof(nonce, {}, key)) },
    });
    return { id, session: offer.session.id, keys };
  };
  const failSession = (id: SessionId) => {
    const change = { id, anytime: ['active'], to: 'failed' } as const;
    return world.store.commit(ACME, { session: change }, world.clock.now());
  };
  const CLAIMS = { claims: { name: 'Grace' } };

  it('signs claims for each proven key, and records the credentials', async () => {
    const { id, session, keys } = await startDeferred();
    const completed = await decide.complete(caller, id, CLAIMS);
    const payloads = completed.credentials?.map((credential) => decode(credential).payload) ?? [];
    expect(payloads.map((payload) => payload['cnf'].jwk)).to.deep.equal(keys.map(({ jwk }) => jwk));
    expect(payloads[0]).to.include({ name: 'Grace' });
    expect(completed.status).to.equal('ready');
    const { batches } = await world.storedIssuance(session);
    expect(batches.map((batch) => [batch.id, batch.count])).to.deep.equal([[completed.batchId, 2]]);
  });

  it('accepts credentials that the backend issued', async () => {
    const { id, session } = await startDeferred();
    const completed = await decide.complete(caller, id, { credential: 'a.b.c~' });
    expect(completed).to.deep.include({ status: 'ready', credentials: ['a.b.c~'] });
    const { batches } = await world.storedIssuance(session);
    expect(batches.map(({ count, statusListId }) => [count, statusListId])).to.deep.equal([[1, null]]);
  });

  it('fails the session with a reason for the operator', async () => {
    const { id, session } = await startDeferred();
    const result = await decide.fail(caller, id, 'no such person');
    expect(result).to.deep.include({ status: 'failed', errorMessage: 'no such person' });
    const { status, outcome } = await world.session(session);
    expect([status, outcome?.failure]).to.deep.equal(['failed', { code: 'deferred_failed', message: 'no such person' }]);
  });

  it('writes an entry to the audit log', async () => {
    const { id } = await startDeferred();
    await decide.complete(caller, id, CLAIMS);
    const entries = await world.store.forTenant(ACME, ({ audit }) => audit.list({ limit: 10 }));
    expect(entries.some((entry) => JSON.stringify(entry).includes(id))).to.equal(true);
  });

  it('lists the newest first, of one session or of all, within the rights of the client', async () => {
    const [first, otherWallet] = [await startDeferred(), await startDeferred()];
    const ids = (list: readonly { readonly id: string }[]) => list.map(({ id }) => id);
    expect(ids(await decide.list(caller))).to.include.members([first.id, otherWallet.id]);
    expect(ids(await decide.list(caller, first.session))).to.deep.equal([first.id]);
    expect(await decide.list({ ...caller, allowedIssuanceConfigs: ['card'] })).to.deep.equal([]);
  });

  type RejectionCase = readonly [description: string, code: FailureCode, call: () => Promise<unknown>];
  const createDecided = async () => {
    const { id } = await startDeferred();
    await decide.complete(caller, id, CLAIMS);
    return id;
  };
  const rejections: readonly RejectionCase[] = [
    ['to get an unknown transaction', 'not_found', () => decide.get(caller, 'none')],
    ['to complete an unknown transaction', 'not_found', () => decide.complete(caller, 'none', CLAIMS)],
    ['to fail an unknown transaction', 'not_found', () => decide.fail(caller, 'none', 'no')],
    [
      'a transaction that the client may not see',
      'not_found',
      async () => decide.get({ ...caller, allowedIssuanceConfigs: ['card'] }, (await startDeferred()).id),
    ],
    ['to complete twice', 'conflict', async () => decide.complete(caller, await createDecided(), CLAIMS)],
    ['to fail a completed transaction', 'conflict', async () => decide.fail(caller, await createDecided(), 'no')],
    [
      'to complete a failed transaction',
      'conflict',
      async () => {
        const { id } = await startDeferred();
        return world.afterSeconds(86_400, () => decide.complete(caller, id, CLAIMS));
      },
    ],
    [
      'to complete with claims that its session cannot issue',
      'conflict',
      async () => {
        const { id, session } = await startDeferred();
        await failSession(session);
        return decide.complete(caller, id, CLAIMS);
      },
    ],
    [
      'more credentials than keys',
      'invalid_input',
      async () => decide.complete(caller, (await startDeferred()).id, { credentials: ['a', 'b', 'c'] }),
    ],
  ];
  for (const [description, code, call] of rejections) {
    it(`rejects ${description}`, async () => {
      expect(await outcomeOf(call())).to.equal(code);
    });
  }

  it('rejects invalid claims with their path, and stores nothing', async () => {
    const { id, session } = await startDeferred();
    const { code, details } = await failureOf(decide.complete(caller, id, { claims: { name: 7 } }));
    expect([code, details.errors?.[0]?.path]).to.deep.equal(['invalid_input', 'claims.name']);
    expect((await decide.get(caller, id)).status).to.equal('pending');
    expect((await world.storedIssuance(session)).batches).to.deep.equal([]);
  });

  it('rejects the completion of a credential whose configuration was removed', async () => {
    const { id } = await startDeferred();
    await world.store.forTenant(ACME, (repositories) => repositories.credentialConfigurations.remove('later'), { by: 'system' });
    expect(await outcomeOf(decide.complete(await world.caller(), id, CLAIMS))).to.equal('conflict');
  });

  it('accepts exactly one of three ways to complete', () => {
    const bodies = [CLAIMS, { credential: 'a' }, { credentials: ['a'] }, {}, { ...CLAIMS, credential: 'a' }];
    const results = bodies.map((body) => DeferredCompletion.safeParse(body).success);
    expect(results).to.deep.equal([true, true, true, false, false]);
  });
});
