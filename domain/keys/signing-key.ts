import type { PublicJwk, SigningAlgorithm } from '../shared/jwk.ts';

/** Identifies a private key: the KMS provider and the provider's id. */
export type KeyHandle = { readonly kms: string; readonly keyId: string; readonly algorithm: SigningAlgorithm };

export type StoredKey = {
  readonly handle: KeyHandle;
  readonly publicJwk: PublicJwk;
  /** Sealed PKCS#8 of a local key. Absent for keys that are stored by a provider. */
  readonly sealedKey?: string;
};

/** The input of a signature: the handle and, for a local key, its sealed private half. */
export type SigningKey = {
  readonly tenantId: string;
  readonly handle: KeyHandle;
  /** Verifies signatures of an external provider; unnecessary for destroying a key. */
  readonly publicJwk?: PublicJwk;
  readonly sealedKey?: string;
};

export function isSameHandle(handle: KeyHandle, otherHandle: KeyHandle): boolean {
  return handle.kms === otherHandle.kms && handle.keyId === otherHandle.keyId;
}

/** Converts a stored key to the input of the KMS. */
export function signingKey(tenantId: string, { handle, publicJwk, sealedKey }: StoredKey): SigningKey {
  const key = { tenantId, handle, publicJwk };
  return sealedKey === undefined ? key : { ...key, sealedKey };
}

/** Additional data of a local key's seal: the ciphertext cannot be opened for another tenant or key. */
export function localKeySealContext(tenantId: string, keyId: string): string {
  return `kms/local/${tenantId}/${keyId}`;
}
