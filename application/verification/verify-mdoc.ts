import { hash } from 'node:crypto';
import { toJson } from '../../domain/formats/cbor/to-json.ts';
import { parseCoseKey } from '../../domain/formats/cose/key.ts';
import { parseCoseAlgorithm, parseX5chain, sigStructure } from '../../domain/formats/cose/sign1.ts';
import { parseCertificate } from '../../domain/formats/der/certificate.ts';
import { deviceAuthenticationBytes, parseDeviceElements } from '../../domain/formats/mdoc/device-auth.ts';
import { assertDocumentSigner, MDL_DOCUMENT_SIGNER, parseDocumentSigner } from '../../domain/formats/mdoc/document-signer.ts';
import { assertIssuingPlace, DRIVING_LICENCE, type MdlProfile } from '../../domain/formats/mdoc/driving-licence.ts';
import { type JsonNameSpaces, verifyItems } from '../../domain/formats/mdoc/items.ts';
import { assertValidity, type MobileSecurityObject, parseMso, type ValidityInfo } from '../../domain/formats/mdoc/mso.ts';
import { type OpenedMdoc, parseDeviceResponse } from '../../domain/formats/mdoc/parse.ts';
import { defined } from '../../domain/shared/defined.ts';
import { algorithmOf, type PublicJwk, type SigningAlgorithm } from '../../domain/shared/jwk.ts';
import { NonceRefusal, Refusal } from '../../domain/shared/refusal.ts';
import { parseStatusReference, type StatusReference } from '../../domain/status-lists/reference.ts';
import type { Certificates, ChainVerdict, TrustAnchor } from '../ports/certificates.ts';
import type { Signatures } from '../ports/signatures.ts';

export type ExpectedMdoc = {
  readonly now: Date;
  /** SessionTranscripts that answer the request, CBOR: see `session-transcript.ts`. One has to be the signed one. */
  readonly transcripts: readonly Buffer[];
  readonly docType: string;
  readonly anchors: readonly TrustAnchor[];
  /** Whether the query demands a device signature. One that is there is checked in any case. */
  readonly holderBinding: boolean;
  /** Whether HAIP 1.0 sections 6.1 and 6.1.1 are held to. */
  readonly haip?: boolean;
  /** Whether certificates count by agreed algorithms alone. */
  readonly agreedOnly?: boolean;
  /** What is demanded of those who sign driving licences; ISO/IEC 18013-5 unless stated. */
  readonly mdlProfile?: MdlProfile;
  /** Allowed algorithms of issuer and device. A COSE number and its fully specified twin have one name. */
  readonly issuerAlgorithms: readonly SigningAlgorithm[];
  readonly deviceAlgorithms: readonly SigningAlgorithm[];
  /** There is no request, so what the device signed is not looked at; true only where nothing is accepted by it. */
  readonly isTrial?: true;
};

export type CheckedMdoc = {
  readonly docType: string;
  /** What the issuer vouches for. */
  readonly namespaces: JsonNameSpaces;
  readonly issuer: Extract<ChainVerdict, { trusted: true }>;
  /** DER in standard base64, leaf first. */
  readonly chain: readonly string[];
  /** SHA-256 of what the issuer signed. */
  readonly signedHash: string;
  readonly validity: ValidityInfo;
  readonly statusReference?: StatusReference;
  /** The key that the holder proved. */
  readonly holderKey?: PublicJwk;
  /** Elements that only the device vouches for: never an answer to a requested claim. */
  readonly deviceSigned: JsonNameSpaces;
};

type Ports = { readonly signatures: Signatures; readonly certificates: Certificates };

/**
 * Checks one DeviceResponse with one document: form, issuer, times, elements, device signature (OpenID4VP 1.0 appendix B.2, ISO/IEC 18013-5
 * section 9.3). Its status is not asked for, and whether it answers the query is not looked at, its type excepted.
 * @param text base64url without padding.
 * @throws Refusal with the reason.
 */
export function verifyMdoc(ports: Ports, text: string, expected: ExpectedMdoc): CheckedMdoc {
  const opened = parseDeviceResponse(text);
  try {
    return verifyOpened(ports, opened, expected);
  } catch (error) {
    throw error instanceof Refusal ? asForeign(error, ports, opened, expected) : error;
  }
}

/**
 * OpenID4VP 1.0 section 14.2.2: the nonce is in the transcript, so a device that signed another one answers another request,
 * also when something else is wrong first. Whose device it is only the issuer can say.
 */
function asForeign(refusal: Refusal, ports: Ports, opened: OpenedMdoc, expected: ExpectedMdoc): Refusal {
  if (refusal.reason !== 'device_signature' && !answersAnother(ports, opened, expected)) return refusal;
  return new NonceRefusal(refusal.reason, `${refusal.message}; the device signed no transcript of this request`);
}

function answersAnother(ports: Ports, { issuerAuth, ...opened }: OpenedMdoc, expected: ExpectedMdoc): boolean {
  const { payload, protectedBytes, signature } = issuerAuth;
  const [leaf] = parseX5chain(issuerAuth.unprotectedHeader) ?? [];
  const key = leaf === undefined ? undefined : parseCertificate(Buffer.from(leaf, 'base64'))?.publicJwk;
  if (payload === undefined || key === undefined) return false;
  try {
    if (!ports.signatures.verify(key, sigStructure(protectedBytes, payload), signature)) return false;
    verifyDevice(ports, { issuerAuth, ...opened }, parseMso(payload), expected);
    return false;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return error.reason === 'device_signature';
  }
}

