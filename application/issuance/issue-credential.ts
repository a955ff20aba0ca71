import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { readProofs, resolveConfiguration } from '../../domain/issuance/credential-request.ts';
import { acceptJwtProof, openJwtProof } from '../../domain/issuance/proof.ts';
import type { WalletTokenClaims } from '../../domain/oauth/access-token.ts';
import { readChallenge } from '../../domain/oauth/challenge.ts';
import { type Session, statusAt } from '../../domain/sessions/session.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { PublicId, TenantId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { type PublicJwk, thumbprint } from '../../domain/shared/jwk.ts';
import type { IssuedBatch } from '../../domain/status-lists/status-list.ts';
import type { Clock } from '../ports/clock.ts';
import type { EventBus } from '../ports/event-bus.ts';
import type { Random } from '../ports/random.ts';
import { issuerIdentifier, type ServiceSettings } from '../ports/settings.ts';
import type { Signatures } from '../ports/signatures.ts';
import type { Store, UsedValue } from '../ports/store.ts';
import type { AllocatedEntries, StatusAllocator } from '../status-lists/status-allocator.ts';
import { authenticateWallet, type WalletCredentials } from '../steps/authenticate-wallet.ts';
import type { ClaimsProvider } from '../steps/claims-provider.ts';
import type { CredentialFactory } from '../steps/credential-factory.ts';
import type { TenantView, TenantViews } from '../steps/tenant-views.ts';
import type { WalletTokens } from '../steps/wallet-tokens.ts';
import { C_NONCE } from './create-nonce.ts';

type Ports = {
  readonly store: Store;
  readonly tenantViews: TenantViews;
  readonly walletTokens: WalletTokens;
  readonly signatures: Signatures;
  readonly claimsProvider: ClaimsProvider;
  readonly credentialFactory: CredentialFactory;
  readonly statusAllocator: StatusAllocator;
  readonly eventBus: EventBus;
  readonly clock: Clock;
  readonly random: Random;
  readonly settings: ServiceSettings;
};

type Attempt = {
  readonly credentials: readonly string[] | undefined;
  readonly entries: AllocatedEntries | undefined;
};

type Accepted = {
  readonly view: TenantView;
  readonly token: WalletTokenClaims;
  readonly configuration: CredentialConfiguration;
  readonly holderKeys: readonly PublicJwk[];
  readonly used: readonly UsedValue[];
};

/** The credential endpoint (OpenID4VCI 1.0 section 8). */
export class IssueCredential {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @returns the credentials of one request, one per proven key, compact SD-JWTs. */
  async execute(tenantId: TenantId, wallet: WalletCredentials, body: JsonObject): Promise<readonly string[]> {
    const { store, tenantViews, clock } = this.#ports;
    const beats = store.beats(tenantId);
    const now = clock.now();
    // The view is as of the last request; what follows reads the revision, and a newer one is judged again.
    const latest = tenantViews.latest(tenantId) ?? tenantViews.ofWallet(await beats.head());
    let accepted = await this.#accept(latest, wallet, body, now);
    const attempt = await this.#issueAtOnce(accepted, now);
    if (attempt?.credentials !== undefined) return attempt.credentials;

    const claimed = await beats.claimCredentialRequest(accepted.token.subject as PublicId, accepted.used);
    const view = tenantViews.ofWallet(claimed?.head);
    if (view !== accepted.view) accepted = await this.#accept(view, wallet, body, now);
    if (claimed?.replayed !== undefined) throw replayed(claimed.replayed);
    const session = openSession(claimed?.session, accepted.configuration.id, now);
    return this.#issue(accepted, session, attempt?.entries);
  }

