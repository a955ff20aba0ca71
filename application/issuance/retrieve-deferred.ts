import { type DeferredTransaction, deferredStatusAt } from '../../domain/issuance/deferred.ts';
import type { WalletTokenClaims } from '../../domain/oauth/access-token.ts';
import type { Session } from '../../domain/sessions/session.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { replayed } from '../oauth/oauth-callers.ts';
import { usedByWallet, type WalletAuthenticator } from '../oauth/wallet-authenticator.ts';
import type { Clock } from '../ports/clock.ts';
import type { EventBus } from '../ports/event-bus.ts';
import { issuerIdentifier, type ServiceSettings } from '../ports/settings.ts';
import type { Store } from '../ports/store.ts';
import type { TenantConfiguration, TenantConfigurations } from '../tenant-configuration.ts';
import type { CredentialMessages } from './credential-messages.ts';
import { revoked, type WalletAnswer, type WalletRequest } from './issue-credential.ts';
import { bitsOf } from './issuing-sessions.ts';

type Ports = {
  readonly store: Store;
  readonly tenantConfigurations: TenantConfigurations;
  readonly walletAuthenticator: WalletAuthenticator;
  readonly credentialMessages: CredentialMessages;
  readonly eventBus: EventBus;
  readonly clock: Clock;
  readonly settings: ServiceSettings;
};

/** The two published forms of the endpoint: that of OpenID4VCI 1.0, and an older one by GET. */
export type DeferredForm =
  | { readonly form: 'post' }
  | { readonly form: 'get'; readonly transactionId: string | undefined };

type Asked = {
  readonly configured: TenantConfiguration;
  readonly token: WalletTokenClaims;
  readonly transactionId: string;
  readonly seal: (answer: JsonObject) => Promise<Omit<WalletAnswer, 'status'>>;
};

/** For the operator, of a transaction whose credentials nobody may have any more. */
const OVER = 'its session failed, ended or was revoked before the wallet fetched the credential';

const denied = () => new Failure('credential_request_denied', 'the issuer cannot issue this credential');
const unknown = () => new Failure('invalid_transaction_id', 'the transaction is unknown, over or done');

/** The deferred credential endpoint (OpenID4VCI 1.0 section 9). */
export class RetrieveDeferred {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /**
   * @throws Failure `invalid_transaction_id`, `issuance_pending` in the older form, `credential_request_denied` and
   *   what authentication and encryption throw.
   */
  async execute(tenantId: TenantId, request: WalletRequest, form: DeferredForm): Promise<WalletAnswer> {
    const { store, tenantConfigurations, walletAuthenticator, clock, settings } = this.#ports;
    const now = clock.now();
    const beats = store.beats(tenantId);
    const configured = tenantConfigurations.ofWallet(await beats.head());
    const wallet = await walletAuthenticator.authenticate(configured, request.wallet, {
      method: form.form === 'post' ? 'POST' : 'GET',
      url:
        form.form === 'post'
          ? `${issuerIdentifier(settings, tenantId)}/deferred_credential`
          : `${settings.publicUrl}/deferred_credential`,
      now,
    });
    const { token } = wallet;
    const asked = { configured, token, ...(await this.#read(configured, request, form)) };
    const claimed = await beats.claimCredentialRequest(token.publicId, usedByWallet(wallet), token.grantId);
    if (claimed?.replayed !== undefined) throw replayed(claimed.replayed);
    if (claimed?.revoked === true) throw revoked();
    const transaction = await this.#find(asked, claimed?.session);
    // A session that failed issues nothing more, so nobody can complete what it still waits for.
    const isOver = claimed?.session?.status === 'failed';
    if (isOver && (await beats.failDeferred(transaction.id, OVER, now, null))) throw denied();
    switch (deferredStatusAt(transaction, now)) {
      case 'pending':
        return this.#pending(asked, transaction, form);
      case 'ready':
        return this.#handOut(asked, transaction, claimed?.session, form, now);
      case 'failed':
        throw denied();
      default:
        throw unknown();
    }
  }

  async #read(
    configured: TenantConfiguration,
    request: WalletRequest,
    form: DeferredForm,
  ): Promise<Pick<Asked, 'transactionId' | 'seal'>> {
    const { credentialMessages } = this.#ports;
    const missing = () => new Failure('invalid_credential_request', 'transaction_id is missing');
    if (form.form === 'get') {
      const { requestEncryption, responseEncryption } = await configured.issuance();
      // OpenID4VCI 1.0 section 10: this form has no place for the parameters, so what is required cannot be done.
      if (requestEncryption === 'required' || responseEncryption === 'required') {
        throw new Failure('invalid_encryption_parameters', 'this issuer encrypts; use the form by POST');
      }
      if (form.transactionId === undefined) throw missing();
      const seal: Asked['seal'] = async (answer) => ({
        text: JSON.stringify(answer),
        contentType: 'application/json',
      });
      return { transactionId: form.transactionId, seal };
    }
    const message = await credentialMessages.open(configured, request);
    const { transaction_id: transactionId } = message.body;
    if (typeof transactionId !== 'string') throw missing();
    // OpenID4VCI 1.0 section 9.1: what this request says of encryption counts, not the first one
    return { transactionId, seal: await credentialMessages.responder(configured, message) };
  }

  /** A transaction of another session, or of another grant of the same, is none at all. */
  async #find(
    { configured, token, transactionId }: Asked,
    session: Session | undefined,
  ): Promise<DeferredTransaction> {
    const transaction = await this.#ports.store.beats(configured.tenantId).findDeferred(transactionId);
    if (transaction === undefined || transaction.sessionId !== session?.id) throw unknown();
    if (transaction.grantId !== (token.grantId ?? null)) throw unknown();
    return transaction;
  }

  async #pending(
    { seal }: Asked,
    { id, intervalSeconds }: DeferredTransaction,
    { form }: DeferredForm,
  ): Promise<WalletAnswer> {
    if (form === 'get') {
      throw new Failure('issuance_pending', {
        message: 'the credential is not ready yet',
        intervalSeconds,
      });
    }
    return { status: 202, ...(await seal({ transaction_id: id, interval: intervalSeconds })) };
  }

  /**
   * Sealed first and taken out afterwards, so that nothing is lost when sealing fails.
   * @throws Failure `credential_request_denied` when the session failed or was revoked since the credential was made,
   *   `invalid_transaction_id` when it was fetched meanwhile.
   */
  async #handOut(
    { configured, seal }: Asked,
    transaction: DeferredTransaction,
    session: Session | undefined,
    { form }: DeferredForm,
    now: Date,
  ): Promise<WalletAnswer> {
    const { store, eventBus } = this.#ports;
    const { id, credentials, batchId, credentialConfigurationId: configurationId } = transaction;
    if (session === undefined || credentials === null || batchId === null) throw unknown();
    const sealed = await seal({
      credentials: credentials.map((credential) => ({ credential })),
      ...(form === 'get' && credentials[0] !== undefined ? { credential: credentials[0] } : {}),
      notification_id: batchId,
    });
    const { bit, completeMask } = bitsOf(session, configurationId);
    const taken = await store
      .beats(configured.tenantId)
      .retrieveDeferred(id, session.publicId, bit, completeMask, OVER, now);
    if (taken === undefined) throw unknown();
    if (taken === 'refused') throw denied();
    if (taken.completed) {
      eventBus.publish({ type: 'session', tenantId: configured.tenantId, sessionId: session.id });
    }
    return { status: 200, ...sealed };
  }
}