function verifyOpened(ports: Ports, opened: OpenedMdoc, expected: ExpectedMdoc): CheckedMdoc {
  const { issuer, chain, mso } = verifyIssuer(ports, opened, expected);
  // ISO/IEC 18013-5 section 9.3.1
  if (opened.docType !== mso.docType || opened.docType !== expected.docType) throw new Refusal('doctype_mismatch');
  const namespaces = verifyItems(opened.items, mso);
  if (isProfiled(expected)) assertIssuingPlace(signerOf(issuer, chain), namespaces);
  const device = verifyDevice(ports, opened, mso, expected);
  const statusReference = mso.status === undefined ? undefined : parseStatusReference({ status: toJson(mso.status) });
  return {
    docType: mso.docType,
    namespaces,
    issuer,
    chain,
    signedHash: hash('sha256', opened.issuerAuth.payload ?? Buffer.alloc(0), 'base64url'),
    validity: mso.validity,
    ...defined({ statusReference }),
    ...device,
  };
}

function verifyIssuer(
  ports: Ports,
  { issuerAuth }: OpenedMdoc,
  expected: ExpectedMdoc,
): Pick<CheckedMdoc, 'issuer' | 'chain'> & { readonly mso: MobileSecurityObject } {
  const { now, anchors, haip = false, agreedOnly = false } = expected;
  const algorithm = parseCoseAlgorithm(issuerAuth, expected.issuerAlgorithms, 'issuer_alg');
  const { payload, protectedBytes, signature } = issuerAuth;
  if (payload === undefined) throw new Refusal('malformed', 'issuerAuth has no payload');
  // ISO/IEC 18013-5 section 9.1.2.4: in the unprotected header
  const chain = parseX5chain(issuerAuth.unprotectedHeader);
  const [leaf] = chain ?? [];
  if (chain === undefined || leaf === undefined) throw new Refusal('issuer_key_unresolved', 'no x5chain');

  const verdict = ports.certificates.verifyChain(chain, anchors, now, { purpose: 'mdoc', haip, agreedOnly });
  const key = verdict.trusted ? verdict.key : parseCertificate(Buffer.from(leaf, 'base64'))?.publicJwk;
  if (key !== undefined) {
    // RFC 9053 section 2: the algorithm has to fit the key.
    if (algorithmOf(key) !== algorithm) throw new Refusal('issuer_alg', 'does not fit the key');
    // A broken signature is reported before a chain that does not hold.
    if (!ports.signatures.verify(key, sigStructure(protectedBytes, payload), signature)) throw new Refusal('issuer_signature');
  }
  if (!verdict.trusted) throw new Refusal(verdict.reason, verdict.detail);

  const signer = parseDocumentSigner(leaf);
  if (isProfiled(expected) && verdict.isPin !== true) assertDocumentSigner(signer, MDL_DOCUMENT_SIGNER);
  const mso = parseMso(payload);
  assertValidity(mso.validity, signer, now);
  return { issuer: verdict, chain, mso };
}

function isProfiled({ docType, mdlProfile }: ExpectedMdoc): boolean {
  return docType === DRIVING_LICENCE && mdlProfile !== 'none';
}

function signerOf({ anchorCertificate }: CheckedMdoc['issuer'], [certificate = '']: readonly string[]) {
  return { certificate, authority: anchorCertificate === certificate ? undefined : anchorCertificate };
}

function verifyDevice(
  { signatures }: Ports,
  { docType, deviceSigned }: OpenedMdoc,
  mso: MobileSecurityObject,
  expected: ExpectedMdoc,
): Pick<CheckedMdoc, 'holderKey' | 'deviceSigned'> {
  // HAIP 1.0 section 6.1: every mdoc is bound to a device, and presented by it.
  const { holderBinding, haip = false, isTrial = false } = expected;
  if (isTrial) return { deviceSigned: {} };
  if (deviceSigned === undefined && !holderBinding && !haip) return { deviceSigned: {} };
  const auth = deviceSigned?.auth;
  if (deviceSigned === undefined || auth === undefined) throw new Refusal('device_auth_missing');
  // We offer no MAC (OpenID4VP 1.0 appendix B.2.2), so none is expected.
  if (auth === 'mac') throw new Refusal('device_alg', 'deviceMac was not offered');
  const algorithm = parseCoseAlgorithm(auth, expected.deviceAlgorithms, 'device_alg');
  const holderKey = parseCoseKey(mso.deviceKey);
  if (holderKey === undefined) throw new Refusal('holder_key_missing');
  if (algorithmOf(holderKey) !== algorithm) throw new Refusal('device_alg', 'does not fit the key');
  // ISO/IEC 18013-5 section 9.1.3.6: the payload is detached.
  if (auth.payload !== undefined) throw new Refusal('malformed', 'deviceSignature has a payload');

  const { nameSpaces } = deviceSigned;
  const isSigned = expected.transcripts.some((transcript) => {
    const payload = deviceAuthenticationBytes(transcript, docType, nameSpaces);
    return signatures.verify(holderKey, sigStructure(auth.protectedBytes, payload), auth.signature, 'once');
  });
  if (!isSigned) throw new Refusal('device_signature');
  return { holderKey, deviceSigned: parseDeviceElements(nameSpaces, mso.authorizations) };
}
