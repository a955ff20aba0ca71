import { isAlgorithmAllowed } from '../../domain/issuance/wallet-algorithms.ts';
import { parseChallenge } from '../../domain/oauth/challenge.ts';
import { assertDpopProofClaims, parseDpopProof, type VerifiedDpopProof } from '../../domain/oauth/dpop.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { needs } from '../needs.ts';
import { Random } from '../ports/random.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Signatures } from '../ports/signatures.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { issueChallenge } from './challenges.ts';

export type DpopExpectation = {
  readonly method: string;
  /** External address, without query and fragment. */
  readonly url: string;
  readonly now: Date;
  /** Issuer of the called server: nonces of one server are invalid at another (RFC 9449 section 9). */
  readonly issuer: string;
  /** Only for protected resources. */
  readonly accessToken?: string;
  /** The nonce is the challenge of a client attestation and was verified with it. */
  readonly hasChallenge?: true;
};

/** Verifies DPoP proofs and issues their nonces (RFC 9449). */
export class DpopProofs extends needs({ signatures: Signatures, random: Random, settings: ServiceSettings }) {
  /**
   * @param values all `DPoP` header fields of the request. The caller's commit consumes the proof.
   * @throws Failure `invalid_dpop_proof`, `use_dpop_nonce`.
   */
  async verify(tenant: TenantConfiguration, values: readonly string[], expected: DpopExpectation): Promise<VerifiedDpopProof> {
    const parsedProof = parseDpopProof(values);
    // RFC 9449 section 4.3 check 7, before anything the signature covers is used
    if (!this.ports.signatures.verify(parsedProof.key, parsedProof.signingInput, parsedProof.signature)) {
      throw new Failure('invalid_dpop_proof', 'the signature of the proof is invalid');
    }
    if (!isAlgorithmAllowed(parsedProof.key, await tenant.issuance())) {
      throw new Failure('invalid_dpop_proof', 'this issuer does not accept the alg of the proof');
    }
    const accepted = assertDpopProofClaims(parsedProof, expected);
    if (expected.hasChallenge === undefined) await this.#assertNonce(tenant, parsedProof.payload['nonce'], expected);
    return accepted;
  }

  /**
   * @param isResource true for endpoints that accept access tokens; their nonces differ from those of their server.
   * @returns the value of a `DPoP-Nonce` header; undefined for a tenant that uses none.
   */
  async nonce(
    tenant: TenantConfiguration,
    { issuer, now, isResource = false }: Pick<DpopExpectation, 'issuer' | 'now'> & { isResource?: boolean },
  ): Promise<string | undefined> {
    return dpopNonceFor(this.ports, tenant, { issuer, now, isResource });
  }

  /** RFC 9449 section 8: a nonce must be one that this service issued recently. */
  async #assertNonce(tenant: TenantConfiguration, nonce: unknown, expected: DpopExpectation): Promise<void> {
    const { dPopNonce } = await tenant.issuance();
    if (dPopNonce === 'off' || (nonce === undefined && dPopNonce === 'optional')) return;
    const { now, issuer, accessToken } = expected;
    const purpose = purposeOf(issuer, accessToken !== undefined);
    const { nonceKeys } = this.ports.settings;
    if (typeof nonce === 'string' && parseChallenge(nonceKeys, tenant.tenantId, purpose, now, nonce) !== undefined) return;
    throw new Failure('use_dpop_nonce', {
      message: 'repeat the request with the nonce of this response in the DPoP proof',
      dpopNonce: issueChallenge(this.ports, tenant.tenantId, purpose, now),
    });
  }
}

/** The value of a `DPoP-Nonce` header; undefined for a tenant that uses no nonces. */
export async function dpopNonceFor(
  ports: { readonly random: Random; readonly settings: ServiceSettings },
  tenant: TenantConfiguration,
  { issuer, now, isResource = false }: Pick<DpopExpectation, 'issuer' | 'now'> & { isResource?: boolean },
): Promise<string | undefined> {
  if ((await tenant.issuance()).dPopNonce === 'off') return undefined;
  return issueChallenge(ports, tenant.tenantId, purposeOf(issuer, isResource), now);
}

function purposeOf(issuer: string, isResource: boolean): string {
  return `dpop ${isResource ? 'resource' : 'server'} ${issuer}`;
}
