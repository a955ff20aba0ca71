/**
 * Limit of one presentation, in characters: an SD-JWT with its key binding, or the base64url of a DeviceResponse. A claim of 1 MiB fits,
 * because base64url adds a third. An encrypted response with one such presentation stays below the body limit for wallets.
 */
export const MAX_PRESENTATION_LENGTH = 1536 * 1024;

/** Limit of request bodies with presentations, in bytes. Encryption and base64url add a third to the content. */
export const MAX_RESPONSE_BYTES = 2560 * 1024;

/** Characters of a presentation that are reserved for header, certificates, protocol claims, signatures and key binding. */
const RESERVED_LENGTH = 160 * 1024;

/** Limit of the encoded claims of an issued credential, in characters. */
export const MAX_CLAIMS_LENGTH = MAX_PRESENTATION_LENGTH - RESERVED_LENGTH;

/** The message for claims that could be issued but would exceed the limit of our verifier. */
export function claimsTooLarge(length: number): string {
  return (
    `The claims need ${length} characters in the credential; the maximum is ${MAX_CLAIMS_LENGTH}, ` +
    `since a presentation has at most ${MAX_PRESENTATION_LENGTH}. Use smaller images.`
  );
}
