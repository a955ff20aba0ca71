import {
  createCipheriv,
  createECDH,
  createPrivateKey,
  generateKeyPairSync,
  hash,
  type JsonWebKey,
  type KeyObject,
  randomBytes,
  sign,
} from 'node:crypto';
import { decodeCbor } from '../../domain/formats/cbor/decode.ts';
import { embed, encodeCbor } from '../../domain/formats/cbor/encode.ts';
import { type CborMap, EncodedCbor } from '../../domain/formats/cbor/values.ts';
import { buildCoseSign1, protectedHeaderOf, sigStructure } from '../../domain/formats/cose/sign1.ts';
import { deviceAuthenticationBytes } from '../../domain/formats/mdoc/device-auth.ts';
import { redirectTranscript } from '../../domain/formats/mdoc/session-transcript.ts';

export type WalletKey = {
  readonly privateKey: KeyObject;
  readonly jwk: { readonly kty: 'EC'; readonly crv: 'P-256'; readonly x: string; readonly y: string };
  /** Encoded headers, made in advance so that the wallets do not slow the service down. */
  readonly dpopHeader: string;
  readonly proofHeader: string;
};

const POP_HEADER = encode({ alg: 'ES256', typ: 'oauth-client-attestation-pop+jwt' });
const KEY_BINDING_HEADER = encode({ alg: 'ES256', typ: 'kb+jwt' });

/** More keys than a service will keep imported, so that each one is new to it when it comes round again. */
export const KEY_COUNT = 16_384;

export class KeyRing {
  readonly #keys: readonly WalletKey[];
  #next = 0;

  constructor(count = KEY_COUNT) {
    this.#keys = Array.from({ length: count }, makeKey);
  }

  takeKey(): WalletKey {
    const key = this.#keys[this.#next++ % this.#keys.length];
    if (key === undefined) throw new Error('there are no keys');
    return key;
  }
}

function makeKey(): WalletKey {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' });
  const jwk = { kty: 'EC', crv: 'P-256', x, y } as const;
  return {
    privateKey,
    jwk,
    dpopHeader: encode({ typ: 'dpop+jwt', alg: 'ES256', jwk }),
    proofHeader: encode({ typ: 'openid4vci-proof+jwt', alg: 'ES256', jwk }),
  };
}

/** RFC 9449 section 4.2 */
export function dpopProof(key: WalletKey, url: string, accessToken?: string): string {
  const payload = {
    jti: randomBytes(12).toString('base64url'),
    htm: 'POST',
    htu: url,
    iat: seconds(),
    ...(accessToken === undefined ? {} : { ath: hash('sha256', accessToken, 'base64url') }),
  };
  return signJwt(key, key.dpopHeader, payload);
}

/** Vouches for wallets: attestation-based client authentication (draft 10) section 4. */
export class Attester {
  readonly #header: string;
  readonly #key: Pick<WalletKey, 'privateKey'>;
  readonly clientId: string;

  constructor(provider: { clientId: string; certificate: string; privateJwk: JsonWebKey }) {
    this.clientId = provider.clientId;
    this.#header = encode({ alg: 'ES256', typ: 'oauth-client-attestation+jwt', x5c: [provider.certificate] });
    this.#key = { privateKey: createPrivateKey({ key: provider.privateJwk, format: 'jwk' }) };
  }

