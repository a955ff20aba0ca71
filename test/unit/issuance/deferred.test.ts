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
import { anOffer, endOf, failureOf, type Issued, Wallet, WalletWorld } from '../wallet-kit.ts';

const DEFERRED = { credential_configuration_id: 'later' };

describe('RetrieveDeferred', () => {
  let world: WalletWorld;
  let wallet: Wallet;

  before(async () => {
    world = await WalletWorld.open();
    wallet = new Wallet(world);
    const claimsWebhook = { url: 'https://backend.example/claims' };
    await world.offers({ id: 'later', claims: null, claimsWebhook, statusManagement: true });
    world.webhooks.answer = { deferred: true, interval: 7 };
  });

  type Promised = { readonly id: string; readonly session: SessionId; readonly token: string; readonly refreshToken: string | undefined };

  const promise = async (): Promise<Promised> => {
    const { session, code } = await anOffer(world, { credentialConfigurationIds: ['later'] });
    const { access_token: token, refresh_token: refreshToken } = (await wallet.redeem(code)).body;
    const { transaction_id: id = '' } = await wallet.issue(token, DEFERRED);
    return { id, session: session.id, token, refreshToken };
  };
  const ready = async (): Promise<Promised> => {
    const promised = await promise();
    await world.decideDeferred.complete(await world.caller(), promised.id, { claims: { name: 'Grace' } });
    return promised;
  };
  const post = (token: string, body: unknown, more: Partial<WalletRequest> = {}) =>
    world.retrieveDeferred.execute(ACME, wallet.asking(token, 'deferred_credential', body, more), { form: 'post' });
  const fetch = ({ id, token }: Promised) => post(token, { transaction_id: id });
  /** The older form stands at one address for all tenants. */
  const get = (token: string, transactionId: string | undefined) => {
    const form: DeferredForm = { form: 'get', transactionId };
    const proof = wallet.dpop('', { token, method: 'GET', payload: { htu: `${PUBLIC_URL}/deferred_credential` } });
    const request = { wallet: { authorization: `DPoP ${token}`, dpop: [proof] }, contentType: undefined };
    return world.retrieveDeferred.execute(ACME, { ...request, body: Buffer.alloc(0) }, form);
  };
  const transaction = (id: string) => world.store.read(ACME).deferred(id);

  it('returns issuance_pending while the backend has not decided', async () => {
    const promised = await promise();
    const { status, text } = await fetch(promised);
    expect([status, JSON.parse(text)]).to.deep.equal([202, { transaction_id: promised.id, interval: 7 }]);
    const failure = await failureOf(get(promised.token, promised.id));
    expect([failure.code, failure.details.intervalSeconds]).to.deep.equal(['issuance_pending', 7]);
  });

  it('returns the ready credential once, and completes the session', async () => {
    const promised = await ready();
    const { status, text } = await fetch(promised);
    const issued = JSON.parse(text) as Issued;
    expect(status).to.equal(200);
    expect(decode(issued.credentials[0]?.credential ?? '').payload).to.include({ name: 'Grace' });
    const { session, batches } = await world.stored(promised.session);
    expect([session.status, batches.map(({ id }) => id)]).to.deep.equal(['completed', [issued.notification_id]]);
    expect(await transaction(promised.id)).to.deep.include({ status: 'retrieved', credentials: null });
    expect(await endOf(fetch(promised))).to.equal('invalid_transaction_id');
  });

  it('returns one credential by name in the former format', async () => {
    const { token, id } = await ready();
    const { text } = await get(token, id);
    const body = JSON.parse(text) as Issued & { credential: string };
    expect(body.credential).to.equal(body.credentials[0]?.credential);
  });

  it('returns it once to concurrent requests', async () => {
    const promised = await ready();
    const ends = await Promise.all([1, 2, 3].map(() => endOf(fetch(promised))));
    expect(ends.sort()).to.deep.equal(['done', 'invalid_transaction_id', 'invalid_transaction_id']);
  });

  type Refused = readonly [what: string, code: FailureCode, ask: () => Promise<unknown>];
  const refusals: readonly Refused[] = [
    ['a transaction of nobody', 'invalid_transaction_id', async () => fetch({ ...(await promise()), id: 'none' })],
    ['no transaction', 'invalid_credential_request', async () => post((await promise()).token, {})],
    ['no transaction in the older form', 'invalid_credential_request', async () => get((await promise()).token, undefined)],
    [
      'a transaction of another session',
      'invalid_transaction_id',
      async () => fetch({ ...(await ready()), token: (await promise()).token }),
    ],
    [
      'a transaction of another wallet that came by the same offer',
      'invalid_transaction_id',
      async () => {
        const ids = ['later'];
        const { session } = await anOffer(world, { flow: 'authorization_code', credentialConfigurationIds: ids });
        const tokenOf = async (user: Wallet) => {
          const pushed = await user.push({ issuer_state: session.publicId, scope: 'later' });
          return (await user.redeemCode(await user.approve(pushed))).body.access_token;
        };
        const { transaction_id: id = '' } = await wallet.issue(await tokenOf(wallet), DEFERRED);
        const other = new Wallet(world);
        const asked = other.asking(await tokenOf(other), 'deferred_credential', { transaction_id: id });
        return world.retrieveDeferred.execute(ACME, asked, { form: 'post' });
      },
    ],
    [
      'a transaction whose time is over',
      'invalid_transaction_id',
      async () => {
        const promised = await ready();
        return world.later(86_400, async () => {
          const { access_token: token } = (await wallet.refresh(promised.refreshToken)).body;
          return fetch({ ...promised, token });
        });
      },
    ],
    [
      'a transaction that its backend gave up',
      'credential_request_denied',
      async () => {
        const promised = await promise();
        await world.decideDeferred.fail(await world.caller(), promised.id, 'no such person');
        return fetch(promised);
      },
    ],
    ['another body', 'invalid_credential_request', async () => post((await promise()).token, {}, { contentType: 'text/plain' })],
    [
      'a proof for another address',
      'invalid_dpop_proof',
      async () => {
        const { token, id } = await promise();
        const request = wallet.asking(token, 'credential', { transaction_id: id });
        return world.retrieveDeferred.execute(ACME, request, { form: 'post' });
      },
    ],
    [
      'a proof that was used',
      'invalid_dpop_proof',
      async () => {
        const { token, id } = await promise();
        const request = wallet.asking(token, 'deferred_credential', { transaction_id: id });
        await world.retrieveDeferred.execute(ACME, request, { form: 'post' });
        return world.retrieveDeferred.execute(ACME, request, { form: 'post' });
      },
    ],
    [
      'a token whose grant was revoked',
      'invalid_token',
      async () => {
        const promised = await promise();
        const { grantId } = (await transaction(promised.id)) ?? {};
        const change = { grant: { id: grantId ?? '', act: 'revoke' } } as const;
        await world.store.commit(ACME, change, world.clock.now());
        return fetch(promised);
      },
    ],
    [
      'the older form where answers are encrypted',
      'invalid_encryption_parameters',
      async () => {
        const { token, id } = await promise();
        await world.issues({ requestEncryption: 'required' });
        return get(token, id).finally(() => world.issues());
      },
    ],
    [
      'everything at a tenant that is not there',
      'not_found',
      async () => {
        const request = wallet.asking('x', 'deferred_credential', {});
        return world.retrieveDeferred.execute('nobody' as TenantId, request, { form: 'post' });
      },
    ],
  ];
  for (const [what, code, ask] of refusals) {
    it(`rejects ${what}`, async () => {
      expect(await endOf(ask())).to.equal(code);
    });
  }

  it('fails a transaction that its session can no longer complete', async () => {
    const promised = await promise();
    const failed = { id: promised.session, anytime: ['active'], to: 'failed' } as const;
    await world.store.commit(ACME, { session: failed }, world.clock.now());
    expect(await endOf(fetch(promised))).to.equal('credential_request_denied');
    expect(await transaction(promised.id)).to.deep.include({ status: 'failed' });
  });

  it('returns no credential that was revoked before the request', async () => {
    const promised = await ready();
    const caller = cachedCaller(await world.caller());
    await world.revokeSession.execute(caller, { sessionId: promised.session, status: 1 });
    expect(await endOf(fetch(promised))).to.equal('credential_request_denied');
    expect(await transaction(promised.id)).to.deep.include({ status: 'failed', credentials: null });
    expect((await world.session(promised.session)).status).to.equal('active');
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
    await world.issues({ batchSize: 2 });
    const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
    const claimsWebhook = { url: 'https://backend.example/claims' };
    await world.offers({ id: 'later', claims: null, claimsWebhook, schema, statusManagement: true });
    world.webhooks.answer = { deferred: true };
  });
  beforeEach(async () => {
    caller = await world.caller();
  });

  const promise = async () => {
    const offered = await anOffer(world, { credentialConfigurationIds: ['later'] });
    const nonce = await wallet.nonce();
    const keys = [newKey(), newKey()];
    const { transaction_id: id = '' } = await wallet.issue(await wallet.token(offered), {
      credential_configuration_id: 'later',
      proofs: { jwt: keys.map((key) => wallet.keyProof(nonce, {}, key)) },
    });
    return { id, session: offered.session.id, keys };
  };
  const end = (id: SessionId) => {
    const failed = { id, anytime: ['active'], to: 'failed' } as const;
    return world.store.commit(ACME, { session: failed }, world.clock.now());
  };
  const CLAIMS = { claims: { name: 'Grace' } };

  it('signs claims for each proven key, and records the credentials', async () => {
    const { id, session, keys } = await promise();
    const completed = await decide.complete(caller, id, CLAIMS);
    const payloads = completed.credentials?.map((credential) => decode(credential).payload) ?? [];
    expect(payloads.map((payload) => payload['cnf'].jwk)).to.deep.equal(keys.map(({ jwk }) => jwk));
    expect(payloads[0]).to.include({ name: 'Grace' });
    expect(completed.status).to.equal('ready');
    const { batches } = await world.stored(session);
    expect(batches.map((batch) => [batch.id, batch.count])).to.deep.equal([[completed.batchId, 2]]);
  });

  it('accepts credentials that the backend issued', async () => {
    const { id, session } = await promise();
    const completed = await decide.complete(caller, id, { credential: 'a.b.c~' });
    expect(completed).to.deep.include({ status: 'ready', credentials: ['a.b.c~'] });
    const { batches } = await world.stored(session);
    expect(batches.map(({ count, statusListId }) => [count, statusListId])).to.deep.equal([[1, null]]);
  });

  it('fails the session with a reason for the operator', async () => {
    const { id, session } = await promise();
    const failed = await decide.fail(caller, id, 'no such person');
    expect(failed).to.deep.include({ status: 'failed', errorMessage: 'no such person' });
    const { status, outcome } = await world.session(session);
    expect([status, outcome?.failure]).to.deep.equal(['failed', { code: 'deferred_failed', message: 'no such person' }]);
  });

  it('writes an entry to the audit log', async () => {
    const { id } = await promise();
    await decide.complete(caller, id, CLAIMS);
    const entries = await world.store.forTenant(ACME, ({ audit }) => audit.list({ limit: 10 }));
    expect(entries.some((entry) => JSON.stringify(entry).includes(id))).to.equal(true);
  });

  it('lists the newest first, of one session or of all, within the rights of the client', async () => {
    const [one, other] = [await promise(), await promise()];
    const ids = (list: readonly { readonly id: string }[]) => list.map(({ id }) => id);
    expect(ids(await decide.list(caller))).to.include.members([one.id, other.id]);
    expect(ids(await decide.list(caller, one.session))).to.deep.equal([one.id]);
    expect(await decide.list({ ...caller, allowedIssuanceConfigs: ['card'] })).to.deep.equal([]);
  });

  type Refused = readonly [what: string, code: FailureCode, ask: () => Promise<unknown>];
  const decided = async () => {
    const { id } = await promise();
    await decide.complete(caller, id, CLAIMS);
    return id;
  };
  const refusals: readonly Refused[] = [
    ['to get what is not there', 'not_found', () => decide.get(caller, 'none')],
    ['to complete what is not there', 'not_found', () => decide.complete(caller, 'none', CLAIMS)],
    ['to fail what is not there', 'not_found', () => decide.fail(caller, 'none', 'no')],
    [
      'what a client may not see',
      'not_found',
      async () => decide.get({ ...caller, allowedIssuanceConfigs: ['card'] }, (await promise()).id),
    ],
    ['to complete twice', 'conflict', async () => decide.complete(caller, await decided(), CLAIMS)],
    ['to fail what is ready', 'conflict', async () => decide.fail(caller, await decided(), 'no')],
    [
      'to complete what is over',
      'conflict',
      async () => {
        const { id } = await promise();
        return world.later(86_400, () => decide.complete(caller, id, CLAIMS));
      },
    ],
    [
      'to complete what its session cannot issue',
      'conflict',
      async () => {
        const { id, session } = await promise();
        await end(session);
        return decide.complete(caller, id, CLAIMS);
      },
    ],
    [
      'more credentials than keys',
      'invalid_input',
      async () => decide.complete(caller, (await promise()).id, { credentials: ['a', 'b', 'c'] }),
    ],
  ];
  for (const [what, code, ask] of refusals) {
    it(`rejects ${what}`, async () => {
      expect(await endOf(ask())).to.equal(code);
    });
  }

  it('rejects invalid claims with their path, and stores nothing', async () => {
    const { id, session } = await promise();
    const { code, details } = await failureOf(decide.complete(caller, id, { claims: { name: 7 } }));
    expect([code, details.errors?.[0]?.path]).to.deep.equal(['invalid_input', 'claims.name']);
    expect((await decide.get(caller, id)).status).to.equal('pending');
    expect((await world.stored(session)).batches).to.deep.equal([]);
  });

  it('rejects the completion of a credential whose configuration was removed', async () => {
    const { id } = await promise();
    await world.store.forTenant(ACME, (own) => own.credentialConfigurations.remove('later'), { by: 'system' });
    expect(await endOf(decide.complete(await world.caller(), id, CLAIMS))).to.equal('conflict');
  });

  it('accepts exactly one of three ways to complete', () => {
    const bodies = [CLAIMS, { credential: 'a' }, { credentials: ['a'] }, {}, { ...CLAIMS, credential: 'a' }];
    const good = bodies.map((body) => DeferredCompletion.safeParse(body).success);
    expect(good).to.deep.equal([true, true, true, false, false]);
  });
});
