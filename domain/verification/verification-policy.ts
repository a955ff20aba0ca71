import type { PresentationConfiguration } from './configuration.ts';

/** The part of a presentation configuration that decides if a presentation is accepted, and which of its values are stored. */
export type VerificationPolicy = Partial<
  Pick<PresentationConfiguration, 'trustAnchors' | 'mdlProfile' | 'certificateRevocation' | 'values' | 'typeMetadata'>
>;

/** Limit of the characters of a stored policy, because hundreds of certificates must not be copied into every session. */
const MAX_POLICY_LENGTH = 64 * 1024;

export function policyOf({
  trustAnchors,
  mdlProfile,
  certificateRevocation,
  values,
  typeMetadata,
}: VerificationPolicy): VerificationPolicy {
  const policy = { trustAnchors, mdlProfile, certificateRevocation, values, typeMetadata };
  return Object.fromEntries(Object.entries(policy).filter(([, value]) => value !== undefined));
}

/**
 * The policy that a session stores with its request, so that later changes of the configuration do not affect the response.
 * @param authorities PEM by key chain: a named chain is also trusted by its current certificate.
 * @returns undefined for a policy that exceeds the limit; then the configuration at the time of the response decides.
 */
export function frozenPolicy(configuration: VerificationPolicy, authorities: ReadonlyMap<string, string>): VerificationPolicy | undefined {
  const { trustAnchors, ...otherSettings } = policyOf(configuration);
  const frozen = trustAnchors?.flatMap((anchor) => {
    const certificate = 'keyChainId' in anchor ? authorities.get(anchor.keyChainId) : undefined;
    return certificate === undefined ? [anchor] : [anchor, { certificate }];
  });
  const policy = { ...otherSettings, ...(frozen !== undefined && { trustAnchors: frozen }) };
  return JSON.stringify(policy).length > MAX_POLICY_LENGTH ? undefined : policy;
}
