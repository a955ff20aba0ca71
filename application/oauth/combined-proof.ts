import { openDpopProof } from '../../domain/oauth/dpop.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { type PublicJwk, thumbprint } from '../../domain/shared/jwk.ts';
import type { Signatures } from '../ports/signatures.ts';

/**
 * Whether a DPoP proof stands for the proof of possession of an attested key (attestation-based client authentication, draft 10
 * section 7.3). What else makes a DPoP proof good is looked at where every one is.
 * @param values every `DPoP` header field.
 * @returns its nonce, which is the challenge.
 * @throws Failure `invalid_client_attestation`, `invalid_dpop_proof`.
 */
export function openCombined(
  signatures: Pick<Signatures, 'verify'>,
  values: readonly string[],
  instanceKey: PublicJwk,
): string | undefined {
  const { key, signingInput, signature, payload } = openDpopProof(values);
  if (thumbprint(key) !== thumbprint(instanceKey) || !signatures.verify(key, signingInput, signature)) {
    throw new Failure(
      'invalid_client_attestation',
      'without an OAuth-Client-Attestation-PoP header the DPoP proof has to be by the attested key',
    );
  }
  const { nonce } = payload;
  // A nonce that is not a string is not one of ours, and not absent either.
  return nonce === undefined || typeof nonce === 'string' ? nonce : '';
}
