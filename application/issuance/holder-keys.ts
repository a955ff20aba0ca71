import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { parseProofs } from '../../domain/issuance/credential-request.ts';
import { KeyAttestationCache } from '../../domain/issuance/key-attestation.ts';
import { assertJwtProofClaims, parseJwtProof } from '../../domain/issuance/proof.ts';
import { maxBatchSize } from '../../domain/issuance/reuse-policy.ts';
import { isAlgorithmAllowed } from '../../domain/issuance/wallet-algorithms.ts';
import { parseChallenge } from '../../domain/oauth/challenge.ts';
import type { ConsumedValue } from '../../domain/oauth/consumed-value.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { type PublicJwk, thumbprint } from '../../domain/shared/jwk.ts';
import type { WalletStatus } from '../../domain/status-lists/wallet-status.ts';
import { needs } from '../needs.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Signatures } from '../ports/signatures.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { KeyAttestations, type VerifiedAttestation } from './key-attestations.ts';

/** Purpose of a nonce in a proof. */
export const C_NONCE = 'c_nonce';

export type ProvenKeys = {
  /** One per credential; empty for a configuration without holder binding. */
  readonly holderKeys: readonly PublicJwk[];
  /** Nonces of the proofs, consumed by the caller's commit. */
  readonly used: readonly ConsumedValue[];
  /** Status references of the key attestations. */
  readonly statuses: readonly WalletStatus[];
};

type ProofContext = {
  readonly tenant: TenantConfiguration;
  readonly configuration: CredentialConfiguration;
  readonly clientId: string | undefined;
  readonly now: Date;
  /** Maximum number of credentials in one response. */
  readonly limit: number;
  /** Depends on trust lists, which are needed to verify attestations, and on the configuration. */
  readonly attestations: 'ignored' | 'judged' | 'required';
  readonly attestationCache: KeyAttestationCache;
};

/** The content of all proofs of one request. */
type CollectedProofs = {
  /** Proven keys by RFC 7638 thumbprint. */
  readonly keys: Map<string, PublicJwk>;
  readonly nonces: Set<string>;
  /** The attestations to verify. */
  readonly attested: Set<string>;
};

/** Verifies the proofs of a credential request (OpenID4VCI 1.0 appendix F). */
export class HolderKeys extends needs({ signatures: Signatures, keyAttestations: KeyAttestations, settings: ServiceSettings }) {
  /**
   * Verifies signatures and structure before nonces, so that after `invalid_nonce` a new nonce is sufficient.
   * @param clientId of the access token; absent for an anonymous wallet.
   * @throws Failure `invalid_proof`, `invalid_nonce`, `invalid_credential_request`.
   */
  async verifyProofs(
    tenant: TenantConfiguration,
    configuration: CredentialConfiguration,
    body: JsonObject,
    clientId: string | undefined,
    now: Date,
  ): Promise<ProvenKeys> {
    const { batchSize, walletProviderTrustLists: lists } = await tenant.issuance();
    const limit = maxBatchSize(configuration, batchSize);
    const proofs = parseProofs(body, configuration, limit);
    if (proofs === undefined) return { holderKeys: [], used: [], statuses: [] };
    const required = configuration.keyAttestationsRequired ?? undefined;
    const context: ProofContext = {
      tenant,
      configuration,
      clientId,
      now,
      limit,
      // Without trust lists an optional attestation cannot be verified and is ignored; the proven key is used alone.
      attestations: required !== undefined ? 'required' : lists.length > 0 ? 'judged' : 'ignored',
      attestationCache: new KeyAttestationCache(),
    };
    if (proofs.type === 'attestation') return this.#byAttestation(context, proofs.texts[0] ?? '');
    const issuance = await tenant.issuance();
    const collected = this.#collect(context, proofs.texts);
    if (![...collected.keys.values()].every((key) => isAlgorithmAllowed(key, issuance)))
      throw new Failure('invalid_proof', 'this issuer does not accept the alg of the proof');
    if (collected.attested.size > 0) return this.#withAttestations(context, collected);
    return { holderKeys: [...collected.keys.values()], used: this.#readNonces(tenant, collected.nonces, now), statuses: [] };
  }

  #collect({ tenant, clientId, now, attestations, attestationCache }: ProofContext, texts: readonly string[]): CollectedProofs {
    const collected: CollectedProofs = { keys: new Map(), nonces: new Set(), attested: new Set() };
    for (const text of texts) {
      const proof = parseJwtProof(text, attestationCache);
      // OpenID4VCI 1.0 appendix F.4
      if (!this.ports.signatures.verify(proof.key, proof.signingInput, proof.signature, 'once')) {
        throw new Failure('invalid_proof', 'the signature of the proof is invalid');
      }
      collected.nonces.add(assertJwtProofClaims(proof, { audience: tenant.issuer, clientId, now }));
      // OpenID4VCI 1.0 section 8.3: a key binds at most one credential
      const name = thumbprint(proof.key);
      if (collected.keys.has(name)) throw new Failure('invalid_proof', 'the same key is in two proofs');
      collected.keys.set(name, proof.key);
      if (attestations === 'ignored') continue;
      if (proof.keyAttestation !== undefined) collected.attested.add(proof.keyAttestation);
      else if (attestations === 'required') {
        // OpenID4VCI 1.0 appendix F.1
        throw new Failure('invalid_proof', 'this credential requires a key_attestation in each proof');
      }
    }
    return collected;
  }

