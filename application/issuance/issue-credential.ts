import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { resolveConfiguration } from '../../domain/issuance/credential-request.ts';
import { DEFERRED_LIFETIME_SECONDS, type DeferredTransaction } from '../../domain/issuance/deferred.ts';
import type { WalletTokenClaims } from '../../domain/oauth/access-token.ts';
import { isAllDone } from '../../domain/oauth/interaction.ts';
import type { Session } from '../../domain/sessions/session.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { PublicJwk } from '../../domain/shared/jwk.ts';
import { replayed } from '../oauth/oauth-callers.ts';
import {
  usedByWallet,
  type WalletAuthenticator,
  type WalletCredentials,
} from '../oauth/wallet-authenticator.ts';
import type { Clock } from '../ports/clock.ts';
import type { EventBus } from '../ports/event-bus.ts';
import type { Random } from '../ports/random.ts';
import { issuerIdentifier, type ServiceSettings } from '../ports/settings.ts';
import type { Store, UsedValue } from '../ports/store.ts';
import type { TenantConfiguration, TenantConfigurations } from '../tenant-configuration.ts';
import type { BatchMaker, MadeBatch } from './batch-maker.ts';
import type { ClaimsProvider } from './claims-provider.ts';
import type { CredentialMessages } from './credential-messages.ts';
import type { HolderKeys } from './holder-keys.ts';
import { bitsOf, issuingSession, offerOver } from './issuing-sessions.ts';

type Ports = {
  readonly store: Store;
  readonly tenantConfigurations: TenantConfigurations;
  readonly walletAuthenticator: WalletAuthenticator;
  readonly credentialMessages: CredentialMessages;
  readonly holderKeys: HolderKeys;
  readonly claimsProvider: ClaimsProvider;
  readonly batchMaker: BatchMaker;
  readonly eventBus: EventBus;
  readonly clock: Clock;
  readonly random: Random;
  readonly settings: ServiceSettings;
};

/** A request to a protected endpoint of the issuer, as it came. */
export type WalletRequest = {
  readonly wallet: WalletCredentials;
  readonly contentType: string | undefined;
  readonly body: Buffer;
};

export type WalletAnswer = {
  readonly status: 200 | 202;
  /** JSON, or a JWE in compact form (OpenID4VCI 1.0 section 10). */
  readonly text: string;
  readonly contentType: 'application/json' | 'application/jwt';
};

type Accepted = {
  readonly configured: TenantConfiguration;
  readonly token: WalletTokenClaims;
  readonly configuration: CredentialConfiguration;
  readonly holderKeys: readonly PublicJwk[];
  readonly used: readonly UsedValue[];
  /** Puts an answer into the form that the request asked for. */
  readonly seal: (answer: JsonObject) => Promise<Omit<WalletAnswer, 'status'>>;
};

type Issued = { readonly status: 200 | 202; readonly answer: JsonObject };