  /**
   * When this process made the offer and the claims stand in it, the credential is made first; spending the proofs
   * and recording the issuance is then one step of the database, and nobody gets a credential that it refuses.
   * @returns no credentials when nothing happened and the steps have to decide; they use the status entries that were
   *   taken, so that none is wasted.
   */
  async #issueAtOnce(accepted: Accepted, now: Date): Promise<Attempt | undefined> {
    const { store, claimsProvider, eventBus } = this.#ports;
    const { view, token, configuration, used } = accepted;
    const beats = store.beats(view.tenantId);
    const session = beats.recallSession(token.subject as PublicId);
    const claims = session && claimsProvider.atHand(view, session, configuration);
    if (session === undefined || claims === undefined) return undefined;
    if (!session.configurationIds.includes(configuration.id)) return undefined;
    const entries = await this.#allocate(accepted);
    const { credentials, batch } = await this.#make(accepted, session, claims, entries);
    const recorded = await beats.issueAtOnce(
      {
        sessionId: session.id,
        revision: view.head.revision,
        used,
        batch,
        ...bitsOf(session, configuration.id),
      },
      now,
    );
    if (recorded === undefined) return { credentials: undefined, entries };
    if (typeof recorded === 'string') throw replayed(recorded);
    if (recorded.changed) {
      eventBus.publish({ type: 'session', tenantId: view.tenantId, sessionId: session.id });
    }
    return { credentials, entries };
  }

  async #accept(view: TenantView, wallet: WalletCredentials, body: JsonObject, now: Date): Promise<Accepted> {
    const { walletTokens, signatures, settings } = this.#ports;
    const issuer = issuerIdentifier(settings, view.tenantId);
    const issuance = await view.issuanceConfiguration();
    const { token, dpop } = await authenticateWallet({ walletTokens, signatures }, view, wallet, {
      method: 'POST',
      url: `${issuer}/credential`,
      now,
    });
    const configurations = await view.credentialConfigurations();
    const configuration = resolveConfiguration(body, token, (id) =>
      configurations.find((entry) => entry.id === id),
    );
    const proofs = readProofs(body, configuration.keyBinding, issuance?.batchSize ?? 1);
    const used: UsedValue[] =
      dpop === undefined ? [] : [{ kind: 'dpop_jti', hash: dpop.hash, expiresAt: dpop.expiresAt }];
    const { keys, nonces } = this.#checkProofs(proofs, issuer, token.clientId, now);
    for (const nonce of nonces) {
      const fresh = readChallenge(settings.nonceKeys, view.tenantId, C_NONCE, now, nonce);
      if (fresh === undefined)
        throw new Failure('invalid_nonce', 'the nonce is unknown or too old; get a new one');
      used.push({ kind: 'c_nonce', ...fresh });
    }
    return { view, token, configuration, holderKeys: keys, used };
  }

  /** Signatures and structure before nonces, so `invalid_nonce` always means that a new nonce would do. */
  #checkProofs(proofs: readonly string[], audience: string, clientId: string | undefined, now: Date) {
    const keys = new Map<string, PublicJwk>();
    const nonces = new Set<string>();
    for (const text of proofs) {
      const proof = openJwtProof(text);
      // OpenID4VCI 1.0 appendix F.4
      if (!this.#ports.signatures.verify(proof.key, proof.signingInput, proof.signature)) {
        throw new Failure('invalid_proof', 'the signature of the proof is wrong');
      }
      nonces.add(acceptJwtProof(proof, { audience, clientId, now }));
      // OpenID4VCI 1.0 section 8.3: a key binds at most one credential
      const name = thumbprint(proof.key);
      if (keys.has(name)) throw new Failure('invalid_proof', 'the same key stands in two proofs');
      keys.set(name, proof.key);
    }
    return { keys: [...keys.values()], nonces };
  }

  async #issue(
    accepted: Accepted,
    session: Session,
    taken: AllocatedEntries | undefined,
  ): Promise<readonly string[]> {
    const { store, claimsProvider, eventBus, clock } = this.#ports;
    const { view, configuration } = accepted;
    const claims = await claimsProvider.provide(view, session, configuration);
    const entries = taken ?? (await this.#allocate(accepted));
    const { credentials, batch } = await this.#make(accepted, session, claims, entries);
    const { bit, completeMask } = bitsOf(session, configuration.id);
    const recorded = await store
      .beats(view.tenantId)
      .recordIssuance(session.id, batch, bit, completeMask, clock.now());
    if (recorded === undefined) throw new Failure('credential_request_denied', 'the offer is over');
    if (recorded.changed) {
      eventBus.publish({ type: 'session', tenantId: view.tenantId, sessionId: session.id });
    }
    return credentials;
  }

  /** One status entry per key; undefined for a configuration without status. */
  async #allocate({ view, configuration, holderKeys }: Accepted): Promise<AllocatedEntries | undefined> {
    if (!configuration.statusManagement) return undefined;
    return this.#ports.statusAllocator.allocate(view, configuration, Math.max(1, holderKeys.length));
  }

  async #make(
    { view, configuration, holderKeys }: Accepted,
    session: Session,
    claims: JsonObject,
    entries: AllocatedEntries | undefined,
  ) {
    const { credentialFactory, clock, random } = this.#ports;
    const count = Math.max(1, holderKeys.length);
    const credentials: string[] = [];
    for (let i = 0; i < count; i++) {
      const idx = entries?.indices[i];
      credentials.push(
        await credentialFactory.make(view, configuration, claims, {
          ...(holderKeys[i] === undefined ? {} : { holderKey: holderKeys[i] }),
          ...(entries === undefined || idx === undefined ? {} : { status: { idx, uri: entries.uri } }),
        }),
      );
    }
    const batch: IssuedBatch = {
      id: random.token(),
      sessionId: session.id,
      credentialConfigurationId: configuration.id,
      count,
      statusListId: entries?.listId ?? null,
      firstCounter: entries?.firstCounter ?? null,
      issuedAt: clock.now(),
    };
    return { credentials, batch };
  }
}

/** Bit i stands for the i-th configuration of the offer; all of them together complete it. */
function bitsOf({ configurationIds }: Session, configurationId: string) {
  return {
    bit: 2 ** configurationIds.indexOf(configurationId),
    completeMask: 2 ** configurationIds.length - 1,
  };
}

function replayed(kind: UsedValue['kind']): Failure {
  return kind === 'c_nonce'
    ? new Failure('invalid_nonce', 'this nonce was used before')
    : // RFC 9449 section 11.1
      new Failure('invalid_dpop_proof', 'this proof was used before');
}

/** @throws Failure `credential_request_denied` for a session that is over; it may have completed, though. */
function openSession(session: Session | undefined, configurationId: string, now: Date): Session {
  const status = session === undefined ? undefined : statusAt(session, now);
  if (session === undefined || status === 'failed' || status === 'expired') {
    throw new Failure('credential_request_denied', 'the offer is over');
  }
  if (session.request?.kind !== 'issuance' || !session.configurationIds.includes(configurationId)) {
    throw new Failure('credential_request_denied', 'the offer does not cover this credential');
  }
  return session;
}
