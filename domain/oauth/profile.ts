/** What a profile demands of those who call an authorization server, whatever the tenant's configuration leaves open. */
export type CallerRules = {
  /** Attestations and their proofs of possession name who made them (draft 07 of attestation-based client authentication). */
  readonly attestationIssuer: boolean;
  /** DPoP proofs carry a nonce of the server (RFC 9449 section 8). */
  readonly dpopNonce: boolean;
};

/** @param profile of the tenant; undefined for one that follows none. */
export function callerRules(profile: 'haip' | undefined): CallerRules {
  const isHaip = profile === 'haip';
  return { attestationIssuer: isHaip, dpopNonce: isHaip };
}
