import {
  CoseKey,
  cborDecode,
  type DataItem,
  DateOnly,
  DeviceAuth,
  DeviceAuthentication,
  DeviceNamespaces,
  DeviceResponse,
  DeviceSignature,
  DeviceSigned,
  Document,
  Header,
  IssuerNamespaces,
  IssuerSigned,
  IssuerSignedItem,
  type MdocContext,
  SessionTranscript,
  SignatureAlgorithm,
} from '@owf/mdoc';
import { base64url, calculateJwkThumbprint, type JWK } from 'jose';
import { publicKeyOf } from './certificates.ts';
import { differentValue, type Json, type JsonObject, type Path } from './claims.ts';
import { digest, type HolderKey, randomBytes, signBytes } from './keys.ts';

/** An issued mdoc (ISO/IEC 18013-5 section 8.3.2.1.2.2). */
export type Mdoc = {
  readonly issuerSigned: IssuerSigned;
  readonly docType: string;
  readonly claims: JsonObject;
  readonly chain: readonly string[];
  /** Like in an SD-JWT VC (Token Status List section 6.3). */
  readonly status: Json;
};

export function readMdoc(text: string): Mdoc {
  const issuerSigned = IssuerSigned.fromEncodedForOid4Vci(text);
  const { docType } = issuerSigned.issuerAuth.mobileSecurityObject;
  const claims: JsonObject = {};
  for (const [namespace, items] of issuerSigned.issuerNamespaces.issuerNamespaces)
    claims[namespace] = Object.fromEntries(items.map((item) => [item.elementIdentifier, toJson(item.elementValue)]));
  const chain = (issuerSigned.issuerAuth.x5chain ?? []).map(toBase64);
  return { issuerSigned, docType, claims, chain, status: statusIn(issuerSigned) };
}

/** Parses the status, which the library omits because it is not part of ISO/IEC 18013-5. */
function statusIn({ issuerAuth }: IssuerSigned): Json {
  const item = cborDecode<DataItem<Map<string, unknown>>>(issuerAuth.payload ?? new Uint8Array(), { unwrapTopLevelDataItem: false });
  return toJson(item.data.get('status') ?? null);
}

/** @throws Error for an invalid signature, or an element that does not match its digest. */
export async function verifyMdoc({ issuerSigned }: Mdoc): Promise<void> {
  const { issuerAuth, issuerNamespaces } = issuerSigned;
  if (!(await issuerAuth.verifySignature({}, context())))
    throw new Error('the signature does not belong to the certificate in the credential');
  for (const [namespace, items] of issuerNamespaces.issuerNamespaces)
    for (const item of items)
      if (!(await item.isValid(namespace, issuerAuth, context())))
        throw new Error(`${item.elementIdentifier} differs from the signed digest`);
}

export type DeviceBinding = {
  readonly clientId: string;
  readonly responseUri: string;
  readonly nonce: string;
  readonly holder: HolderKey;
  /** The encryption key of the response, if it is encrypted. */
  readonly encryptionKey: JWK | undefined;
};

/** Presents the elements at the paths, signed for this request (OpenID4VP 1.0 appendix B.2.6.1). */
export async function presentMdoc(
  { issuerSigned, docType }: Mdoc,
  paths: readonly Path[],
  binding: DeviceBinding,
  altered?: Path,
): Promise<string> {
  const { holder, clientId, responseUri, nonce, encryptionKey } = binding;
  const mdoc = context(holder);
  const jwkThumbprint = encryptionKey === undefined ? undefined : base64url.decode(await calculateJwkThumbprint(encryptionKey));
  const sessionTranscript = await SessionTranscript.forOid4Vp(
    { clientId, responseUri, nonce, ...(jwkThumbprint !== undefined && { jwkThumbprint }) },
    mdoc,
  );
  const deviceNamespaces = DeviceNamespaces.create({ deviceNamespaces: new Map() });
  const authentication = DeviceAuthentication.create({ sessionTranscript, deviceNamespaces, docType });
  const deviceSignature = await DeviceSignature.create(
    {
      protectedHeaders: new Map([[Header.Algorithm, SignatureAlgorithm.ES256]]),
      detachedPayload: authentication.encode({ asDataItem: true }),
      signingKey: CoseKey.fromJwk({ ...holder.publicJwk }),
      algorithm: SignatureAlgorithm.ES256,
    },
    mdoc,
  );
  const document = Document.create({
    docType,
    issuerSigned: IssuerSigned.create({
      issuerNamespaces: IssuerNamespaces.create({ issuerNamespaces: disclosedItems(issuerSigned, paths, altered) }),
      issuerAuth: issuerSigned.issuerAuth,
    }),
    deviceSigned: DeviceSigned.create({ deviceNamespaces, deviceAuth: DeviceAuth.create({ deviceSignature }) }),
  });
  return DeviceResponse.createSimple({ documents: [document] }).encodedForOid4Vp;
}

