/**
 * A value that may be used once, remembered until it would have expired anyway: the `jti` of a DPoP proof or of a
 * client's proof of itself, a `c_nonce`.
 */
export type UsedValue = {
  readonly kind: 'dpop_jti' | 'client_jti' | 'c_nonce';
  readonly hash: string;
  readonly expiresAt: Date;
};