  attest({ jwk }: WalletKey): string {
    const claims = { sub: this.clientId, iat: seconds(), exp: seconds() + 3600, cnf: { jwk } };
    return signJwt(this.#key, this.#header, claims);
  }

  /** That the installation holds its key. */
  prove(instance: WalletKey, audience: string, challenge: string): string {
    const jti = randomBytes(12).toString('base64url');
    return signJwt(instance, POP_HEADER, { aud: audience, jti, iat: seconds(), challenge });
  }
}

/** OpenID4VCI 1.0 appendix F.1 */
export function keyProof(key: WalletKey, audience: string, nonce: string): string {
  return signJwt(key, key.proofHeader, { aud: audience, iat: seconds(), nonce });
}

/** Values to which a presentation is bound. */
export type Bound = {
  readonly nonce: string;
  readonly clientId: string;
  readonly responseUri: string;
  readonly encryptionKey: { readonly kid: string; readonly x: string; readonly y: string };
};

/** Keeps the disclosures of the wanted claims: what a wallet does once, so that presenting costs little. */
export function disclosing(credential: string, names: readonly string[]): string {
  const [jwt = '', ...disclosures] = credential.split('~').slice(0, -1);
  const keptParts = disclosures.filter((disclosure) => {
    const disclosureParts = JSON.parse(Buffer.from(disclosure, 'base64url').toString()) as unknown[];
    return disclosureParts.length === 3 && names.includes(String(disclosureParts[1]));
  });
  return [jwt, ...keptParts, ''].join('~');
}

/** Binds what is disclosed to a request (RFC 9901 section 4.3). */
export function bind(disclosed: string, key: WalletKey, { clientId, nonce }: Bound): string {
  const payload = { iat: seconds(), aud: clientId, nonce, sd_hash: hash('sha256', disclosed, 'base64url') };
  return disclosed + signJwt(key, KEY_BINDING_HEADER, payload);
}

/** Compact JWE by ECDH-ES in direct agreement with A256GCM (RFC 7516, RFC 7518 section 4.6). */
export function encrypt(plaintext: string, recipient: Bound['encryptionKey']): string {
  const ephemeral = createECDH('prime256v1');
  const point = ephemeral.generateKeys();
  const coordinates = [recipient.x, recipient.y].map((partText) => Buffer.from(partText, 'base64url'));
  const secret = ephemeral.computeSecret(Buffer.concat([Buffer.of(4), ...coordinates]));
  const epk = { kty: 'EC', crv: 'P-256', x: point.toString('base64url', 1, 33), y: point.toString('base64url', 33) };
  const header = encode({ alg: 'ECDH-ES', enc: 'A256GCM', kid: recipient.kid, epk });
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', contentKey(secret), iv);
  cipher.setAAD(Buffer.from(header));
  const ciphertext = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final()]);
  const encryptedParts = [iv, ciphertext, cipher.getAuthTag()].map((partText) => partText.toString('base64url'));
  return [header, '', ...encryptedParts].join('.');
}

/** Concat KDF (RFC 7518 section 4.6.2) with empty party information. */
function contentKey(secret: Buffer): Buffer {
  const algorithm = Buffer.from('A256GCM');
  const otherInfo = [number(algorithm.length), algorithm, number(0), number(0), number(256)];
  return hash('sha256', Buffer.concat([number(1), secret, ...otherInfo]), 'buffer');
}

function number(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function signJwt(key: Pick<WalletKey, 'privateKey'>, header: string, payload: object): string {
  const input = `${header}.${encode(payload)}`;
  const signature = sign('sha256', Buffer.from(input), { key: key.privateKey, dsaEncoding: 'ieee-p1363' });
  return `${input}.${signature.toString('base64url')}`;
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function seconds(): number {
  return Math.floor(Date.now() / 1000);
}

/** The disclosed part of an mdoc, encoded once, so that presenting takes little more than a signature. */
export type ShownMdoc = { readonly docType: string; readonly issuerSigned: EncodedCbor };

const NO_ELEMENTS = embed(encodeCbor(new Map()));
const PROTECTED = protectedHeaderOf('ES256');

/** Keeps the named elements. @param issuedMdoc IssuerSigned, base64url. */
export function selectShown(issuedMdoc: string, docType: string, names: readonly string[]): ShownMdoc {
  const issuerSigned = decodeCbor(Buffer.from(issuedMdoc, 'base64url')) as CborMap;
  const nameSpaces = [...(issuerSigned.get('nameSpaces') as CborMap)].map(([namespace, items]) => {
    const keptParts = (items as readonly EncodedCbor[]).filter(({ content }) =>
      names.includes(String((decodeCbor(content) as CborMap).get('elementIdentifier'))),
    );
    return [namespace, keptParts] as const;
  });
  const bytes = encodeCbor(new Map([...issuerSigned, ['nameSpaces', new Map(nameSpaces)]]));
  return { docType, issuerSigned: new EncodedCbor(bytes, bytes) };
}

/** @returns DeviceResponse, base64url (ISO/IEC 18013-5 section 8.3.2.1.2.2, OpenID4VP 1.0 appendix B.2.6.1). */
export function presentMdoc(
  { docType, issuerSigned }: ShownMdoc,
  key: WalletKey,
  { clientId, nonce, responseUri, encryptionKey: { x, y } }: Bound,
): string {
  const encryptionKey = { kty: 'EC', crv: 'P-256', x, y } as const;
  const transcript = redirectTranscript({ clientId, nonce, responseUri, encryptionKey });
  const toSign = sigStructure(PROTECTED, deviceAuthenticationBytes(transcript, docType, NO_ELEMENTS));
  const signature = sign('sha256', toSign, { key: key.privateKey, dsaEncoding: 'ieee-p1363' });
  const deviceSignature = buildCoseSign1({ protectedBytes: PROTECTED, unprotectedHeader: new Map(), signature });
  const deviceSigned = { nameSpaces: NO_ELEMENTS, deviceAuth: { deviceSignature } };
  const document = { docType, issuerSigned, deviceSigned };
  return encodeCbor({ version: '1.0', documents: [document], status: 0 }).toString('base64url');
}
