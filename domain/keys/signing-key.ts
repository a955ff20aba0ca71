import type { PublicJwk, SigningAlgorithm } from '../shared/jwk.ts';

/** Names one private key: the provider that holds it and the provider's own name for it. */
export type KeyHandle = { readonly kms: string; readonly keyId: string; readonly algorithm: SigningAlgorithm };

/** A key as it is stored with its public half. */
export type StoredKey = {
  readonly handle: KeyHandle;
  readonly publicJwk: PublicJwk;
  /** Sealed PKCS#8 of a local key. Providers that keep their keys themselves leave it out. */
  readonly sealedKey?: string;
};

/** What signing needs: the handle and, for a local key, its sealed private half as it is stored. */
export type SigningKey = {
  readonly tenantId: string;
  readonly handle: KeyHandle;
  /** What signatures by a provider outside are verified with; only destroying a key does without. */
  readonly publicJwk?: PublicJwk;
  readonly sealedKey?: string;
};

export function isSameHandle(one: KeyHandle, other: KeyHandle): boolean {
  return one.kms === other.kms && one.keyId === other.keyId;
}

/** The stored key of a tenant in the form in which it is handed to the KMS. */
export function signingKey(tenantId: string, { handle, publicJwk, sealedKey }: StoredKey): SigningKey {
  const key = { tenantId, handle, publicJwk };
  return sealedKey === undefined ? key : { ...key, sealedKey };
}

/** Additional data of the seal of a local key: copied to another tenant or key it does not open. */
export function localKeyPlace(tenantId: string, keyId: string): string {
  return `kms/local/${tenantId}/${keyId}`;
}
