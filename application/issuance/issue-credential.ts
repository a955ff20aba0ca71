import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { interactionNeeded, resolveConfiguration } from '../../domain/issuance/credential-request.ts';
import { DEFERRED_LIFETIME_SECONDS, type DeferredTransaction } from '../../domain/issuance/deferred.ts';
import { claim, defer, issuable, issue, offerOver, type Spent, spent } from '../../domain/issuance/issuing.ts';
import type { WalletTokenClaims } from '../../domain/oauth/access-token.ts';
import { isAllDone } from '../../domain/oauth/interaction.ts';
import type { Session } from '../../domain/sessions/session.ts';
import { CLOCK_TOLERANCE_MS } from '../../domain/shared/clock-tolerance.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure, type OperatorReason } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { PublicJwk } from '../../domain/shared/jwk.ts';
import type { WalletStatus } from '../../domain/status-lists/wallet-status.ts';
import { needs } from '../needs.ts';
import { replayed } from '../oauth/oauth-callers.ts';
import { usedByWallet, WalletAuthenticator, type WalletCredentials } from '../oauth/wallet-authenticator.ts';
import { namingSchemes } from '../oauth/wallet-challenges.ts';
import { Random } from '../ports/random.ts';
import { RefusedAttempts, type Tell } from '../sessions/refused-attempts.ts';
import { StatusAllocator } from '../status-lists/status-allocator.ts';
import { attempt } from '../transactions/attempt.ts';
import { type Known, type Refusals, WORLD } from '../transactions/known.ts';
import { revoking } from './active-set.ts';
import { BatchMaker, handedOut, type MadeBatch } from './batch-maker.ts';
import { ClaimsProvider } from './claims-provider.ts';
import { CredentialFactory } from './credential-factory.ts';
import { CredentialMessages, type Seal, type SealedAnswer } from './credential-messages.ts';
import { HolderKeys } from './holder-keys.ts';
import { limitOf, withinLimit } from './room.ts';
import { WalletFollower } from './wallet-follower.ts';

/** A request to a protected endpoint of the issuer, as it came. */
export type WalletRequest = {
  readonly wallet: WalletCredentials;
  readonly contentType: string | undefined;
  readonly body: Buffer;
  /** Names the request in the log. */
  readonly requestId?: string;
};

export type WalletAnswer = SealedAnswer & { readonly status: 200 | 202 };

type Accepted = {
  readonly token: WalletTokenClaims;
  readonly configuration: CredentialConfiguration;
  readonly holderKeys: readonly PublicJwk[];
  /** Of the wallet, which the credentials follow. */
  readonly statuses: readonly WalletStatus[];
  /** What the request spends, and whose tokens it rests on. */
  readonly spending: Spent;
  /** Puts an answer into the form that the request asked for. */
  readonly seal: Seal;
};

const REFUSALS: Refusals = { session: offerOver, unrevoked: revoked, uses: replayed };

