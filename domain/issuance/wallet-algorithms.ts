import { z } from 'zod';
import { algorithmOf, PUBLISHED_ALGORITHMS, type PublicJwk, SIGNING_ALGORITHMS } from '../shared/jwk.ts';

/** Signature algorithms that an issuer accepts; null for all that the service supports. */
export const WalletAlgorithms = z
  .array(z.enum(SIGNING_ALGORITHMS))
  .min(1, 'name one at least')
  .refine((names) => new Set(names).size === names.length, 'each once')
  .meta({ uniqueItems: true })
  .nullish()
  .describe(
    'Signature algorithms that count where wallets, their providers and registered clients sign: proofs and the keys that credentials are ' +
      'bound to, attestations, DPoP proofs and client assertions. Metadata name them. All of them unless stated, under the profile `eu` ' +
      'all but `EdDSA`, which the ECCG has not agreed to. The keys of the tenant itself are not concerned',
  );
export type WalletAlgorithms = z.infer<typeof WalletAlgorithms>;

type AlgorithmSettings = { readonly algorithms?: WalletAlgorithms | undefined };

/** True if signatures by the key are accepted, and credentials may be bound to it. */
export function isAlgorithmAllowed(key: PublicJwk, { algorithms }: AlgorithmSettings): boolean {
  const algorithm = algorithmOf(key);
  return algorithm !== undefined && (algorithms?.includes(algorithm) ?? true);
}

/** Algorithm names for metadata: Ed25519 has two names. */
export function publishedAlgorithms({ algorithms }: AlgorithmSettings): readonly string[] {
  if (algorithms === null || algorithms === undefined) return PUBLISHED_ALGORITHMS;
  return PUBLISHED_ALGORITHMS.filter((name) => algorithms.includes(name === 'Ed25519' ? 'EdDSA' : name));
}
