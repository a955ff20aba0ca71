import { assertKeyAttestationClaims, type ParsedKeyAttestation, type RequiredLevels } from '../../domain/issuance/key-attestation.ts';
import { isAlgorithmAllowed } from '../../domain/issuance/wallet-algorithms.ts';
import { Failure, OperatorReason } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { algorithmOf, type PublicJwk } from '../../domain/shared/jwk.ts';
import type { WalletStatus } from '../../domain/status-lists/wallet-status.ts';
import { needs } from '../needs.ts';
import { type AttestationIssuer, WalletProviderTrust } from '../oauth/wallet-provider-trust.ts';
import { Signatures } from '../ports/signatures.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** A verified key attestation; its nonce and its status have yet to be checked. */
export type VerifiedAttestation = {
  /** Undefined in a `jwt` proof whose attestation has none. */
  readonly nonce: string | undefined;
  /** Attested keys by RFC 7638 thumbprint, in the order of the attestation. */
  readonly keys: ReadonlyMap<string, PublicJwk>;
  readonly issuer: AttestationIssuer;
  readonly payload: JsonObject;
};

/** Verifies key attestations of wallet providers (OpenID4VCI 1.0 appendix D.1). */
export class KeyAttestations extends needs({ signatures: Signatures, walletProviderTrust: WalletProviderTrust }) {
  /** @throws Failure `invalid_proof`. */
  async verify(
    tenant: TenantConfiguration,
    { jws, algorithm, chain, keys }: ParsedKeyAttestation,
    expected: { readonly proofType: 'jwt' | 'attestation'; readonly levels: RequiredLevels | undefined; readonly now: Date },
  ): Promise<VerifiedAttestation> {
    const { signatures, walletProviderTrust } = this.ports;
    // HAIP 1.0 section 4.5.1: `x5c` contains the key of the attestation's issuer
    if (chain === undefined) throw new Failure('invalid_proof', 'the key attestation has no x5c of certificates');
    const provider = await walletProviderTrust.verify(tenant, chain, expected.now);
    if (!provider.trusted) throw new Failure('invalid_proof', `key attestation: ${provider.detail}`);
    const issuance = await tenant.issuance();
    if (![provider.key, ...[...keys.values()].map(({ key }) => key)].every((key) => isAlgorithmAllowed(key, issuance)))
      throw new Failure('invalid_proof', 'this issuer does not accept the alg of the key attestation or of its keys');
    // OpenID4VCI 1.0 appendix F.4; the algorithm follows from the key (RFC 8725 section 3.1)
    const isSigned = algorithm === algorithmOf(provider.key) && signatures.verify(provider.key, jws.signingInput, jws.signature);
    if (!isSigned) throw new Failure('invalid_proof', 'the signature of the key attestation is invalid');
    return {
      nonce: assertKeyAttestationClaims(jws.payload, expected),
      keys: new Map([...keys].map(([name, { key }]) => [name, key])),
      issuer: provider.issuer,
      payload: jws.payload,
    };
  }

  /**
   * Runs last, since it calls addresses from the attestations.
   * @returns the status references.
   * @throws Failure `invalid_proof`.
   */
  async verifyStatuses(
    tenant: TenantConfiguration,
    attestations: readonly VerifiedAttestation[],
    now: Date,
  ): Promise<readonly WalletStatus[]> {
    const { walletProviderTrust } = this.ports;
    const what = 'the key attestation';
    const answers = await Promise.all(
      attestations.map(({ issuer, payload }) => walletProviderTrust.verifyStatuses(tenant, issuer, { what, payload, now })),
    );
    return answers.flatMap((answer) => {
      if ('statuses' in answer) return answer.statuses;
      throw new Failure('invalid_proof', answer.walletMessage, { cause: new OperatorReason(answer.reason) });
    });
  }
}
