import { findKeyChain, type KeyChain, signingChain } from '../keys/key-chain.ts';
import type { Finding } from '../shared/finding.ts';
import type { CredentialConfigurationBody } from './configuration.ts';
import { credentialTimes, MDOC_LIFETIME_SECONDS, sdJwtTimes } from './credential.ts';

/**
 * A credential never outlives the certificate of its signer, so a longer lifetime is shortened at issuance.
 * @param chains of the tenant; without a signing key chain there is no warning.
 */
export function findLifetimeProblems(
  { config, keyChainId, lifeTime }: CredentialConfigurationBody,
  chains: readonly KeyChain[],
  now: Date,
): readonly Finding[] {
  const isMdoc = config.format === 'mso_mdoc';
  const seconds = lifeTime ?? (isMdoc ? MDOC_LIFETIME_SECONDS : undefined);
  const chain = findKeyChain(chains, 'signing', now, keyChainId ?? undefined);
  if (seconds === undefined || chain === undefined) return [];
  const isCertified = isMdoc || signingChain(chain).length > 0;
  const { exp = 0 } = credentialTimes(now, seconds, 0);
  const { exp: effective = 0 } = sdJwtTimes(now, seconds, chain.active, 0);
  if (!isCertified || effective >= exp) return [];
  return [
    {
      rule: isMdoc ? 'ISO/IEC 18013-5 section 9.3.1' : 'RFC 5280 section 4.1.2.5',
      member: 'lifeTime',
      concerns: 'holders, whose credentials expire earlier than the configuration says',
      message:
        `a credential that is issued now expires at ${new Date(effective * 1000).toISOString()} with the certificate of the key chain ${chain.id}, ` +
        `instead of after ${seconds} seconds`,
      change: 'set a shorter lifeTime, or use a key chain whose certificate is valid for longer',
    },
  ];
}
