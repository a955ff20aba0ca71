import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { interactionRequiredError, resolveConfiguration } from '../../domain/issuance/credential-request.ts';
import { DEFERRED_LIFETIME_SECONDS, type DeferredTransaction } from '../../domain/issuance/deferred.ts';
import {
  claim,
  defer,
  issue,
  offerEndedError,
  type RequestConsumption,
  requestConsumption,
  requireIssuable,
} from '../../domain/issuance/issuing.ts';
import type { WalletTokenClaims } from '../../domain/oauth/access-token.ts';
import { areActionsDone } from '../../domain/oauth/interaction.ts';
import type { Session } from '../../domain/sessions/session.ts';
import { CLOCK_TOLERANCE_MS } from '../../domain/shared/clock-tolerance.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure, type OperatorReason } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { PublicJwk } from '../../domain/shared/jwk.ts';
import type { WalletStatus } from '../../domain/status-lists/wallet-status.ts';
import { needs } from '../needs.ts';
import { withChallengeSchemes } from '../oauth/challenge-schemes.ts';
import { replayError } from '../oauth/oauth-callers.ts';
import { consumedByWallet, WalletAuthenticator, type WalletCredentials } from '../oauth/wallet-authenticator.ts';
import { Random } from '../ports/random.ts';
import { RejectedAttempts, type ReportSession } from '../sessions/rejected-attempts.ts';
import { StatusAllocator } from '../status-lists/status-allocator.ts';
import { attempt } from '../transactions/attempt.ts';
import { type CommitFailures, type TenantTransaction, TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { revocationOfEarlier } from './active-set.ts';
import { BatchFactory, type CredentialBatch, credentialResponse } from './batch-factory.ts';
import { ClaimsProvider } from './claims-provider.ts';
import { CredentialFactory } from './credential-factory.ts';
import { CredentialMessages, type Seal, type SealedAnswer } from './credential-messages.ts';
import { HolderKeys } from './holder-keys.ts';
import { commitWithinLimit, limitOf } from './issuance-limit.ts';
import { WalletFollower } from './wallet-follower.ts';

/** A request to a protected endpoint of the issuer. */
export type WalletRequest = {
  readonly wallet: WalletCredentials;
  readonly contentType: string | undefined;
  readonly body: Buffer;
  readonly requestId?: string;
};

export type WalletAnswer = SealedAnswer & { readonly status: 200 | 202 };

type AcceptedRequest = {
  readonly token: WalletTokenClaims;
  readonly configuration: CredentialConfiguration;
  readonly holderKeys: readonly PublicJwk[];
  /** Wallet statuses that the credentials follow. */
  readonly statuses: readonly WalletStatus[];
  /** Values that the request consumes, and the grant that must not be revoked. */
  readonly consumption: RequestConsumption;
  readonly seal: Seal;
};

const FAILURES: CommitFailures = { session: offerEndedError, unrevoked: tokenRevokedError, uses: replayError };

/** The credential endpoint (OpenID4VCI 1.0 section 8). */
export class IssueCredential extends needs({
  ...TRANSACTION_PORTS,
  walletAuthenticator: WalletAuthenticator,
  credentialMessages: CredentialMessages,
  holderKeys: HolderKeys,
  claimsProvider: ClaimsProvider,
  batchMaker: BatchFactory,
  statusAllocator: StatusAllocator,
  credentialFactory: CredentialFactory,
  walletFollower: WalletFollower,
  random: Random,
  refusedAttempts: RejectedAttempts,
}) {
  /** @returns the credentials of one request, one per proven key, or the id of a deferred transaction. */
  execute(tenantId: TenantId, request: WalletRequest): Promise<WalletAnswer> {
    return this.ports.refusedAttempts.recordFailures(tenantId, request.requestId, (reportSession) =>
      attempt(this.ports, tenantId, (transaction) =>
        withChallengeSchemes(transaction.tenant, () => this.#issue(transaction, request, reportSession)),
      ),
    );
  }

  async #issue(transaction: TenantTransaction, request: WalletRequest, reportSession: ReportSession): Promise<WalletAnswer> {
    const accepted = await this.#accept(transaction, request, reportSession);
    const { configuration, token, seal, consumption } = accepted;
    const session = await this.#session(transaction, accepted);
    const { claimsProvider } = this.ports;
    const inlineClaims = await claimsProvider.inlineClaims(transaction.tenant, session, configuration);
    if (inlineClaims !== undefined) {
      return { status: 200, ...(await seal(await this.#issueNow(transaction, accepted, session, inlineClaims, consumption))) };
    }
    await this.ports.credentialFactory.assertReady(transaction.tenant, configuration);
    // The request is consumed before a backend is called, so that a replay does not call it again.
    await this.#claim(transaction, accepted, session);
    const provided = await claimsProvider.provide(transaction.tenant, session, configuration, token);
    if ('intervalSeconds' in provided) {
      const deferredResponse = await this.#defer(transaction, accepted, session, provided.intervalSeconds);
      return { status: 202, ...(await seal(deferredResponse)) };
    }
    return { status: 200, ...(await seal(await this.#issueNow(transaction, accepted, session, provided.claims))) };
  }

  /** Checks the session first, so that no credentials are created for a request that will be rejected. */
  async #session(transaction: TenantTransaction, { token, configuration, consumption }: AcceptedRequest): Promise<Session> {
    const cachedSession = transaction.cachedSession(token.publicId);
    if (cachedSession !== undefined) return requireIssuable(cachedSession, configuration.id, transaction.now, token.grantId);
    const { uses, unrevoked } = consumption;
    const result = await transaction.confirm(transaction.reads.issuing(token.publicId, uses, unrevoked));
    if (result.used !== undefined) throw replayError(result.used);
    if (result.revoked) throw tokenRevokedError();
    const session = requireIssuable(result.session, configuration.id, transaction.now, token.grantId, result.use);
    // The count includes other configurations, so the exact one is checked here.
    if ((result.use?.issued ?? 0) >= limitOf(configuration))
      await commitWithinLimit(transaction, session.id, configuration, async (limit) => limit.issuedExactly !== undefined);
    return transaction.cacheSession(session);
  }

  /** Claims the request. The session may already have issued as many credentials of other configurations. */
  async #claim(transaction: TenantTransaction, { configuration, consumption }: AcceptedRequest, session: Session): Promise<void> {
    const withoutActiveSet = { ...configuration, oneActiveSet: false };
    await commitWithinLimit(transaction, session.id, withoutActiveSet, async (limit) => {
      const change = claim(session, configuration.id, consumption, limit, transaction.now);
      const revisions = transaction.isStored ? {} : { revisions: transaction.tenant.state.revisions };
      return (await transaction.tryCommit({ ...revisions, ...change }, FAILURES)) === 'done';
    });
  }

  async #accept({ tenant, now }: TenantTransaction, request: WalletRequest, reportSession: ReportSession): Promise<AcceptedRequest> {
    const { walletAuthenticator, credentialMessages, holderKeys, walletFollower } = this.ports;
    const wallet = await walletAuthenticator.authenticate(tenant, request.wallet, {
      method: 'POST',
      url: `${tenant.issuer}/credential`,
      now,
    });
    // Adds the session to the log context of later rejections.
    this.ports.tenantConfigurations.sessionCache.session(tenant.tenantId, wallet.token.publicId);
    reportSession(wallet.token.publicId);
    const message = await credentialMessages.open(tenant, request);
    const configurations = await tenant.credentialConfigurations();
    const configuration = resolveConfiguration(message.body, wallet.token, (id) => configurations.find((entry) => entry.id === id));
    if (!areActionsDone(configuration, wallet.token.actionsDone)) throw interactionRequiredError();
    const seal = await credentialMessages.responder(tenant, message);
    const proven = await holderKeys.verifyProofs(tenant, configuration, message.body, wallet.token.clientId, now);
    const { walletStatuses = [] } = wallet.token;
    const followedStatuses = await walletFollower.followed(tenant, configuration, walletStatuses);
    // The wallet status was checked when the token was issued; those of the keys were checked a moment ago.
    await walletFollower.assertNotRevoked(tenant, followedStatuses, walletRevokedError);
    return {
      token: wallet.token,
      configuration,
      holderKeys: proven.holderKeys,
      statuses: await walletFollower.followed(tenant, configuration, [...followedStatuses, ...proven.statuses]),
      consumption: requestConsumption([...consumedByWallet(wallet), ...proven.used], wallet.token.grantId),
      seal,
    };
  }

  /**
   * Creates the credentials first; one commit then consumes the proofs and records the issuance. The credentials are sent only if it
   * succeeds.
   * @param consumption absent if the request was consumed before.
   */
  async #issueNow(
    transaction: TenantTransaction,
    { configuration, holderKeys, statuses, token }: AcceptedRequest,
    session: Session,
    claims: JsonObject,
    consumption?: AcceptedRequest['consumption'],
  ): Promise<JsonObject> {
    const { batchMaker, statusAllocator } = this.ports;
    const createdBatch = await batchMaker.create(transaction.tenant, configuration, {
      session,
      claims,
      holderKeys,
      statuses,
      authorization: authorizationOf(token),
    });
    let personRevoked: Failure | undefined;
    const identifies = () => (personRevoked = tokenRevokedError());
    try {
      await commitWithinLimit(transaction, session.id, configuration, async (limit, earlierBatches) => {
        const datedConsumption = consumption && { ...consumption, now: transaction.now };
        const change = issue(session, createdBatch.batch, token.grantId, limit, datedConsumption);
        const revocation = await revocationOfEarlier(statusAllocator, transaction.tenant, configuration, session.id, earlierBatches);
        const wholeChange = {
          ...change,
          ...revocation,
          ...defined({ follows: createdBatch.follows, identifies: createdBatch.identifies }),
        };
        return (await transaction.tryCommit(wholeChange, { ...FAILURES, identifies })) === 'done';
      });
    } catch (error) {
      // A Failure means that nothing was committed, so the status entries can be returned. After any other error they may be in use.
      if (error instanceof Failure) batchMaker.discard(transaction.tenant, createdBatch);
      if (personRevoked === undefined || error !== personRevoked) throw error;
      throw (await this.#isTokenRevoked(transaction, token, createdBatch)) ? error : offerEndedError();
    }
    return credentialResponse(createdBatch);
  }

  /**
   * Revokes the grant after the credentials of the person were revoked, so that it produces no other tokens, unless it covers
   * configurations that were not revoked.
   * @returns true if the token cannot be used any more.
   */
  async #isTokenRevoked(
    { tenantId }: TenantTransaction,
    { grantId }: WalletTokenClaims,
    { identifies }: CredentialBatch,
  ): Promise<boolean> {
    const { store, clock } = this.ports;
    if (grantId === undefined || identifies === undefined) return true;
    return store.maintenance.revokeGrant(tenantId, identifies.fingerprint, grantId, clock.now());
  }

  /** OpenID4VCI 1.0 section 8.3: the backend cannot issue yet, so the wallet gets a transaction id. */
  async #defer(
    tenantTransaction: TenantTransaction,
    { configuration, holderKeys, statuses, token }: AcceptedRequest,
    session: Session,
    intervalSeconds: number,
  ): Promise<JsonObject> {
    const { random, clock } = this.ports;
    const now = clock.now();
    const transaction: DeferredTransaction = {
      id: random.token(256),
      sessionId: session.id,
      publicId: session.publicId,
      grantId: token.grantId ?? null,
      credentialConfigurationId: configuration.id,
      holderKeys,
      status: 'pending',
      intervalSeconds,
      credentials: null,
      batchId: null,
      errorMessage: null,
      walletStatuses: null,
      authorizedAt: authorizationOf(token).authorizedAt,
      createdAt: now,
      updatedAt: now,
      expiresAt: new Date(now.getTime() + DEFERRED_LIFETIME_SECONDS * 1000),
    };
    await tenantTransaction.commit(defer(session, transaction, statuses), FAILURES);
    return { transaction_id: transaction.id, interval: intervalSeconds };
  }
}

/** RFC 6749 section 4.1.2: the code of this token was replayed. */
export function tokenRevokedError(): Failure {
  return new Failure('invalid_token', 'the access token was revoked');
}

/** A wallet whose attestation was revoked gets no token, and cannot use the ones it has. */
function walletRevokedError(message: string, options: { readonly cause: OperatorReason }): Failure {
  return new Failure('invalid_token', message, options);
}

/** The clock of an external authorization server may be ahead, so the tolerance is subtracted from its time. */
function authorizationOf({ grantId, issuedAtSeconds }: WalletTokenClaims) {
  if (grantId !== undefined) return { grantId, authorizedAt: new Date(issuedAtSeconds * 1000) };
  return { authorizedAt: new Date(issuedAtSeconds * 1000 - CLOCK_TOLERANCE_MS) };
}
