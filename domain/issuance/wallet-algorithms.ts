import { z } from 'zod';
import { algorithmOf, PUBLISHED_ALGORITHMS, type PublicJwk, SIGNING_ALGORITHMS } from '../shared/jwk.ts';

/** Signature algorithms that an issuer accepts; null for all that the service supports. */
export const WalletAlgorithms = z
  .array(z.enum(SIGNING_ALGORITHMS))
  .min(1, 'at least one is required')
  .refine((names) => new Set(names).size === names.length, 'each once')
  .meta({ uniqueItems: true })
  .nullish()
  .describe(
    'Accepted signature algorithms of wallets, their providers and registered clients: proofs and the keys that credentials are ' +
      'bound to, attestations, DPoP proofs and client assertions. Metadata list them. Default: all of them, under the profile `eu` ' +
      'all except `EdDSA`, which is not an agreed algorithm of the ECCG. The keys of the tenant are not affected',
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
