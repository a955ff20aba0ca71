import type { Compression, ContentEncryption } from '../../domain/formats/jose/content-encryption.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { PublicJwk } from '../../domain/shared/jwk.ts';

export type EncryptionKeyPair = {
  /** Public half with `kid`, `use: enc` and `alg: ECDH-ES`, as it goes into `client_metadata.jwks`. */
  readonly publicJwk: PublicJwk & { readonly kid: string };
  /** Private scalar, unpadded base64url. Sealed wherever it is stored. */
  readonly d: string;
};

/** An HPKE message: the encapsulated key, and the ciphertext with its tag. */
export type HpkeMessage = { readonly enc: Uint8Array; readonly cipherText: Uint8Array };

export type DecryptionOptions = {
  /** Accepts `zip: DEF` (RFC 7516 section 4.1.3) up to 1 MiB of plaintext; otherwise compression is rejected. */
  readonly inflate?: boolean;
};

/** Encrypts and decrypts messages (RFC 7516, RFC 7518 section 4.6: ECDH-ES on P-256, A128GCM and A256GCM). */
export abstract class Encryption {
  /** A fresh P-256 key; HAIP 1.0 section 5 requires one per request. */
  abstract generate(): EncryptionKeyPair;
  /**
   * Decrypts a compact JWE addressed to `key` by `kid`.
   * @returns the plaintext, or `undefined` for an invalid message: another `kid`, `alg` or `enc`, a foreign or invalid `epk`, `zip`,
   *   `crit`, a nested JWS, an invalid tag.
   */
  abstract decrypt(jwe: string, key: EncryptionKeyPair, options?: DecryptionOptions): Promise<string | undefined> | string | undefined;
  /**
   * Decrypts an HPKE message (RFC 9180, mode base, DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-128-GCM) without additional data.
   * @param info context that both sides share (RFC 9180 section 5.1).
   * @returns the plaintext, or `undefined` for another key or context, and for an invalid message.
   */
  abstract openHpke(message: HpkeMessage, key: EncryptionKeyPair, info: Buffer): Promise<Buffer | undefined>;
  /**
   * @param recipient a P-256 key that is a point of its curve; its `kid` goes into the header.
   * @returns a compact JWE.
   */
  abstract encrypt(
    plaintext: string,
    recipient: PublicJwk,
    options: {
      readonly enc: ContentEncryption;
      readonly zip?: Compression | undefined;
      /** `cty` of a nested message (RFC 7519 section 5.2). */
      readonly contentType?: string;
    },
  ): Promise<string>;
  /**
   * The keys that credential requests to a tenant are encrypted to (OpenID4VCI 1.0 section 10), the same in every
   * process and after every start. The first is published; all of them decrypt.
   */
  abstract requestKeys(tenantId: TenantId): readonly EncryptionKeyPair[];
}