/** The credential endpoint (OpenID4VCI 1.0 section 8). */
export class IssueCredential extends needs({
  ...WORLD,
  walletAuthenticator: WalletAuthenticator,
  credentialMessages: CredentialMessages,
  holderKeys: HolderKeys,
  claimsProvider: ClaimsProvider,
  batchMaker: BatchMaker,
  statusAllocator: StatusAllocator,
  credentialFactory: CredentialFactory,
  walletFollower: WalletFollower,
  random: Random,
  refusedAttempts: RefusedAttempts,
}) {
  /** @returns the credentials of one request, one per proven key, or the id of a deferred transaction. */
  execute(tenantId: TenantId, request: WalletRequest): Promise<WalletAnswer> {
    return this.ports.refusedAttempts.noting(tenantId, request.requestId, (tell) =>
      attempt(this.ports, tenantId, (known) => namingSchemes(known.configured, () => this.#issue(known, request, tell))),
    );
  }

  async #issue(known: Known, request: WalletRequest, tell: Tell): Promise<WalletAnswer> {
    const accepted = await this.#accept(known, request, tell);
    const { configuration, token, seal, spending } = accepted;
    const session = await this.#session(known, accepted);
    const { claimsProvider } = this.ports;
    const atHand = await claimsProvider.atHand(known.configured, session, configuration);
    if (atHand !== undefined) {
      return {
        status: 200,
        ...(await seal(await this.#handOut(known, accepted, session, atHand, spending))),
      };
    }
    await this.ports.credentialFactory.assertReady(known.configured, configuration);
    // The request is spent before a backend is called, so that nobody has it called twice.
    await this.#spend(known, accepted, session);
    const provided = await claimsProvider.provide(known.configured, session, configuration, token);
    if ('intervalSeconds' in provided) {
      const deferred = await this.#defer(known, accepted, session, provided.intervalSeconds);
      return { status: 202, ...(await seal(deferred)) };
    }
    return { status: 200, ...(await seal(await this.#handOut(known, accepted, session, provided.claims))) };
  }

  /** Nothing is made for a request that is going to be refused, however often it comes. */
  async #session(known: Known, { token, configuration, spending }: Accepted): Promise<Session> {
    const remembered = known.remembered(token.publicId);
    if (remembered !== undefined) return issuable(remembered, configuration.id, known.now, token.grantId);
    const { uses, unrevoked } = spending;
    const read = await known.confirm(known.reads.issuing(token.publicId, uses, unrevoked));
    if (read.used !== undefined) throw replayed(read.used);
    if (read.revoked) throw revoked();
    const session = issuable(read.session, configuration.id, known.now, token.grantId, read.use);
    // It may have issued as much of other configurations.
    if ((read.use?.issued ?? 0) >= limitOf(configuration))
      await withinLimit(known, session.id, configuration, async (room) => room.issuedExactly !== undefined);
    return known.remember(session);
  }

  /** The session may be full of credentials of other configurations. */
  async #spend(known: Known, { configuration, spending }: Accepted, session: Session): Promise<void> {
    const full = { ...configuration, oneActiveSet: false };
    await withinLimit(known, session.id, full, async (room) => {
      const change = claim(session, configuration.id, spending, room, known.now);
      const revisions = known.isStored ? {} : { revisions: known.configured.state.revisions };
      return (await known.tryCommit({ ...revisions, ...change }, REFUSALS)) === 'done';
    });
  }

  async #accept({ configured, now }: Known, request: WalletRequest, tell: Tell): Promise<Accepted> {
    const { walletAuthenticator, credentialMessages, holderKeys, walletFollower } = this.ports;
    const wallet = await walletAuthenticator.authenticate(configured, request.wallet, {
      method: 'POST',
      url: `${configured.issuer}/credential`,
      now,
    });
    // For the log: what is refused from here on names the session.
    this.ports.tenantConfigurations.remembered.session(configured.tenantId, wallet.token.publicId);
    tell(wallet.token.publicId);
    const message = await credentialMessages.open(configured, request);
    const configurations = await configured.credentialConfigurations();
    const configuration = resolveConfiguration(message.body, wallet.token, (id) => configurations.find((entry) => entry.id === id));
    if (!isAllDone(configuration, wallet.token.actionsDone)) throw interactionNeeded();
    const seal = await credentialMessages.responder(configured, message);
    const proven = await holderKeys.verifyProofs(configured, configuration, message.body, wallet.token.clientId, now);
    const { walletStatuses = [] } = wallet.token;
    const known = await walletFollower.followed(configured, configuration, walletStatuses);
    // Asked when it got its token; what its keys name was asked a moment ago.
    await walletFollower.assertStanding(configured, known, unwanted);
    return {
      token: wallet.token,
      configuration,
      holderKeys: proven.holderKeys,
      statuses: await walletFollower.followed(configured, configuration, [...known, ...proven.statuses]),
      spending: spent([...usedByWallet(wallet), ...proven.used], wallet.token.grantId),
      seal,
    };
  }

  /**
   * The credentials are made first; spending the proofs and recording the issuance is one step, and nobody gets a
   * credential that it refuses.
   * @param spending absent when the request was spent before.
   */
  async #handOut(
    known: Known,
    { configuration, holderKeys, statuses, token }: Accepted,
    session: Session,
    claims: JsonObject,
    spending?: Accepted['spending'],
  ): Promise<JsonObject> {
    const { batchMaker, statusAllocator } = this.ports;
    const made = await batchMaker.make(known.configured, configuration, {
      session,
      claims,
      holderKeys,
      statuses,
      authorization: authorizationOf(token),
    });
    let personRevoked: Failure | undefined;
    const identifies = () => (personRevoked = revoked());
    try {
      await withinLimit(known, session.id, configuration, async (room, before) => {
        const spends = spending && { ...spending, now: known.now };
        const change = issue(session, made.batch, token.grantId, room, spends);
        const others = await revoking(statusAllocator, known.configured, configuration, session.id, before);
        const all = {
          ...change,
          ...others,
          ...defined({ follows: made.follows, identifies: made.identifies }),
        };
        return (await known.tryCommit(all, { ...REFUSALS, identifies })) === 'done';
      });
    } catch (error) {
      // What is refused has not happened for sure.
      if (error instanceof Failure) batchMaker.discard(known.configured, made);
      if (personRevoked === undefined || error !== personRevoked) throw error;
      throw (await this.#isTokenRevoked(known, token, made)) ? error : offerOver();
    }
    return handedOut(made);
  }

  /**
   * The credentials of the person were revoked after the wallet was authorized. The grant is revoked, too, so that it brings no other
   * tokens; unless it covers configurations that the revocation did not mean.
   * @returns whether the token is of no use any more.
   */
  async #isTokenRevoked({ tenantId }: Known, { grantId }: WalletTokenClaims, { identifies }: MadeBatch): Promise<boolean> {
    const { store, clock } = this.ports;
    if (grantId === undefined || identifies === undefined) return true;
    return store.maintenance.revokeGrant(tenantId, identifies.fingerprint, grantId, clock.now());
  }

  /** OpenID4VCI 1.0 section 8.3: the backend cannot issue yet, so the wallet comes back with a transaction id. */
  async #defer(
    known: Known,
    { configuration, holderKeys, statuses, token }: Accepted,
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
    await known.commit(defer(session, transaction, statuses), REFUSALS);
    return { transaction_id: transaction.id, interval: intervalSeconds };
  }
}

/** RFC 6749 section 4.1.2: the code of this token came back. */
export function revoked(): Failure {
  return new Failure('invalid_token', 'the access token was revoked');
}

/** A wallet whose attestation fell gets no token any more, and those that it has bring it nothing. */
function unwanted(told: string, options: { readonly cause: OperatorReason }): Failure {
  return new Failure('invalid_token', told, options);
}

/** The clock of an external authorization server may be ahead, so a token counts as that much older than it says. */
function authorizationOf({ grantId, issuedAtSeconds }: WalletTokenClaims) {
  if (grantId !== undefined) return { grantId, authorizedAt: new Date(issuedAtSeconds * 1000) };
  return { authorizedAt: new Date(issuedAtSeconds * 1000 - CLOCK_TOLERANCE_MS) };
}
