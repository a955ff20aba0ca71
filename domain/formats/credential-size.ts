/**
 * Largest presentation of one credential, in characters: an SD-JWT with its key binding, or the base64url of a
 * DeviceResponse. A claim of 1 MiB fits, since base64url adds a third. A response with one such presentation, encrypted
 * and encoded again, stays below the largest body that is read of a wallet.
 */
export const MAX_PRESENTATION_LENGTH = 1536 * 1024;

/** Largest body that carries presentations, in bytes. Encryption and base64url add a third to what they carry. */
export const MAX_RESPONSE_BYTES = 2560 * 1024;

/** Characters of a presentation that are reserved for header, certificates, protocol claims, signatures and key binding. */
const RESERVED_LENGTH = 160 * 1024;

/** Largest share of an issued credential that its claims may have, in characters as they are encoded. */
export const MAX_CLAIMS_LENGTH = MAX_PRESENTATION_LENGTH - RESERVED_LENGTH;

/** The message for claims that the service could issue but no verifier of this service would accept. */
export function claimsTooLarge(length: number): string {
  return (
    `The claims take ${length} characters in the credential; at most ${MAX_CLAIMS_LENGTH} are possible, ` +
    `since a presentation has at most ${MAX_PRESENTATION_LENGTH}. Use smaller images.`
  );
}
