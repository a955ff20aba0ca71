import { type DeferredTransaction, deferredStatusAt } from '../../domain/issuance/deferred.ts';
import { retrieve, spent } from '../../domain/issuance/issuing.ts';
import type { WalletTokenClaims } from '../../domain/oauth/access-token.ts';
import type { Session } from '../../domain/sessions/session.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { replayed } from '../oauth/oauth-callers.ts';
import { usedByWallet, WalletAuthenticator } from '../oauth/wallet-authenticator.ts';
import { namingSchemes } from '../oauth/wallet-challenges.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { RefusedAttempts, type Tell } from '../sessions/refused-attempts.ts';
import { listsOfBatches } from '../status-lists/lists-of-batches.ts';
import { StatusAllocator } from '../status-lists/status-allocator.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { attempt } from '../transactions/attempt.ts';
import { type Known, type Refusals, WORLD } from '../transactions/known.ts';
import { CredentialMessages, type Seal, sealPlain } from './credential-messages.ts';
import { revoked, type WalletAnswer, type WalletRequest } from './issue-credential.ts';

/** The two published forms of the endpoint: that of OpenID4VCI 1.0, and an older one by GET. */
export type DeferredForm = { readonly form: 'post' } | { readonly form: 'get'; readonly transactionId: string | undefined };

type Asked = {
  readonly token: WalletTokenClaims;
  readonly transactionId: string;
  readonly spending: ReturnType<typeof spent>;
  readonly seal: Seal;
};

/** For the operator, of a transaction whose credentials nobody may have any more. */
const OVER = 'its session failed, ended or was revoked before the wallet fetched the credential';

const REVOKED = 1;
const CREDENTIALS_REVOKED = 'the credentials were revoked before the wallet fetched them';

const REFUSALS: Refusals = { deferred: () => unknown(), unrevoked: revoked, uses: replayed };

const denied = () => new Failure('credential_request_denied', 'the issuer cannot issue this credential');
const unknown = () => new Failure('invalid_transaction_id', 'the transaction is unknown, over or done');

