import { type DeferredTransaction, deferredStatusAt } from '../../domain/issuance/deferred.ts';
import { requestConsumption, retrieve } from '../../domain/issuance/issuing.ts';
import type { WalletTokenClaims } from '../../domain/oauth/access-token.ts';
import type { Session } from '../../domain/sessions/session.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { withChallengeSchemes } from '../oauth/challenge-schemes.ts';
import { replayError } from '../oauth/oauth-callers.ts';
import { consumedByWallet, WalletAuthenticator } from '../oauth/wallet-authenticator.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { RejectedAttempts, type ReportSession } from '../sessions/rejected-attempts.ts';
import { listsOfBatches } from '../status-lists/lists-of-batches.ts';
import { StatusAllocator } from '../status-lists/status-allocator.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { attempt } from '../transactions/attempt.ts';
import { type CommitFailures, type TenantTransaction, TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { CredentialMessages, type Seal, sealPlain } from './credential-messages.ts';
import { tokenRevokedError, type WalletAnswer, type WalletRequest } from './issue-credential.ts';

/** The two published forms of the endpoint: that of OpenID4VCI 1.0, and an older one with GET. */
export type DeferredForm = { readonly form: 'post' } | { readonly form: 'get'; readonly transactionId: string | undefined };

type DeferredRequest = {
  readonly token: WalletTokenClaims;
  readonly transactionId: string;
  readonly consumption: ReturnType<typeof requestConsumption>;
  readonly seal: Seal;
};

/** Message for the operator about a transaction whose credentials must not be issued any more. */
const SESSION_OVER = 'its session failed, ended or was revoked before the wallet fetched the credential';

const REVOKED = 1;
const CREDENTIALS_REVOKED = 'the credentials were revoked before the wallet fetched them';

const FAILURES: CommitFailures = { deferred: () => unknownTransactionError(), unrevoked: tokenRevokedError, uses: replayError };

const requestDeniedError = () => new Failure('credential_request_denied', 'the issuer cannot issue this credential');
const unknownTransactionError = () => new Failure('invalid_transaction_id', 'the transaction is unknown, expired or completed');

/** The deferred credential endpoint (OpenID4VCI 1.0 section 9). */
export class RetrieveDeferred extends needs({
  ...TRANSACTION_PORTS,
  walletAuthenticator: WalletAuthenticator,
  credentialMessages: CredentialMessages,
  statusAllocator: StatusAllocator,
  settings: ServiceSettings,
  refusedAttempts: RejectedAttempts,
}) {
  /**
   * @throws Failure `invalid_transaction_id`, `issuance_pending` in the older form, `credential_request_denied` and
   *   the failures of authentication and encryption.
   */
  execute(tenantId: TenantId, request: WalletRequest, form: DeferredForm): Promise<WalletAnswer> {
    return this.ports.refusedAttempts.recordFailures(tenantId, request.requestId, (reportSession) =>
      attempt(this.ports, tenantId, (transaction) =>
        withChallengeSchemes(transaction.tenant, () => this.#retrieve(transaction, request, form, reportSession)),
      ),
    );
  }

  async #retrieve(
    tenantTransaction: TenantTransaction,
    request: WalletRequest,
    form: DeferredForm,
    reportSession: ReportSession,
  ): Promise<WalletAnswer> {
    const deferredRequest = await this.#accept(tenantTransaction, request, form);
    reportSession(deferredRequest.token.publicId);
    const { consumption } = deferredRequest;
    const { session } = await tenantTransaction.confirm(tenantTransaction.reads.sessionByPublicId(deferredRequest.token.publicId));
    const transaction = await this.#find(tenantTransaction, deferredRequest, session);
    const status = deferredStatusAt(transaction, tenantTransaction.now);
    // A failed session issues nothing more, so a pending transaction cannot be completed.
    if (status === 'pending' && session?.status === 'failed') {
      const failure = { id: transaction.id, act: 'fail', errorMessage: SESSION_OVER } as const;
      await tenantTransaction.commit({ ...consumption, deferred: failure }, { ...FAILURES, deferred: requestDeniedError });
      throw requestDeniedError();
    }
    if (status === 'ready' && session !== undefined) return this.#complete(tenantTransaction, deferredRequest, session, transaction, form);
    await tenantTransaction.commit(consumption, FAILURES);
    if (status !== 'pending') throw status === 'failed' ? requestDeniedError() : unknownTransactionError();
    const { id, intervalSeconds } = transaction;
    if (form.form === 'get') throw new Failure('issuance_pending', { message: 'the credential is not ready yet', intervalSeconds });
    return { status: 202, ...(await deferredRequest.seal({ transaction_id: id, interval: intervalSeconds })) };
  }

  async #accept({ tenant, now }: TenantTransaction, request: WalletRequest, form: DeferredForm): Promise<DeferredRequest> {
    const { walletAuthenticator, settings } = this.ports;
    const isPost = form.form === 'post';
    const wallet = await walletAuthenticator.authenticate(tenant, request.wallet, {
      method: isPost ? 'POST' : 'GET',
      url: `${isPost ? tenant.issuer : settings.publicUrl}/deferred_credential`,
      now,
    });
    const { token } = wallet;
    const consumption = requestConsumption(consumedByWallet(wallet), token.grantId);
    return { token, consumption, ...(await this.#read(tenant, request, form)) };
  }

  async #read(
    tenant: TenantConfiguration,
    request: WalletRequest,
    form: DeferredForm,
  ): Promise<Pick<DeferredRequest, 'transactionId' | 'seal'>> {
    const { credentialMessages } = this.ports;
    const missingIdError = () => new Failure('invalid_credential_request', 'transaction_id is missing');
    if (form.form === 'get') {
      const { requestEncryption, responseEncryption } = await tenant.issuance();
      // OpenID4VCI 1.0 section 10: the GET form cannot carry the parameters, so required encryption is impossible.
      if (requestEncryption === 'required' || responseEncryption === 'required') {
        throw new Failure('invalid_encryption_parameters', 'this issuer encrypts responses; use the POST endpoint');
      }
      if (form.transactionId === undefined) throw missingIdError();
      return { transactionId: form.transactionId, seal: sealPlain };
    }
    const message = await credentialMessages.open(tenant, request);
    const { transaction_id: transactionId } = message.body;
    if (typeof transactionId !== 'string') throw missingIdError();
    // OpenID4VCI 1.0 section 9.1: the encryption parameters of this request apply, not those of the first one
    return { transactionId, seal: await credentialMessages.responder(tenant, message) };
  }

  /** A transaction of another session, or of another grant of the same session, counts as unknown. */
  async #find(
    tenantTransaction: TenantTransaction,
    { token, transactionId, consumption }: DeferredRequest,
    session: Session | undefined,
  ): Promise<DeferredTransaction> {
    const transaction = await tenantTransaction.reads.deferred(transactionId);
    const isOfToken = transaction !== undefined && transaction.sessionId === session?.id && transaction.grantId === (token.grantId ?? null);
    if (isOfToken) return transaction;
    await tenantTransaction.commit(consumption, FAILURES);
    throw unknownTransactionError();
  }

  /**
   * Encrypts the response before the transaction is completed, so that nothing is lost when encryption fails.
   * @throws Failure `credential_request_denied` when the session failed or was revoked since the credential was created,
   *   `invalid_transaction_id` when it was fetched meanwhile.
   */
  async #complete(
    tenantTransaction: TenantTransaction,
    { seal, consumption }: DeferredRequest,
    session: Session,
    transaction: DeferredTransaction,
    { form }: DeferredForm,
  ): Promise<WalletAnswer> {
    const { id, credentials, batchId } = transaction;
    if (credentials === null || batchId === null) throw unknownTransactionError();
    const sealed = await seal({
      credentials: credentials.map((credential) => ({ credential })),
      ...(form === 'get' && credentials[0] !== undefined ? { credential: credentials[0] } : {}),
      notification_id: batchId,
    });
    const isRevoked = await this.#isRevoked(tenantTransaction, session, batchId);
    if (!isRevoked) {
      const commitResult = await tenantTransaction.tryCommit(retrieve(session, transaction, consumption), FAILURES);
      if (commitResult !== 'session') return { status: 200, ...sealed };
    }
    // The credentials or their session were revoked, or the session has ended: the transaction ends without credentials.
    const errorMessage = isRevoked ? CREDENTIALS_REVOKED : SESSION_OVER;
    const refusal = { ...consumption, deferred: { id, act: 'refuse', errorMessage } } as const;
    await tenantTransaction.commit(refusal, { ...FAILURES, deferred: requestDeniedError });
    throw requestDeniedError();
  }

  /** A revocation of the person also applies in a session that continues for other persons. */
  async #isRevoked({ tenant, reads }: TenantTransaction, session: Session, batchId: string): Promise<boolean> {
    const { store, statusAllocator } = this.ports;
    const { batches = [] } = (await reads.issued(session.id)) ?? {};
    const batch = batches.find(({ id }) => id === batchId);
    if (batch === undefined || batch.statusListId === null || batch.firstCounter === null) return false;
    const list = (await listsOfBatches(store, tenant, [batch])).get(batch.statusListId);
    if (list === undefined) return false;
    const indices = statusAllocator.indicesOf(tenant.tenantId, list, batch.firstCounter, batch.count);
    return (await reads.statusesAt(list.id, indices)).includes(REVOKED);
  }
}