function disclosedItems({ issuerNamespaces }: IssuerSigned, paths: readonly Path[], altered: Path | undefined) {
  const itemsByNamespace = new Map<string, IssuerSignedItem[]>();
  for (const [namespace, items] of issuerNamespaces.issuerNamespaces) {
    const isAt = ({ elementIdentifier }: IssuerSignedItem, path: Path) => path[0] === namespace && path[1] === elementIdentifier;
    const chosen = items.filter((item) => paths.some((path) => isAt(item, path)));
    const disclosed = chosen.map((item) => (altered !== undefined && isAt(item, altered) ? forged(item) : item));
    if (disclosed.length > 0) itemsByNamespace.set(namespace, disclosed);
  }
  return itemsByNamespace;
}

function forged({ digestId, random, elementIdentifier, elementValue }: IssuerSignedItem): IssuerSignedItem {
  const value = differentValue(toJson(elementValue));
  return IssuerSignedItem.fromOptions({ digestId, random, elementIdentifier, elementValue: value });
}

/** Cryptographic functions that the library requires. */
function context(holder?: HolderKey): MdocContext {
  const unsupported = (what: string) => () => {
    throw new Error(`this wallet has no ${what}`);
  };
  return {
    crypto: {
      random: randomBytes,
      digest: ({ digestAlgorithm, bytes }) => digest(bytes, digestAlgorithm),
      calculateEphemeralMacKey: unsupported('MAC keys'),
    },
    cose: {
      sign1: {
        sign: ({ toBeSigned }) => (holder === undefined ? unsupported('key for this')() : signBytes(holder, toBeSigned)),
        verify: ({ key, sign1 }) => verifySignature(key.jwk, sign1.signature, sign1.toBeSigned),
      },
      mac0: { sign: unsupported('MACs'), verify: unsupported('MACs') },
    },
    x509: {
      getIssuerNameField: unsupported('need of names'),
      getPublicKey: async ({ certificate, alg }) => CoseKey.fromJwk({ ...(await publicKeyOf(toBase64(certificate), alg)) }),
      verifyCertificateChain: unsupported('trust anchors'),
      getCertificateData: unsupported('need of certificate data'),
    },
  };
}

const HASHES: Readonly<Record<string, string>> = { 'P-256': 'SHA-256', 'P-384': 'SHA-384', 'P-521': 'SHA-512' };

async function verifySignature(jwk: object, signature: Uint8Array, bytes: Uint8Array): Promise<boolean> {
  const { kty, crv, x, y } = jwk as { kty: string; crv: string; x: string; y: string };
  const algorithm = { name: 'ECDSA', namedCurve: crv };
  const key = await crypto.subtle.importKey('jwk', { kty, crv, x, y }, algorithm, false, ['verify']);
  const hash = HASHES[crv] ?? 'SHA-256';
  const [signatureBytes, signed] = [new Uint8Array(signature), new Uint8Array(bytes)];
  return crypto.subtle.verify({ name: 'ECDSA', hash }, key, signatureBytes, signed);
}

/** Converts CBOR dates and bytes to text, for display and for DCQL. */
function toJson(value: unknown): Json {
  if (value instanceof DateOnly) return value.toISOString();
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array) return base64url.encode(value);
  if (value instanceof Map) return Object.fromEntries([...value].map(([name, entry]) => [String(name), toJson(entry)]));
  if (Array.isArray(value)) return value.map(toJson);
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, toJson(entry)]));
  return typeof value === 'bigint' ? Number(value) : (value as Json);
}

function toBase64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}