/** The deferred credential endpoint (OpenID4VCI 1.0 section 9). */
export class RetrieveDeferred extends needs({
  ...WORLD,
  walletAuthenticator: WalletAuthenticator,
  credentialMessages: CredentialMessages,
  statusAllocator: StatusAllocator,
  settings: ServiceSettings,
  refusedAttempts: RefusedAttempts,
}) {
  /**
   * @throws Failure `invalid_transaction_id`, `issuance_pending` in the older form, `credential_request_denied` and
   *   what authentication and encryption throw.
   */
  execute(tenantId: TenantId, request: WalletRequest, form: DeferredForm): Promise<WalletAnswer> {
    return this.ports.refusedAttempts.noting(tenantId, request.requestId, (tell) =>
      attempt(this.ports, tenantId, (known) => namingSchemes(known.configured, () => this.#retrieve(known, request, form, tell))),
    );
  }

  async #retrieve(known: Known, request: WalletRequest, form: DeferredForm, tell: Tell): Promise<WalletAnswer> {
    const asked = await this.#accept(known, request, form);
    tell(asked.token.publicId);
    const { spending } = asked;
    const { session } = await known.confirm(known.reads.sessionByPublicId(asked.token.publicId));
    const transaction = await this.#find(known, asked, session);
    const status = deferredStatusAt(transaction, known.now);
    // A session that failed issues nothing more, so nobody can complete what it still waits for.
    if (status === 'pending' && session?.status === 'failed') {
      const failure = { id: transaction.id, act: 'fail', errorMessage: OVER } as const;
      await known.commit({ ...spending, deferred: failure }, { ...REFUSALS, deferred: denied });
      throw denied();
    }
    if (status === 'ready' && session !== undefined) return this.#handOut(known, asked, session, transaction, form);
    await known.commit(spending, REFUSALS);
    if (status !== 'pending') throw status === 'failed' ? denied() : unknown();
    const { id, intervalSeconds } = transaction;
    if (form.form === 'get') throw new Failure('issuance_pending', { message: 'the credential is not ready yet', intervalSeconds });
    return { status: 202, ...(await asked.seal({ transaction_id: id, interval: intervalSeconds })) };
  }

  async #accept({ configured, now }: Known, request: WalletRequest, form: DeferredForm): Promise<Asked> {
    const { walletAuthenticator, settings } = this.ports;
    const isPost = form.form === 'post';
    const wallet = await walletAuthenticator.authenticate(configured, request.wallet, {
      method: isPost ? 'POST' : 'GET',
      url: `${isPost ? configured.issuer : settings.publicUrl}/deferred_credential`,
      now,
    });
    const { token } = wallet;
    const spending = spent(usedByWallet(wallet), token.grantId);
    return { token, spending, ...(await this.#read(configured, request, form)) };
  }

  async #read(configured: TenantConfiguration, request: WalletRequest, form: DeferredForm): Promise<Pick<Asked, 'transactionId' | 'seal'>> {
    const { credentialMessages } = this.ports;
    const missing = () => new Failure('invalid_credential_request', 'transaction_id is missing');
    if (form.form === 'get') {
      const { requestEncryption, responseEncryption } = await configured.issuance();
      // OpenID4VCI 1.0 section 10: this form has no place for the parameters, so what is required cannot be done.
      if (requestEncryption === 'required' || responseEncryption === 'required') {
        throw new Failure('invalid_encryption_parameters', 'this issuer encrypts; use the form by POST');
      }
      if (form.transactionId === undefined) throw missing();
      return { transactionId: form.transactionId, seal: sealPlain };
    }
    const message = await credentialMessages.open(configured, request);
    const { transaction_id: transactionId } = message.body;
    if (typeof transactionId !== 'string') throw missing();
    // OpenID4VCI 1.0 section 9.1: what this request says of encryption counts, not the first one
    return { transactionId, seal: await credentialMessages.responder(configured, message) };
  }

  /** A transaction of another session, or of another grant of the same, is none at all. */
  async #find(known: Known, { token, transactionId, spending }: Asked, session: Session | undefined): Promise<DeferredTransaction> {
    const transaction = await known.reads.deferred(transactionId);
    const isOwn = transaction !== undefined && transaction.sessionId === session?.id && transaction.grantId === (token.grantId ?? null);
    if (isOwn) return transaction;
    await known.commit(spending, REFUSALS);
    throw unknown();
  }

  /**
   * Sealed first and taken out afterwards, so that nothing is lost when sealing fails.
   * @throws Failure `credential_request_denied` when the session failed or was revoked since the credential was made,
   *   `invalid_transaction_id` when it was fetched meanwhile.
   */
  async #handOut(
    known: Known,
    { seal, spending }: Asked,
    session: Session,
    transaction: DeferredTransaction,
    { form }: DeferredForm,
  ): Promise<WalletAnswer> {
    const { id, credentials, batchId } = transaction;
    if (credentials === null || batchId === null) throw unknown();
    const sealed = await seal({
      credentials: credentials.map((credential) => ({ credential })),
      ...(form === 'get' && credentials[0] !== undefined ? { credential: credentials[0] } : {}),
      notification_id: batchId,
    });
    const isRevoked = await this.#isRevoked(known, session, batchId);
    if (!isRevoked) {
      const taken = await known.tryCommit(retrieve(session, transaction, spending), REFUSALS);
      if (taken !== 'session') return { status: 200, ...sealed };
    }
    // The credentials or their session were revoked, or the session is over: the wallet gets nothing from this transaction.
    const errorMessage = isRevoked ? CREDENTIALS_REVOKED : OVER;
    const refusal = { ...spending, deferred: { id, act: 'refuse', errorMessage } } as const;
    await known.commit(refusal, { ...REFUSALS, deferred: denied });
    throw denied();
  }

  /** A revocation of the person also concerns a session that goes on for others. */
  async #isRevoked({ configured, reads }: Known, session: Session, batchId: string): Promise<boolean> {
    const { store, statusAllocator } = this.ports;
    const { batches = [] } = (await reads.issued(session.id)) ?? {};
    const batch = batches.find(({ id }) => id === batchId);
    if (batch === undefined || batch.statusListId === null || batch.firstCounter === null) return false;
    const list = (await listsOfBatches(store, configured, [batch])).get(batch.statusListId);
    if (list === undefined) return false;
    const indices = statusAllocator.indicesOf(configured.tenantId, list, batch.firstCounter, batch.count);
    return (await reads.statusesAt(list.id, indices)).includes(REVOKED);
  }
}
