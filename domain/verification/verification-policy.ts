import type { PresentationConfiguration } from './configuration.ts';

/** The part of a presentation configuration that decides whether a presentation is accepted, and what is kept of it. */
export type VerificationPolicy = Partial<
  Pick<PresentationConfiguration, 'trustAnchors' | 'mdlProfile' | 'certificateRevocation' | 'values' | 'typeMetadata'>
>;

/** Characters of a policy that a session keeps. Hundreds of certificates are not copied into every session. */
const MAX_POLICY_LENGTH = 64 * 1024;

/** @returns the policy of a configuration without its other properties. */
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
 * The policy that a session keeps when a wallet is asked, so that a configuration that is changed or deleted meanwhile
 * does not decide about its response.
 * @param authorities PEM by key chain: a named chain counts by the certificate that it has now, too.
 * @returns undefined for a policy that is too large to be kept; the configuration decides then, as it is at the response.
 */
export function frozenPolicy(configuration: VerificationPolicy, authorities: ReadonlyMap<string, string>): VerificationPolicy | undefined {
  const { trustAnchors, ...rest } = policyOf(configuration);
  const frozen = trustAnchors?.flatMap((anchor) => {
    const certificate = 'keyChainId' in anchor ? authorities.get(anchor.keyChainId) : undefined;
    return certificate === undefined ? [anchor] : [anchor, { certificate }];
  });
  const policy = { ...rest, ...(frozen !== undefined && { trustAnchors: frozen }) };
  return JSON.stringify(policy).length > MAX_POLICY_LENGTH ? undefined : policy;
}