/** The credential endpoint (OpenID4VCI 1.0 section 8). */
export class IssueCredential {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @returns the credentials of one request, one per proven key, or the id of a deferred transaction. */
  async execute(tenantId: TenantId, request: WalletRequest): Promise<WalletAnswer> {
    const { store, tenantConfigurations, clock } = this.#ports;
    const beats = store.beats(tenantId);
    const now = clock.now();
    // The view is as of the last request; what follows reads the revision, and a newer one is judged again.
    const latest = tenantConfigurations.latest(tenantId) ?? tenantConfigurations.ofWallet(await beats.head());
    let accepted = await this.#accept(latest, request, now).catch(async (error: unknown) => {
      // What was refused by an older configuration may be right by the present one.
      const present = tenantConfigurations.ofWallet(await beats.head());
      if (present === latest) throw error;
      return this.#accept(present, request, now);
    });
    const issued = await this.#issueAtOnce(accepted, now);
    if (issued !== undefined) return answerOf(accepted, issued);

    const { publicId, grantId } = accepted.token;
    const claimed = await beats.claimCredentialRequest(publicId, accepted.used, grantId);
    const configured = tenantConfigurations.ofWallet(claimed?.head);
    if (configured !== accepted.configured) accepted = await this.#accept(configured, request, now);
    if (claimed?.replayed !== undefined) throw replayed(claimed.replayed);
    if (claimed?.revoked === true) throw revoked();
    const session = issuingSession(claimed?.session, claimed?.use, accepted.configuration, now);
    return answerOf(accepted, await this.#issue(accepted, session));
  }

  /**
   * When this process made the offer and the claims stand in it, the credential is made first; spending the proofs
   * and recording the issuance is then one step of the database, and nobody gets a credential that it refuses.
   * @returns undefined when nothing happened and the steps have to decide.
   * @throws Failure for a value that was used before.
   */
  async #issueAtOnce(accepted: Accepted, now: Date): Promise<Issued | undefined> {
    const { store, claimsProvider, batchMaker, eventBus } = this.#ports;
    const { configured, token, configuration, holderKeys, used } = accepted;
    const beats = store.beats(configured.tenantId);
    const session = beats.recallSession(token.publicId);
    const claims = session && claimsProvider.atHand(configured, session, configuration);
    if (session === undefined || claims === undefined) return undefined;
    if (!session.configurationIds.includes(configuration.id)) return undefined;
    const made = await batchMaker.make(configured, configuration, { session, claims, holderKeys });
    const recorded = await beats.issueAtOnce(
      {
        sessionId: session.id,
        publicId: session.publicId,
        grantId: token.grantId,
        revision: configured.head.revision,
        used,
        batch: made.batch,
        ...bitsOf(session, configuration.id),
      },
      now,
    );
    if (recorded === undefined || typeof recorded === 'string') batchMaker.discard(configured, made);
    if (recorded === undefined) return undefined;
    if (typeof recorded === 'string') throw replayed(recorded);
    if (recorded.changed) {
      eventBus.publish({ type: 'session', tenantId: configured.tenantId, sessionId: session.id });
    }
    return handedOut(made);
  }

  async #accept(configured: TenantConfiguration, request: WalletRequest, now: Date): Promise<Accepted> {
    const { walletAuthenticator, credentialMessages, holderKeys, settings } = this.#ports;
    const issuer = issuerIdentifier(settings, configured.tenantId);
    const wallet = await walletAuthenticator.authenticate(configured, request.wallet, {
      method: 'POST',
      url: `${issuer}/credential`,
      now,
    });
    const message = await credentialMessages.open(configured, request);
    const configurations = await configured.credentialConfigurations();
    const configuration = resolveConfiguration(message.body, wallet.token, (id) =>
      configurations.find((entry) => entry.id === id),
    );
    if (!isAllDone(configuration, wallet.token.actionsDone)) throw interactionNeeded();
    const seal = await credentialMessages.responder(configured, message);
    const proven = await holderKeys.prove(
      configured,
      configuration,
      message.body,
      wallet.token.clientId,
      now,
    );
    return {
      configured,
      token: wallet.token,
      configuration,
      holderKeys: proven.holderKeys,
      used: [...usedByWallet(wallet), ...proven.used],
      seal,
    };
  }

  async #issue(accepted: Accepted, session: Session): Promise<Issued> {
    const { store, claimsProvider, batchMaker, eventBus, clock } = this.#ports;
    const { configured, configuration, holderKeys, token } = accepted;
    const provided = await claimsProvider.provide(configured, session, configuration, token);
    if ('intervalSeconds' in provided) return this.#defer(accepted, session, provided.intervalSeconds);
    const { claims } = provided;
    const made = await batchMaker.make(configured, configuration, { session, claims, holderKeys });
    const { bit, completeMask } = bitsOf(session, configuration.id);
    const recorded = await store
      .beats(configured.tenantId)
      .recordIssuance(session.id, made.batch, bit, completeMask, clock.now());
    if (recorded === undefined) {
      batchMaker.discard(configured, made);
      throw offerOver();
    }
    if (recorded.changed) {
      eventBus.publish({ type: 'session', tenantId: configured.tenantId, sessionId: session.id });
    }
    return handedOut(made);
  }

  /** OpenID4VCI 1.0 section 8.3: the backend cannot issue yet, so the wallet comes back with a transaction id. */
  async #defer(accepted: Accepted, session: Session, intervalSeconds: number): Promise<Issued> {
    const { store, random, clock } = this.#ports;
    const { configured, configuration, holderKeys, token } = accepted;
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
      createdAt: now,
      updatedAt: now,
      expiresAt: new Date(now.getTime() + DEFERRED_LIFETIME_SECONDS * 1000),
    };
    const { bit } = bitsOf(session, configuration.id);
    if (!(await store.beats(configured.tenantId).openDeferred(transaction, bit))) {
      throw offerOver();
    }
    return { status: 202, answer: { transaction_id: transaction.id, interval: intervalSeconds } };
  }
}

/** OpenID4VCI 1.0 section 8.3. The batch is what the wallet reports on. */
function handedOut({ credentials, batch }: MadeBatch): Issued {
  return {
    status: 200,
    answer: {
      credentials: credentials.map((credential) => ({ credential })),
      notification_id: batch.id,
    },
  };
}

async function answerOf({ seal }: Accepted, { status, answer }: Issued): Promise<WalletAnswer> {
  return { status, ...(await seal(answer)) };
}

function interactionNeeded(): Failure {
  return new Failure(
    'credential_request_denied',
    'this credential needs an interactive authorization, and this access token came without it',
  );
}

/** RFC 6749 section 4.1.2: the code of this token came back. */
export function revoked(): Failure {
  return new Failure('invalid_token', 'the access token was revoked');
}
