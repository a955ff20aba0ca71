/** Cryptographic random values. */
export abstract class Random {
  abstract bytes(length: number): Buffer;
  /** @returns an unguessable identifier: 128 bits or more as unpadded base64url. */
  abstract token(bits?: 128 | 192 | 256): string;
}
