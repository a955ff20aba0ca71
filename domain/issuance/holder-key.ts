import { isFullLength } from '../shared/curve-point.ts';
import { type PublicJwk, readPublicJwk, SIGNING_ALGORITHMS } from '../shared/jwk.ts';

/** Algorithms that a wallet may prove its key with; published in the metadata. */
export const PROOF_ALGORITHMS = SIGNING_ALGORITHMS;

/**
 * A key that a credential can be bound to.
 * @returns undefined for a private key, an unknown curve, or a key that could be spelled in another way: each key
 *   binds at most one credential of a request, and keys are told apart by their thumbprints.
 */
export function readHolderKey(value: unknown): PublicJwk | undefined {
  const key = readPublicJwk(value);
  return key !== undefined && isFullLength(key) ? key : undefined;
}
