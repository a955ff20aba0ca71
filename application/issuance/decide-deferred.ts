import { object, strictObject, z } from 'zod';
import { describeDeferred } from '../../domain/audit/describe-change.ts';
import type { Change } from '../../domain/changes/change.ts';
import { mayUse } from '../../domain/clients/client.ts';
import { findBackendCredentialProblems } from '../../domain/issuance/backend-credential-problems.ts';
import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { assertPending, type DeferredTransaction } from '../../domain/issuance/deferred.ts';
import { complete, type IssuanceLimit } from '../../domain/issuance/issuing.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure, invalidInput, type OperatorReason } from '../../domain/shared/failure.ts';
import type { Finding } from '../../domain/shared/finding.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { IssuedBatch } from '../../domain/status-lists/status-list.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { SchemaValidator } from '../ports/schema-validator.ts';
import { Store } from '../ports/store.ts';
import { SessionNotes } from '../sessions/session-notes.ts';
import { StatusAllocator } from '../status-lists/status-allocator.ts';
import { TenantConfigurations } from '../tenant-cache/tenant-configurations.ts';
import { revocationOfEarlier } from './active-set.ts';
import { BatchFactory, type CredentialBatch } from './batch-factory.ts';
import { findClaimProblems } from './collect-claims.ts';
import { commitWithinLimit } from './issuance-limit.ts';
import { WalletFollower } from './wallet-follower.ts';

/** A credential in wire format: an SD-JWT, or an mdoc in base64url. */
const Credential = z
  .string()
  .max(1_000_000)
  .regex(/^[A-Za-z0-9._~-]+$/, 'a compact SD-JWT or the base64url of an mdoc');

export const DeferredCompletion = strictObject({
  credential: Credential.optional().describe('credential of the backend, for a request with one key'),
  credentials: z.array(Credential).min(1).max(100).optional().describe('credentials of the backend, at most one per key'),
  claims: z
    .record(z.string(), z.json())
    .transform((claims) => claims as JsonObject)
    .optional()
    .describe('signed by the service, one credential per key'),
})
  .refine(
    ({ credential, credentials, claims }) => [credential, credentials, claims].filter((part) => part !== undefined).length === 1,
    'send one of credential, credentials and claims',
  )
  .meta({
    id: 'DeferredCompletion',
    allOf: [{ oneOf: [{ required: ['credential'] }, { required: ['credentials'] }, { required: ['claims'] }] }],
  });
export type DeferredCompletion = z.infer<typeof DeferredCompletion>;

export const DeferredFailure = object({
  errorMessage: z.string().min(1).max(1000).describe('for the operator; wallets never see it'),
}).meta({ id: 'DeferredFailure' });

/** Adds warnings about credentials that a backend created. */
export type CompletedTransaction = DeferredTransaction & { readonly findings: readonly Finding[] };

/** Reasons for which a pending transaction cannot be completed any more, by the part of the change that failed. */
const REVOKED = {
  identifies: 'the credentials of this subject were revoked after the wallet was authorized',
  unrevoked: 'the authorization of the wallet was revoked',
} as const;

const MAX_LISTED = 500;