  /** OpenID4VCI 1.0 appendix F.1: one credential for each attested key, also for keys without a proof. */
  async #withAttestations(context: ProofContext, { keys, nonces, attested }: CollectedProofs): Promise<ProvenKeys> {
    const verified: VerifiedAttestation[] = [];
    for (const text of attested) verified.push(await this.#verifyAttestation(context, text, 'jwt'));
    const keysByThumbprint = new Map(keys);
    for (const [name, key] of verified.flatMap((attestation) => [...attestation.keys])) {
      if (keysByThumbprint.size < context.limit) keysByThumbprint.set(name, key);
    }
    const allNonces = new Set([...nonces, ...verified.flatMap(({ nonce }) => nonce ?? [])]);
    const used = this.#readNonces(context.tenant, allNonces, context.now);
    const { tenant, now } = context;
    const statuses = await this.ports.keyAttestations.verifyStatuses(tenant, verified, now);
    return { holderKeys: [...keysByThumbprint.values()], used, statuses };
  }

  /** OpenID4VCI 1.0 appendix F.3: the provider attests the keys, without a proof of possession. */
  async #byAttestation(context: ProofContext, text: string): Promise<ProvenKeys> {
    const attestation = await this.#verifyAttestation(context, text, 'attestation');
    if (attestation.nonce === undefined) throw new Failure('invalid_proof', 'the key attestation has no nonce');
    const used = this.#readNonces(context.tenant, new Set([attestation.nonce]), context.now);
    const { tenant, now, limit } = context;
    const statuses = await this.ports.keyAttestations.verifyStatuses(tenant, [attestation], now);
    return { holderKeys: [...attestation.keys.values()].slice(0, limit), used, statuses };
  }

  #verifyAttestation(
    { tenant, configuration, now, attestationCache }: ProofContext,
    text: string,
    proofType: 'jwt' | 'attestation',
  ): Promise<VerifiedAttestation> {
    const levels = configuration.keyAttestationsRequired;
    return this.ports.keyAttestations.verify(tenant, attestationCache.parse(text), { proofType, levels, now });
  }

  #readNonces(tenant: TenantConfiguration, nonces: ReadonlySet<string>, now: Date): ConsumedValue[] {
    return [...nonces].map((nonce) => {
      const challenge = parseChallenge(this.ports.settings.nonceKeys, tenant.tenantId, C_NONCE, now, nonce);
      if (challenge === undefined) throw new Failure('invalid_nonce', 'the nonce is unknown or expired; request a new one');
      return { kind: 'c_nonce', ...challenge };
    });
  }
}
