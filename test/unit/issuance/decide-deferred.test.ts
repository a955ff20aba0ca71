import { expect } from 'chai';
import type { TenantCaller } from '../../../application/caller.ts';
import { type DecideDeferred, DeferredCompletion } from '../../../application/issuance/decide-deferred.ts';
import type { FailureCode } from '../../../domain/shared/failure.ts';
import type { SessionId } from '../../../domain/shared/ids.ts';
import { decode } from '../../support/present.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { ACME } from '../verification-flow/kit.ts';
import { anOffer, Wallet } from '../wallet.ts';
import { endOf, failureOf, WalletWorld } from '../wallet-kit.ts';

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

  it('signs claims for each key that was proven, and puts that on record', async () => {
    const { id, session, keys } = await promise();
    const completed = await decide.complete(caller, id, CLAIMS);
    const payloads = completed.credentials?.map((credential) => decode(credential).payload) ?? [];
    expect(payloads.map((payload) => payload['cnf'].jwk)).to.deep.equal(keys.map(({ jwk }) => jwk));
    expect(payloads[0]).to.include({ name: 'Grace' });
    expect(completed.status).to.equal('ready');
    const { batches } = await world.stored(session);
    expect(batches.map((batch) => [batch.id, batch.count])).to.deep.equal([[completed.batchId, 2]]);
  });

  it('takes credentials that the backend made', async () => {
    const { id, session } = await promise();
    const completed = await decide.complete(caller, id, { credential: 'a.b.c~' });
    expect(completed).to.deep.include({ status: 'ready', credentials: ['a.b.c~'] });
    const { batches } = await world.stored(session);
    expect(batches.map(({ count, statusListId }) => [count, statusListId])).to.deep.equal([[1, null]]);
  });

  it('gives up, and fails the session with a reason for the operator', async () => {
    const { id, session } = await promise();
    const failed = await decide.fail(caller, id, 'no such person');
    expect(failed).to.deep.include({ status: 'failed', errorMessage: 'no such person' });
    const { status, outcome } = await world.session(session);
    expect([status, outcome?.failure]).to.deep.equal([
      'failed',
      { code: 'deferred_failed', message: 'no such person' },
    ]);
  });

  it('stands in the audit log', async () => {
    const { id } = await promise();
    await decide.complete(caller, id, CLAIMS);
    const entries = await world.store.forTenant(ACME, ({ audit }) => audit.list({ limit: 10 }));
    expect(entries.some((entry) => JSON.stringify(entry).includes(id))).to.equal(true);
  });

  it('lists the newest first, of one session or of all, as far as the client may see', async () => {
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
    it(`refuses ${what}`, async () => {
      expect(await endOf(ask())).to.equal(code);
    });
  }

  it('refuses claims that may not be issued, says where, and takes nothing for it', async () => {
    const { id, session } = await promise();
    const { code, details } = await failureOf(decide.complete(caller, id, { claims: { name: 7 } }));
    expect([code, details.errors?.[0]?.path]).to.deep.equal(['invalid_input', 'claims.name']);
    expect((await decide.get(caller, id)).status).to.equal('pending');
    expect((await world.stored(session)).batches).to.deep.equal([]);
  });

  it('refuses to complete what nobody configured any more', async () => {
    const { id } = await promise();
    await world.store.forTenant(ACME, (own) => own.credentialConfigurations.remove('later'), {
      by: 'system',
    });
    expect(await endOf(decide.complete(await world.caller(), id, CLAIMS))).to.equal('conflict');
  });

  it('takes one of three ways to complete', () => {
    const bodies = [CLAIMS, { credential: 'a' }, { credentials: ['a'] }, {}, { ...CLAIMS, credential: 'a' }];
    const good = bodies.map((body) => DeferredCompletion.safeParse(body).success);
    expect(good).to.deep.equal([true, true, true, false, false]);
  });
});
