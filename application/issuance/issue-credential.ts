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
import type { Clock } from '../ports/clock.ts';
import type { EventBus } from '../ports/event-bus.ts';
import type { Random } from '../ports/random.ts';
import { issuerIdentifier, type ServiceSettings } from '../ports/settings.ts';
import type { Signatures } from '../ports/signatures.ts';
import type { Store, UsedValue } from '../ports/store.ts';
import type { StatusAllocator } from '../status-lists/status-allocator.ts';
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
    // The view is as of the last request; the claim below reads the revision, and a newer one is judged again.
    let accepted = await this.#accept(
      tenantViews.latest(tenantId) ?? tenantViews.ofWallet(await beats.head()),
      wallet,
      body,
      now,
    );
    const claimed = await beats.claimCredentialRequest(accepted.token.subject as PublicId, accepted.used);
    const view = tenantViews.ofWallet(claimed?.head);
    if (view !== accepted.view) accepted = await this.#accept(view, wallet, body, now);
    // RFC 9449 section 11.1
    if (claimed?.replayed === 'dpop_jti')
      throw new Failure('invalid_dpop_proof', 'this proof was used before');
    if (claimed?.replayed === 'c_nonce') throw new Failure('invalid_nonce', 'this nonce was used before');
    const session = openSession(claimed?.session, accepted.configuration.id, now);
    return this.#issue(accepted, session);
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

  async #issue({ view, configuration, holderKeys }: Accepted, session: Session): Promise<readonly string[]> {
    const { store, claimsProvider, credentialFactory, statusAllocator, eventBus, clock, random } =
      this.#ports;
    const claims = await claimsProvider.provide(view, session, configuration);
    const count = Math.max(1, holderKeys.length);
    const entries = configuration.statusManagement
      ? await statusAllocator.allocate(view, configuration.id, count)
      : undefined;
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
    const batch = {
      id: random.token(),
      sessionId: session.id,
      credentialConfigurationId: configuration.id,
      count,
      statusListId: entries?.listId ?? null,
      firstCounter: entries?.firstCounter ?? null,
      issuedAt: clock.now(),
    };
    const bit = 2 ** session.configurationIds.indexOf(configuration.id);
    const all = 2 ** session.configurationIds.length - 1;
    const recorded = await store
      .beats(view.tenantId)
      .recordIssuance(session.id, batch, bit, all, clock.now());
    if (recorded === undefined) throw new Failure('credential_request_denied', 'the offer is over');
    if (recorded.changed)
      eventBus.publish({ type: 'session', tenantId: view.tenantId, sessionId: session.id });
    return credentials;
  }
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