/** Decides deferred transactions on behalf of the backend. */
export class DecideDeferred extends needs({
  store: Store,
  batchMaker: BatchFactory,
  walletFollower: WalletFollower,
  statusAllocator: StatusAllocator,
  tenantConfigurations: TenantConfigurations,
  schemaValidator: SchemaValidator,
  sessionNotes: SessionNotes,
  clock: Clock,
}) {
  /** Newest first; a restricted client sees those of its configurations. */
  async list(caller: TenantCaller, sessionId?: string): Promise<readonly DeferredTransaction[]> {
    const transactions = await this.ports.store
      .read(caller.tenantId)
      .deferredTransactions({ limit: MAX_LISTED, ...(sessionId === undefined ? {} : { sessionId: sessionId as SessionId }) });
    return transactions.filter((transaction) => maySee(caller, transaction));
  }

  /** @throws Failure `not_found`. */
  async get(caller: TenantCaller, id: string): Promise<DeferredTransaction> {
    const transaction = await this.ports.store.read(caller.tenantId).deferred(id);
    if (transaction === undefined || !maySee(caller, transaction)) throw new Failure('not_found', 'there is no such deferred transaction');
    return transaction;
  }

  /**
   * @throws Failure `not_found`, `conflict` unless it is pending, `invalid_input` for claims that may not be issued and
   *   for more credentials than keys, `session_quota_exceeded` when the credentials exceed the quota; the transaction stays pending.
   */
  async complete(caller: TenantCaller, id: string, completion: DeferredCompletion): Promise<CompletedTransaction> {
    const { store, clock, batchMaker, statusAllocator, tenantConfigurations } = this.ports;
    const transaction = await this.get(caller, id);
    assertPending(transaction, clock.now());
    const configuration = await caller.tenant.credentialConfiguration(transaction.credentialConfigurationId);
    if (configuration === undefined) throw new Failure('conflict', 'its credential configuration was deleted');
    const session = (await store.read(caller.tenantId).session(transaction.sessionId))?.session;
    if (session === undefined) throw sessionEndedError();
    const createdBatch = await this.#createBatch(caller, configuration, transaction, completion);
    const { credentials, batch } = createdBatch;
    const now = clock.now();
    const audit = { by: caller, change: describeDeferred(id, 'completed') };
    const record = async (limit: IssuanceLimit, earlierBatches: readonly IssuedBatch[]) => {
      const { statuses = [] } = await revocationOfEarlier(statusAllocator, caller.tenant, configuration, session.id, earlierBatches);
      const change = {
        ...complete(session, transaction, credentials, batch, limit),
        statuses,
        audit,
        ...defined({ follows: createdBatch.follows, identifies: createdBatch.identifies }),
        ...(transaction.walletStatuses !== null && { holds: { transactionId: id, statuses: [] } }),
      };
      const committed = await store.commit(caller.tenantId, change, now);
      if (committed.done && statuses.length > 0) tenantConfigurations.onCommitted(caller.tenantId, { statuses }, { done: true });
      if (!committed.done && (committed.part === 'identifies' || committed.part === 'unrevoked'))
        throw revokedError(REVOKED[committed.part]);
      return committed.done;
    };
    try {
      await commitWithinLimit({ reads: store.read(caller.tenantId) }, session.id, configuration, record);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      batchMaker.discard(caller.tenant, createdBatch);
      assertPending(await this.get(caller, id), now);
      if (error.code === 'session_quota_exceeded') throw error;
      if (!isRevoked(error)) throw sessionEndedError();
      await this.#failRevoked(caller, transaction, error);
      throw error;
    }
    const isSignedHere = completion.claims !== undefined;
    const findings = isSignedHere ? [] : findBackendCredentialProblems(credentials, configuration, transaction.holderKeys);
    return { ...(await this.get(caller, id)), findings };
  }

  /** @throws Failure `not_found`, `conflict` unless it is pending. */
  async fail(caller: TenantCaller, id: string, errorMessage: string): Promise<DeferredTransaction> {
    const { store, clock, sessionNotes } = this.ports;
    const transaction = await this.get(caller, id);
    const audit = { by: caller, change: describeDeferred(id, 'failed') };
    const change = {
      ...({ deferred: { id, act: 'fail', errorMessage }, audit } as const),
      ...(transaction.walletStatuses !== null && { holds: { transactionId: id, statuses: [] } }),
    };
    if (!(await store.commit(caller.tenantId, change, clock.now())).done) {
      assertPending(await this.get(caller, id), clock.now());
      throw new Failure('conflict', 'the transaction was decided concurrently');
    }
    const session = (await store.read(caller.tenantId).session(transaction.sessionId))?.session;
    if (session !== undefined) {
      const failure = { code: 'deferred_failed', message: errorMessage } as const;
      await sessionNotes.note(session, (outcome) => ({ ...outcome, failure }), 'fail');
    }
    return this.get(caller, id);
  }

  /** Fails a transaction that can never be completed, so that the wallet gets an error. */
  async #failRevoked(caller: TenantCaller, { id, walletStatuses }: DeferredTransaction, { message: errorMessage }: Failure): Promise<void> {
    const change: Change = {
      deferred: { id, act: 'fail', errorMessage },
      audit: { by: caller, change: describeDeferred(id, 'failed') },
      ...(walletStatuses !== null && { holds: { transactionId: id, statuses: [] } }),
    };
    await this.ports.store.commit(caller.tenantId, change, this.ports.clock.now());
  }

  async #createBatch(
    { tenant }: TenantCaller,
    configuration: CredentialConfiguration,
    { sessionId, holderKeys, walletStatuses, grantId, authorizedAt, createdAt }: DeferredTransaction,
    { credential, credentials, claims }: DeferredCompletion,
  ): Promise<CredentialBatch> {
    const { batchMaker, walletFollower } = this.ports;
    if (claims === undefined) {
      const backendCredentials = credentials ?? (credential === undefined ? [] : [credential]);
      if (backendCredentials.length > Math.max(1, holderKeys.length))
        throw invalidInput('credentials', `the wallet proved ${holderKeys.length} keys`);
      return { credentials: backendCredentials, batch: batchMaker.recordOf(sessionId, configuration.id, backendCredentials.length) };
    }
    const [fault] = await findClaimProblems(this.ports, { tenant, configuration, claims });
    if (fault !== undefined) throw invalidInput(`claims${fault.path}`, fault.message);
    const statuses = await walletFollower.followed(tenant, configuration, walletStatuses ?? []);
    await walletFollower.assertNotRevoked(tenant, statuses, walletRevokedError);
    return batchMaker.create(tenant, configuration, {
      session: { id: sessionId },
      claims,
      holderKeys,
      statuses,
      authorization: { authorizedAt: authorizedAt ?? createdAt, ...(grantId !== null && { grantId }) },
    });
  }
}

function walletRevokedError(message: string, options: { readonly cause: OperatorReason }): Failure {
  return new Failure('conflict', `${message}; fail the transaction, or try again later`, options);
}

const IS_REVOKED = Symbol('revoked');

function revokedError(reason: string): Failure {
  return new Failure('conflict', `${reason}, so the transaction failed`, { cause: IS_REVOKED });
}

function isRevoked(failure: Failure): boolean {
  return failure.cause === IS_REVOKED;
}

function sessionEndedError(): Failure {
  return new Failure('conflict', 'its session has reached its issuance limit');
}

function maySee({ allowedIssuanceConfigs }: TenantCaller, transaction: DeferredTransaction): boolean {
  return mayUse(allowedIssuanceConfigs, transaction.credentialConfigurationId);
}
