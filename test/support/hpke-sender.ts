import { createCipheriv, createECDH, createHmac } from 'node:crypto';

/**
 * A sender of HPKE, written down from RFC 9180 and by other means than the product's: mode base (section 5.1.1),
 * DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, no additional data.
 */
const KEM = Buffer.concat([Buffer.from('KEM'), number(0x0010)]);
const HPKE = Buffer.concat([Buffer.from('HPKE'), number(0x0010), number(0x0001), number(0x0001)]);
const NOTHING = Buffer.alloc(0);

function number(value: number): Buffer {
  return Buffer.from([value >> 8, value & 0xff]);
}

function hmac(key: Buffer, ...parts: readonly Buffer[]): Buffer {
  return createHmac('sha256', key).update(Buffer.concat(parts)).digest();
}

/** Section 4, LabeledExtract. */
function extract(suite: Buffer, salt: Buffer, label: string, value: Buffer): Buffer {
  return hmac(salt, Buffer.from('HPKE-v1'), suite, Buffer.from(label), value);
}

/** Section 4, LabeledExpand: one block is enough for all that is wanted here. */
function expand(suite: Buffer, secret: Buffer, label: string, info: Buffer, length: number): Buffer {
  const labeled = [number(length), Buffer.from('HPKE-v1'), suite, Buffer.from(label), info];
  return hmac(secret, ...labeled, Buffer.from([1])).subarray(0, length);
}

/** @param recipient an uncompressed point. */
export function sealHpke(recipient: Buffer, info: Buffer, plaintext: Uint8Array) {
  const ephemeral = createECDH('prime256v1');
  const enc = ephemeral.generateKeys();
  // Section 4.1, Encap
  const shared = extract(KEM, NOTHING, 'eae_prk', ephemeral.computeSecret(recipient));
  const secret = expand(KEM, shared, 'shared_secret', Buffer.concat([enc, recipient]), 32);
  // Section 5.1, KeySchedule
  const pskIdHash = extract(HPKE, NOTHING, 'psk_id_hash', NOTHING);
  const infoHash = extract(HPKE, NOTHING, 'info_hash', info);
  const context = Buffer.concat([Buffer.from([0]), pskIdHash, infoHash]);
  const scheduled = extract(HPKE, secret, 'secret', NOTHING);
  const key = expand(HPKE, scheduled, 'key', context, 16);
  const nonce = expand(HPKE, scheduled, 'base_nonce', context, 12);
  const cipher = createCipheriv('aes-128-gcm', key, nonce);
  const sealed = [cipher.update(plaintext), cipher.final(), cipher.getAuthTag()];
  return { enc, cipherText: Buffer.concat(sealed) };
}
