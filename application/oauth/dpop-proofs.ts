import { isAllowed } from '../../domain/issuance/wallet-algorithms.ts';
import { parseChallenge } from '../../domain/oauth/challenge.ts';
import { type AcceptedDpopProof, assertDpopProofClaims, parseDpopProof } from '../../domain/oauth/dpop.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { needs } from '../needs.ts';
import { Random } from '../ports/random.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Signatures } from '../ports/signatures.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { freshChallenge } from './challenges.ts';

export type DpopExpectation = {
  readonly method: string;
  /** External address, without query and fragment. */
  readonly url: string;
  readonly now: Date;
  /** Issuer of the server that is asked: nonces of one server do not pass at another (RFC 9449 section 9). */
  readonly issuer: string;
  /** Only at protected resources. */
  readonly accessToken?: string;
  /** Its nonce is the challenge of a client attestation, and was looked at. */
  readonly hasChallenge?: true;
};

/** Judges DPoP proofs and hands out their nonces (RFC 9449). */
export class DpopProofs extends needs({ signatures: Signatures, random: Random, settings: ServiceSettings }) {
  /**
   * @param values every `DPoP` header field of the request. The caller's commit spends the proof.
   * @throws Failure `invalid_dpop_proof`, `use_dpop_nonce`.
   */
  async verify(configured: TenantConfiguration, values: readonly string[], expected: DpopExpectation): Promise<AcceptedDpopProof> {
    const opened = parseDpopProof(values);
    // RFC 9449 section 4.3 check 7, before anything the signature covers is used
    if (!this.ports.signatures.verify(opened.key, opened.signingInput, opened.signature)) {
      throw new Failure('invalid_dpop_proof', 'the signature of the proof is wrong');
    }
    if (!isAllowed(opened.key, await configured.issuance())) {
      throw new Failure('invalid_dpop_proof', 'this issuer does not take the alg of the proof');
    }
    const accepted = assertDpopProofClaims(opened, expected);
    if (expected.hasChallenge === undefined) await this.#assertNonce(configured, opened.payload['nonce'], expected);
    return accepted;
  }

  /**
   * @param isResource for the endpoints that take access tokens, whose nonces are others than those of their server.
   * @returns the value of a `DPoP-Nonce` header; undefined for a tenant that uses none.
   */
  async nonce(
    configured: TenantConfiguration,
    { issuer, now, isResource = false }: Pick<DpopExpectation, 'issuer' | 'now'> & { isResource?: boolean },
  ): Promise<string | undefined> {
    return dpopNonceFor(this.ports, configured, { issuer, now, isResource });
  }

  /** RFC 9449 section 8: a nonce that is there has to be ours, and one of the last minutes. */
  async #assertNonce(configured: TenantConfiguration, nonce: unknown, expected: DpopExpectation): Promise<void> {
    const { dPopNonce } = await configured.issuance();
    if (dPopNonce === 'off' || (nonce === undefined && dPopNonce === 'optional')) return;
    const { now, issuer, accessToken } = expected;
    const purpose = purposeOf(issuer, accessToken !== undefined);
    const { nonceKeys } = this.ports.settings;
    if (typeof nonce === 'string' && parseChallenge(nonceKeys, configured.tenantId, purpose, now, nonce) !== undefined) return;
    throw new Failure('use_dpop_nonce', {
      message: 'repeat the request with the nonce of this response in the DPoP proof',
      dpopNonce: freshChallenge(this.ports, configured.tenantId, purpose, now),
    });
  }
}

/** The value of a `DPoP-Nonce` header; undefined for a tenant that uses no nonces. */
export async function dpopNonceFor(
  ports: { readonly random: Random; readonly settings: ServiceSettings },
  configured: TenantConfiguration,
  { issuer, now, isResource = false }: Pick<DpopExpectation, 'issuer' | 'now'> & { isResource?: boolean },
): Promise<string | undefined> {
  if ((await configured.issuance()).dPopNonce === 'off') return undefined;
  return freshChallenge(ports, configured.tenantId, purposeOf(issuer, isResource), now);
}

function purposeOf(issuer: string, isResource: boolean): string {
  return `dpop ${isResource ? 'resource' : 'server'} ${issuer}`;
}
