import type { EncryptionKeyPair, HpkeMessage } from '../../application/ports/encryption.ts';

/** Loaded with the first message; most services never get one. */
async function suite() {
  const { Aes128Gcm, CipherSuite, DhkemP256HkdfSha256, HkdfSha256 } = await import('@hpke/core');
  return new CipherSuite({
    kem: new DhkemP256HkdfSha256(),
    kdf: new HkdfSha256(),
    aead: new Aes128Gcm(),
  });
}

/** See `Encryption.openHpke`. */
export async function openHpke(
  { enc, cipherText }: HpkeMessage,
  { publicJwk, d }: EncryptionKeyPair,
  info: Buffer,
): Promise<Buffer | undefined> {
  const hpke = await suite();
  const { kty, crv, x, y } = publicJwk;
  const recipientKey = await hpke.kem.importKey('jwk', { kty, crv, x, y, d }, false);
  try {
    const recipient = await hpke.createRecipientContext({ recipientKey, enc: bytes(enc), info: bytes(info) });
    return Buffer.from(await recipient.open(bytes(cipherText)));
  } catch {
    // A point that is none, another key, another transcript, a broken tag: the library tells them apart, nobody may.
    return undefined;
  }
}

/** As a buffer of its own: those of Node are views of a larger one. */
function bytes(view: Uint8Array): ArrayBuffer {
  return Uint8Array.from(view).buffer;
}
